"""A CoMem store grown to a million entries: recall against exact search, and what a query, insertion, removal costs.

The vectors are synthetic: 384 dimensions like MiniLM's, around a few thousand centres, as insights on recurring tasks
are. Costs are wall clock, seen by the caller of :class:`memory.comem.store.EntryStore`; encoding is left out. An
insertion's cost is amortised over all that were made since the size before, the index's own training included.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from eval.bench.result import print_result
from memory.comem.entry import Entry
from memory.comem.store import EntryStore
from memory.encoder import Vectors

DIM = 384
K = 3
BATCH = 256
REMOVED = 500


@dataclass(frozen=True)
class Size:
    """What was measured at one size. Insertion and removal in microseconds an entry, queries in milliseconds."""

    entries: int
    insert_us: float
    pause_s: float
    remove_us: float
    query_ms: float
    exact_ms: float
    recall: float


class Cloud:
    """Unit vectors around ``centres`` centres; the noise is ``spread`` long, the centres 1."""

    def __init__(self, centres: int, spread: float, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.spread = spread
        self.centres = self._unit(self._normal(centres))

    def draw(self, count: int) -> Vectors:
        """``[count, 384]``."""
        chosen = self.centres[self.rng.integers(0, len(self.centres), count)]
        return self._unit(chosen + self.spread / np.float32(np.sqrt(DIM)) * self._normal(count))

    def _normal(self, count: int) -> Vectors:
        return self.rng.standard_normal((count, DIM), dtype=np.float32)

    @staticmethod
    def _unit(vectors: Vectors) -> Vectors:
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def main(argv: Sequence[str]) -> None:
    """Print one line a size, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench memory", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--centres", type=int, default=4000)
    parser.add_argument("--spread", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    sizes = [size for size in (1000, 10_000, 20_000, 100_000, 1_000_000) if size <= args.entries]
    print("synthetic vectors; insertion includes training the index, exact is a scan of the same store", flush=True)
    measured = grow(Cloud(args.centres, args.spread, args.seed), sizes, args.queries)
    print_result(
        "memory",
        recall_at_3=min(size.recall for size in measured),
        query_ms_1m=measured[-1].query_ms,
        growth=measured[-1].insert_us / measured[-2].insert_us,
        removal_growth=measured[-1].remove_us / measured[-2].remove_us,
        longest_pause_s=max(size.pause_s for size in measured),
        entries=measured[-1].entries,
    )


def grow(cloud: Cloud, sizes: Sequence[int], queries: int) -> list[Size]:
    """Fill one store from size to size."""
    store, measured = EntryStore(), []
    for size in sizes:
        insert_us, pause_s = fill(store, cloud, size)
        remove_us = churn(store, cloud)
        query_ms, exact_ms, recall = search(store, cloud.draw(queries))
        measured.append(Size(size, insert_us, pause_s, remove_us, query_ms, exact_ms, recall))
        print(
            f"{size:>9} entries  recall@3 {recall:.3f}  query {query_ms:7.3f} ms (exact {exact_ms:7.2f})  "
            f"insertion {insert_us:6.1f} us (longest batch {pause_s:6.2f} s)  removal {remove_us:6.1f} us",
            flush=True,
        )
    return measured


def fill(store: EntryStore, cloud: Cloud, size: int) -> tuple[float, float]:
    """Microseconds an entry, and the seconds of the batch that took longest."""
    before, took = len(store), []
    while len(store) < size:
        took.append(_insert(store, cloud, min(BATCH, size - len(store)), f"{len(store)}"))
    return 1e6 * sum(took) / (size - before), max(took)


def churn(store: EntryStore, cloud: Cloud) -> float:
    """Microseconds a removal, of entries from all over the store; as many new ones take their places."""
    entries = store.entries()
    gone = [entries[row] for row in cloud.rng.choice(len(entries), REMOVED, replace=False)]
    started = time.perf_counter()
    for entry in gone:
        store.exchange([entry], (), _no_vectors)
    took = time.perf_counter() - started
    _insert(store, cloud, REMOVED, f"again{len(entries)}")
    return 1e6 * took / REMOVED


def search(store: EntryStore, queries: Vectors) -> tuple[float, float, float]:
    """Median milliseconds of a query, of an exact scan, and recall@3 against that scan."""
    took, scans, shared = [], [], 0
    for query in queries:
        started = time.perf_counter()
        (hits,) = store.search(query[None], K)
        took.append(time.perf_counter() - started)
        started = time.perf_counter()
        exact = store.scan(query, K)
        scans.append(time.perf_counter() - started)
        shared += len({entry.id for entry, _ in hits} & {entry.id for entry, _ in exact})
    return 1e3 * median(took), 1e3 * median(scans), shared / (K * len(queries))


def _insert(store: EntryStore, cloud: Cloud, count: int, name: str) -> float:
    vectors = cloud.draw(count)
    entries = [Entry(f"m{name}-{n}", f"insight {name} {n}", "agent", 50.0, 0) for n in range(count)]
    started = time.perf_counter()
    store.exchange((), entries, lambda _: vectors)
    return time.perf_counter() - started


def _no_vectors(entries: Sequence[Entry]) -> Vectors:
    raise AssertionError("a removal encodes nothing")
