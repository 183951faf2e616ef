"""Vectors come and go; search is exact below the limit, nearly so above, and a removed vector is never found again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.encoder import Vectors
from memory.vector_index import VectorIndex
from memory.vector_table import BLOCK, VectorTable

DIM = 16


def unit(count: int, seed: int = 0, spread: float = 1.0) -> Vectors:
    """``count`` vectors around 12 centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(12, DIM))
    points = centres[rng.integers(0, 12, count)] + spread * rng.normal(size=(count, DIM))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True), dtype=np.float32)


def brute_force(known: dict[int, Vectors], query: Vectors, k: int) -> list[int]:
    return sorted(known, key=lambda each: (-float(known[each] @ query), each))[:k]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60), st.integers(1, 8))
def test_any_sequence_of_additions_and_removals_searches_like_a_dictionary(
    moves: list[tuple[bool, int]], k: int
) -> None:
    vectors, index, known = unit(31), VectorIndex(DIM), dict[int, Vectors]()
    for add, each in moves:
        if add and each not in known:
            index.add([each], vectors[each : each + 1])
            known[each] = vectors[each]
        elif not add and each in known:
            index.remove([each])
            del known[each]
    query = unit(1, seed=5)
    (hits,) = index.search(query, k)
    assert [each for each, _ in hits] == brute_force(known, query[0], k)
    assert len(index) == len(known)
    for each, cosine in hits:
        assert cosine == pytest.approx(float(known[each] @ query[0]), abs=1e-6)


def test_equal_vectors_come_in_order_of_their_ids() -> None:
    same = unit(1).repeat(4, axis=0)
    index = VectorIndex(DIM)
    index.add([7, 3, 9, 1], same)
    assert [each for each, _ in index.search(same[:1], 3)[0]] == [1, 3, 7]


def test_vectors_come_back_bit_for_bit_across_blocks() -> None:
    vectors = unit(BLOCK + 3)
    table = VectorTable(DIM)
    table.add(range(len(vectors)), vectors)
    for gone in (0, BLOCK + 2, BLOCK):  # the last row takes a freed place, also across the border of two blocks
        table.remove(gone)
    kept = [each for each in range(len(vectors)) if each not in (0, BLOCK + 2, BLOCK)]
    assert np.array_equal(table.rows(kept), vectors[kept])
    assert sorted(table.ids()) == kept


def modes(moves: Sequence[Callable[[], None]], index: VectorIndex) -> list[bool]:
    """Whether search is approximate after each move."""
    found = []
    for move in moves:
        move()
        found.append(index.approximate)
    return found


def test_approximate_search_from_the_limit_on_and_exact_again_below_half_of_it() -> None:
    vectors, index = unit(1000), VectorIndex(DIM, exact_below=400, probes=8, scanned=0)
    moves = [
        lambda: index.add(range(399), vectors[:399]),
        lambda: index.add(range(399, 1000), vectors[399:]),
        lambda: index.remove(range(250, 1000)),
        lambda: index.remove(range(100, 250)),
    ]
    assert modes(moves, index) == [False, True, True, False]
    assert [each for each, _ in index.search(vectors[5:6], 1)[0]] == [5]


def test_approximate_search_finds_nearly_all_that_exact_search_does() -> None:
    vectors, queries = unit(1000, spread=0.5), unit(50, seed=8, spread=0.5)
    index = VectorIndex(DIM, exact_below=400, probes=8, scanned=0)
    index.add(range(1000), vectors)
    known = dict(enumerate(vectors))
    found = [{each for each, _ in hits} for hits in index.search(queries, 3)]
    shared = sum(len(hits & set(brute_force(known, q, 3))) for hits, q in zip(found, queries, strict=True))
    assert shared / 150 >= 0.95


def test_a_query_of_a_small_set_looks_at_as_many_vectors_as_asked_whatever_the_cells() -> None:
    vectors, queries = unit(1000, spread=2.0), unit(50, seed=8, spread=2.0)
    few, all_of_them = (VectorIndex(DIM, exact_below=400, probes=1, scanned=scanned) for scanned in (0, 1000))
    known = dict(enumerate(vectors))
    right = [set(brute_force(known, query, 3)) for query in queries]

    def recall(index: VectorIndex) -> float:
        index.add(range(1000), vectors)
        found = [{each for each, _ in hits} for hits in index.search(queries, 3)]
        return sum(len(hits & best) for hits, best in zip(found, right, strict=True)) / 150

    assert recall(few) < 0.8
    assert recall(all_of_them) >= 0.99


def test_a_removed_vector_is_never_found_by_approximate_search() -> None:
    vectors = unit(500)
    index = VectorIndex(DIM, exact_below=100, probes=4, scanned=0)
    index.add(range(500), vectors)
    index.remove(range(0, 500, 2))
    for query, hits in zip(vectors, index.search(vectors, 5), strict=True):
        assert all(each % 2 == 1 for each, _ in hits)
        assert all(cosine == pytest.approx(float(vectors[each] @ query), abs=1e-6) for each, cosine in hits)


def test_cells_are_trained_anew_as_the_set_grows() -> None:
    vectors = unit(900)
    index = VectorIndex(DIM, exact_below=100, probes=4, scanned=0)
    index.add(range(100), vectors[:100])
    small = index._cells.nlist
    index.add(range(100, 399), vectors[100:399])
    assert index._cells.nlist == small
    index.add(range(399, 900), vectors[399:])
    assert index._cells.nlist > small
    assert index._cells.ntotal == 900


@pytest.mark.parametrize("count", [0, 30, 600])
def test_state_survives_a_checkpoint_and_goes_on_alike(tmp_path: object, count: int) -> None:
    vectors = unit(700)
    index = VectorIndex(DIM, exact_below=200, probes=4, scanned=0)
    index.add(range(count), vectors[:count])
    if count:
        index.remove([3, 17])
    path = f"{tmp_path}/index.pt"
    torch.save(index.state_dict(), path)
    other = VectorIndex(DIM, exact_below=200, probes=4, scanned=0)
    other.load_state_dict(torch.load(path, weights_only=True))
    for each in (index, other):
        each.add(range(count, count + 40), vectors[count : count + 40])
        each.remove([count + 1])
    assert index.approximate == other.approximate == (count == 600)
    queries = unit(20, seed=4)
    assert index.search(queries, 5) == other.search(queries, 5)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda index: index.add([1], unit(1)), ValueError, "already there"),
        (lambda index: index.add([5, 5], unit(2)), ValueError, "already there"),
        (lambda index: index.add([5], unit(2)), ValueError, "1 ids for 2 vectors"),
        (lambda index: index.add([5], 2 * unit(1)), ValueError, "length 1"),
        (lambda index: index.add([5], np.ones((1, 3), dtype=np.float32)), ValueError, r"\[n, 16\]"),
        (lambda index: index.remove([8]), KeyError, "8"),
        (lambda index: index.search(unit(1), 0), ValueError, "at least 1"),
        (lambda _: VectorIndex(DIM, exact_below=3), ValueError, "exact_below"),
    ],
)
def test_what_cannot_be_is_refused(act, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    index = VectorIndex(DIM)
    index.add([1, 2], unit(2))
    with pytest.raises(error, match=message):
        act(index)
