"""Noise and homogenisation, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.comem.pollution import action_similarity, memory_similarity, noise
from tests.memory.comem.parts import an_entry


def test_noise_is_the_share_below_the_baseline() -> None:
    entries = [an_entry("a", n_use=2, reward_sum=1.0), an_entry("b", n_use=4, reward_sum=1.0), an_entry("new")]
    assert noise(entries, 0.5) == 0.5  # 0.5 is not below 0.5, 0.25 is; what was never used has no mean
    assert noise(entries, 0.6) == 1.0
    assert noise(entries[2:], 0.6) is None


def test_rewards_that_never_change_are_no_noise_however_their_sums_are_rounded() -> None:
    assert noise([an_entry("a", n_use=3, reward_sum=0.7 + 0.7 + 0.7)], 0.7) == 0.0


def test_memories_are_as_similar_as_their_entries_are_on_average() -> None:
    x, y = np.eye(2, dtype=np.float32)
    assert memory_similarity({"ann": np.stack([x]), "bob": np.stack([x])}) == pytest.approx(1.0)
    assert memory_similarity({"ann": np.stack([x]), "bob": np.stack([y])}) == pytest.approx(0.0)
    assert memory_similarity({"ann": np.stack([x, y]), "bob": np.stack([x])}) == pytest.approx(0.5)
    three = {"ann": np.stack([x]), "bob": np.stack([x]), "cat": np.stack([y])}
    assert memory_similarity(three) == pytest.approx(1 / 3)
    assert memory_similarity({"ann": np.stack([x]), "bob": np.zeros((0, 2), dtype=np.float32)}) is None


def test_actions_are_as_similar_as_their_frequencies() -> None:
    assert action_similarity({"ann": ["go", "take"], "bob": ["take", "go"]}) == pytest.approx(1.0)
    assert action_similarity({"ann": ["go"], "bob": ["take"]}) == pytest.approx(0.0)
    # P = (1, 0), Q = (1/2, 1/2), M = (3/4, 1/4): JS = 1/2 log2(4/3) + 1/2 (1/2 log2(2/3) + 1/2 log2 2) = 0.3113
    assert action_similarity({"ann": ["go"], "bob": ["go", "take"]}) == pytest.approx(1 - 0.31128, abs=1e-5)
    assert action_similarity({"ann": ["go"], "bob": []}) is None


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=9), st.lists(st.sampled_from("abc"), min_size=1, max_size=9)
)
def test_similarity_is_symmetric_and_in_range(left: list[str], right: list[str]) -> None:
    found = action_similarity({"x": left, "y": right})
    assert found is not None
    assert -1e-9 <= found <= 1 + 1e-9
    assert found == pytest.approx(action_similarity({"x": right, "y": left}))
