"""Vectors by id in blocks of fixed size: adding and removing move one row, whatever the size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from memory.encoder import Vectors

BLOCK = 4096


class VectorTable:
    """Rows ``0 … n−1`` without holes: the last row takes the place of a removed one.

    Args:
        dim: width of the vectors.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._blocks: list[Vectors] = []
        self._ids: list[int] = []
        self._row: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> list[int]:
        """Every id, in row order."""
        return list(self._ids)

    def add(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Append ``[len(ids), dim]`` rows. Raises ``ValueError`` for an id that is there or comes twice."""
        if len(ids) != len(vectors):
            raise ValueError(f"VectorTable: {len(ids)} ids for {len(vectors)} vectors")
        known = next((each for each in ids if each in self._row), None)
        if known is not None or len(set(ids)) < len(ids):
            raise ValueError(f"VectorTable: id {known if known is not None else list(ids)} is already there")
        for each, vector in zip(ids, vectors, strict=True):
            block, place = divmod(len(self._ids), BLOCK)
            if block == len(self._blocks):
                self._blocks.append(np.empty((BLOCK, self.dim), dtype=np.float32))
            self._blocks[block][place] = vector
            self._row[each] = len(self._ids)
            self._ids.append(each)

    def remove(self, each: int) -> None:
        """Raises ``KeyError`` for an unknown id."""
        row, last = self._row.pop(each), len(self._ids) - 1
        moved = self._ids.pop()
        if row != last:
            self._ids[row] = moved
            self._row[moved] = row
            self._blocks[row // BLOCK][row % BLOCK] = self._blocks[last // BLOCK][last % BLOCK]
        if last % BLOCK == 0:
            self._blocks.pop()

    def rows(self, ids: Sequence[int]) -> Vectors:
        """Copies, ``[len(ids), dim]``. Raises ``KeyError`` for an unknown id."""
        found = np.empty((len(ids), self.dim), dtype=np.float32)
        for place, each in enumerate(ids):
            row = self._row[each]
            found[place] = self._blocks[row // BLOCK][row % BLOCK]
        return found

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.int64], Vectors]]:
        """Ids and rows of each block, in row order."""
        for number, block in enumerate(self._blocks):
            ids = np.asarray(self._ids[number * BLOCK : (number + 1) * BLOCK], dtype=np.int64)
            yield ids, block[: len(ids)]

    def nearest(self, query: Vectors, k: int) -> list[tuple[int, float]]:
        """(id, product with ``query`` ``[dim]``) of the ``min(k, n)`` largest; lower ids first among equals."""
        if not self._ids:
            return []
        products = np.concatenate([rows @ query for _, rows in self.blocks()])
        floor = np.partition(products, -min(k, len(products)))[-min(k, len(products))]
        hits = [(self._ids[row], float(products[row])) for row in np.flatnonzero(products >= floor).tolist()]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]
