"""Exact cosine search over unit vectors."""

from __future__ import annotations

import faiss
import numpy as np
import numpy.typing as npt

from memory.encoder import Vectors, unit_vectors


class CosineIndex:
    """A flat faiss index: append-only, exact, vectors kept bit for bit. Row number is the id.

    Args:
        dim: width of the vectors.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._index = faiss.IndexFlatIP(dim)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, vectors: Vectors) -> None:
        """Append ``[n, dim]`` unit vectors. Raises ``ValueError`` for another shape or length."""
        self._index.add(unit_vectors(vectors, self.dim))

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """The ``min(k, len(self))`` nearest rows of each query, nearest first.

        Args:
            queries: ``[q, dim]`` unit vectors.
            k: at least 1.

        Returns:
            Cosines and row ids, both ``[q, min(k, len(self))]``.
        """
        if k < 1:
            raise ValueError(f"CosineIndex.search: k is {k}, it must be at least 1")
        queries = unit_vectors(queries, self.dim)
        width = min(k, len(self))
        if width == 0 or len(queries) == 0:
            empty = (len(queries), width)
            return np.zeros(empty, dtype=np.float32), np.zeros(empty, dtype=np.int64)
        scores, ids = self._index.search(queries, width)
        return scores, ids

    def vectors(self) -> Vectors:
        """Every vector that was added, ``[len(self), dim]``, in order of addition."""
        if len(self) == 0:
            return np.zeros((0, self.dim), dtype=np.float32)
        return np.asarray(self._index.reconstruct_n(0, len(self)), dtype=np.float32)
