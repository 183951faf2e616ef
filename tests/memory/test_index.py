from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.encoder import Vectors
from memory.index import CosineIndex


def unit_rows(seed: int, rows: int, dim: int = 8) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def test_cosines_worked_by_hand() -> None:
    index = CosineIndex(2)
    index.add(np.asarray([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
    scores, ids = index.search(np.asarray([[0.8, 0.6]], dtype=np.float32), k=3)
    assert ids.tolist() == [[2, 0, 1]]
    assert scores[0] == pytest.approx([0.96, 0.8, 0.6])


@given(seed=st.integers(0, 99), rows=st.integers(1, 30), queries=st.integers(1, 25), k=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_search_is_brute_force(seed: int, rows: int, queries: int, k: int) -> None:
    stored, asked = unit_rows(seed, rows), unit_rows(seed + 1000, queries)
    index = CosineIndex(8)
    index.add(stored)
    scores, ids = index.search(asked, k)
    cosines = asked @ stored.T
    expected = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    assert scores.shape == ids.shape == (queries, min(k, rows))
    np.testing.assert_allclose(scores, np.take_along_axis(cosines, expected, axis=1), atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(cosines, ids, axis=1), scores, atol=1e-5)


def test_vectors_come_back_bit_for_bit_whatever_the_batches() -> None:
    stored = unit_rows(3, 7)
    index = CosineIndex(8)
    index.add(stored[:2])
    index.add(stored[2:])
    assert len(index) == 7
    assert index.vectors().tobytes() == stored.tobytes()


def test_an_empty_index_finds_nothing() -> None:
    index = CosineIndex(8)
    scores, ids = index.search(unit_rows(0, 3), k=2)
    assert scores.shape == ids.shape == (3, 0)
    assert index.vectors().shape == (0, 8)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((1, 8), dtype=np.float32), "length 1"),
        (np.full((1, 8), np.nan, dtype=np.float32), "length 1"),
        (np.ones((1, 7), dtype=np.float32), r"\[n, 8\], got \[1, 7\]"),
        (np.ones(8, dtype=np.float32), r"\[n, 8\], got \[8\]"),
    ],
)
def test_what_is_not_a_unit_vector_is_refused(vectors: Vectors, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CosineIndex(8).add(vectors)


def test_k_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        CosineIndex(8).search(unit_rows(0, 1), k=0)
