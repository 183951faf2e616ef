"""v(·) of LatentMem's equation 3: sentences to unit vectors, so that an inner product is a cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = npt.NDArray[np.float32]
"""``[n, dim]`` float32, every row of length 1."""


class TextEncoder(Protocol):
    """Whatever turns texts into unit vectors. ``name`` tells one embedding space from another."""

    name: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """``[len(texts), dim]`` unit vectors, in the order of ``texts``; the same texts give the same vectors."""
        ...


class Encoder:
    """A sentence-transformers model on the CPU, loaded at the first use.

    The default reads at most 256 tokens of a text; what follows is not seen by retrieval.

    Args:
        name: ``all-minilm-l6-v2`` (paper: MiniLM), or any local path or hub name of a sentence-transformers model.
        batch_size: texts a forward pass.
    """

    def __init__(self, name: str = "all-minilm-l6-v2", batch_size: int = 64) -> None:
        self.name = name
        self.batch_size = batch_size
        self._model: SentenceTransformer | None = None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """``[len(texts), dim]`` unit vectors in one batched call; an empty list gives ``[0, dim]``."""
        model = self._load()
        if not texts:
            return np.zeros((0, int(model.get_embedding_dimension() or 0)), dtype=np.float32)
        vectors = model.encode(
            list(texts),
            batch_size=self.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _load(self) -> SentenceTransformer:
        if self._model is None:
            # Heavy, and needed by runs with a memory only.
            from sentence_transformers import SentenceTransformer

            from data.assets import resolve_encoder

            self._model = SentenceTransformer(str(resolve_encoder(self.name)), device="cpu")
        return self._model


def unit_vectors(vectors: Vectors, dim: int) -> Vectors:
    """``vectors`` as contiguous float32. Raises ``ValueError`` unless they are ``[n, dim]`` and of length 1."""
    if vectors.ndim != 2 or vectors.shape[1] != dim:
        raise ValueError(f"expected unit vectors of shape [n, {dim}], got {list(vectors.shape)}")
    lengths = np.linalg.norm(vectors, axis=1)
    if not bool((np.abs(lengths - 1) < 1e-3).all()):
        raise ValueError(
            f"vectors must be finite and of length 1, got lengths from {lengths.min()} to "
            f"{lengths.max()}; normalise in the encoder"
        )
    return np.ascontiguousarray(vectors, dtype=np.float32)
