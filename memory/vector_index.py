"""Cosine search over vectors that come and go: exact while they are few, approximate and still quick at a million."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import faiss
import numpy as np
import numpy.typing as npt
import torch

from memory.encoder import Vectors, unit_vectors
from memory.vector_table import VectorTable

Ids = npt.NDArray[np.int64]

GROWTH = 4
"""The coarse cells are trained anew whenever the set has grown by this factor: amortised, an insertion costs the same
at every size (ours)."""

POINTS_PER_CELL = 40
"""Training vectors a cell: faiss' own lower limit is 39 (ours)."""

RESCORED = 32
"""Candidates of the approximate search that are scored again with the full vectors (ours)."""


class VectorIndex:
    """Ids to unit vectors, with search and removal.

    Below ``exact_below`` vectors every one is compared. From there on a faiss IVF index finds candidates (8-bit codes
    in coarse cells, a hash table from ids to places so that a removal touches one vector), and the full vectors decide
    among them: a cosine that is returned is always exact. faiss' HNSW cannot forget, and its flat indexes shift
    everything behind a removed vector.

    Args:
        dim: width of the vectors.
        exact_below: the set size from which on search is approximate (ours).
        probes: cells that a query looks into at least (ours).
        scanned: vectors that a query is compared with at least: cells of a small set are few and hold little (ours).
    """

    def __init__(self, dim: int, exact_below: int = 16384, probes: int = 24, scanned: int = 8192) -> None:
        if exact_below < POINTS_PER_CELL:
            raise ValueError(f"VectorIndex: exact_below is {exact_below}, it must be at least {POINTS_PER_CELL}")
        self.dim = dim
        self.exact_below = exact_below
        self.probes = probes
        self.scanned = scanned
        self._table = VectorTable(dim)
        self._cells: Any = None
        self._trained_on = 0

    def __len__(self) -> int:
        return len(self._table)

    @property
    def approximate(self) -> bool:
        """Whether the next search is."""
        return self._cells is not None

    def vectors(self, ids: Sequence[int]) -> Vectors:
        """``[len(ids), dim]``, bit for bit what was added. Raises ``KeyError`` for an unknown id."""
        return self._table.rows(ids)

    def add(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Add ``[len(ids), dim]`` unit vectors. Raises ``ValueError`` for another shape, length, or a known id."""
        if len(ids) == 0:
            return
        self._table.add(ids, unit_vectors(vectors, self.dim))
        if self._cells is not None and len(self) < GROWTH * self._trained_on:
            self._cells.add_with_ids(np.ascontiguousarray(vectors), np.asarray(ids, dtype=np.int64))
        elif len(self) >= self.exact_below:
            self._train()

    def remove(self, ids: Sequence[int]) -> None:
        """Forget these ids. Raises ``KeyError`` for an unknown one."""
        for each in ids:
            self._table.remove(each)
        if self._cells is None or len(ids) == 0:
            return
        self._cells.remove_ids(np.asarray(ids, dtype=np.int64))
        if len(self) < self.exact_below // 2:
            self._cells = None

    def search(self, queries: Vectors, k: int) -> list[list[tuple[int, float]]]:
        """The nearest ``min(k, len(self))`` of each query as (id, cosine), nearest first, lower ids first among equals.

        Args:
            queries: ``[q, dim]`` unit vectors.
            k: at least 1.
        """
        if k < 1:
            raise ValueError(f"VectorIndex.search: k is {k}, it must be at least 1")
        queries = unit_vectors(queries, self.dim)
        if self._cells is None:
            return [self._table.nearest(query, k) for query in queries]
        probes = max(self.probes, self.scanned * self._cells.nlist // len(self))
        looking = faiss.SearchParametersIVF(nprobe=probes)  # type: ignore[call-arg]
        _, found = self._cells.search(queries, max(4 * k, RESCORED), params=looking)
        return [self._rescored(query, ids[ids >= 0], k) for query, ids in zip(queries, found, strict=True)]

    def scan(self, query: Vectors, k: int) -> list[tuple[int, float]]:
        """:meth:`search` for one query ``[dim]`` that always compares every vector."""
        return self._table.nearest(query, k)

    def state_dict(self) -> dict[str, object]:
        """Tensors and numbers. The cells go along: trained anew on load, they would cut the set another way."""
        cells = np.zeros(0, dtype=np.uint8) if self._cells is None else faiss.serialize_index(self._cells)
        return {
            "ids": torch.tensor(self._table.ids(), dtype=torch.int64),
            "vectors": torch.from_numpy(self._table.rows(self._table.ids())),
            "cells": torch.from_numpy(cells),
            "trained_on": self._trained_on,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Replace everything by ``state``. Raises ``ValueError`` when ids and vectors differ in number or width."""
        ids = cast(torch.Tensor, state["ids"]).tolist()
        vectors = cast(torch.Tensor, state["vectors"]).cpu().numpy()
        cells = cast(torch.Tensor, state["cells"]).cpu().numpy()
        self._table = VectorTable(self.dim)
        if ids:
            self._table.add(ids, unit_vectors(vectors, self.dim))
        self._trained_on = int(cast(int, state["trained_on"]))
        self._cells = faiss.deserialize_index(cells) if len(cells) else None

    def _train(self) -> None:
        """Coarse cells by k-means over a sample, about 4·√n of them, and everything sorted into them."""
        ids = self._table.ids()
        count = min(int(4 * math.sqrt(len(ids))), len(ids) // POINTS_PER_CELL)
        cells: Any = faiss.index_factory(self.dim, f"IVF{count},SQ8", faiss.METRIC_INNER_PRODUCT)
        cells.cp.niter = 6
        cells.cp.max_points_per_centroid = POINTS_PER_CELL
        sample = ids[:: max(1, len(ids) // (count * POINTS_PER_CELL))]
        cells.train(self._table.rows(sample))
        cells.set_direct_map_type(faiss.DirectMap.Hashtable)  # type: ignore[attr-defined]
        for block_ids, block in self._table.blocks():
            cells.add_with_ids(block, block_ids)
        self._cells, self._trained_on = cells, len(ids)

    def _rescored(self, query: Vectors, ids: Ids, k: int) -> list[tuple[int, float]]:
        scores = (self._table.rows(ids.tolist()) @ query).tolist()
        return sorted(zip(ids.tolist(), scores, strict=True), key=lambda hit: (-hit[1], hit[0]))[:k]
