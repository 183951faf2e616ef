"""What is shown of a batch, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from data.trajectory import Cost, Trajectory
from lightning_modules.lmpo_log import gain_metrics, group_metrics, mismatch_metrics, ratio_metrics, rollout_metrics
from tests.memory.parts import a_trajectory


def sampled(tokens: int, finish: str, reward: float) -> Trajectory:
    plain = a_trajectory("Who?")
    step = replace(plain.steps[0], finish_reason=finish, cost=Cost(4, tokens, 0, None, 0.1, None, None))
    return replace(plain, steps=(step, step), score={"exact_match": reward})


def test_rollouts() -> None:
    metrics = rollout_metrics([sampled(3, "stop", 1.0), sampled(7, "length", 0.0)], seconds=4.0)
    assert metrics == {
        "score/exact_match": 0.5,
        "response_tokens": 5.0,
        "cut_off": 0.5,
        "rollout_tokens_per_s": 5.0,
    }


def test_groups() -> None:
    metrics = group_metrics(torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    assert metrics == {
        "reward_mean": 0.75,
        "reward_std": pytest.approx(math.sqrt(3) / 4),
        "reward_std_within_groups": 0.25,
        "groups_without_variance": 0.5,
    }


def test_lost_members_count_in_no_figure() -> None:
    nan = math.nan
    metrics = group_metrics(torch.tensor([[1.0, 0.0, nan], [nan, nan, 1.0], [nan, nan, nan]]))
    assert metrics == {
        "reward_mean": pytest.approx(2 / 3),
        "reward_std": pytest.approx(math.sqrt(2) / 3),
        "reward_std_within_groups": 0.25,
        "groups_without_variance": pytest.approx(2 / 3),
    }


def test_ratios() -> None:
    clipped = torch.tensor([True, False, False, False])
    metrics = ratio_metrics(torch.tensor([1.5, 1.0, 0.5, 1.0]), clipped, torch.tensor([2.0, 4.0, 2.0, 4.0]))
    assert metrics == {"ratio_min": 0.5, "ratio_max": 1.5, "clip_fraction": 0.25, "entropy": 3.0}


def test_mismatch_of_the_engine() -> None:
    # log r is 0 and log 2, so the estimate is (0 + (2 - 1 - log 2)) / 2.
    metrics = mismatch_metrics(torch.tensor([-1.0, -1.0]), torch.tensor([-1.0, -1.0 - math.log(2)]))
    assert metrics["engine_mismatch_max"] == pytest.approx(math.log(2))
    assert metrics["engine_mismatch_kl"] == pytest.approx((1 - math.log(2)) / 2)


def test_gain_compares_each_question_with_its_own_first_visit() -> None:
    assert gain_metrics({}, {"a": 0.5}) == {}
    gain = gain_metrics({"easy": 0.75, "hard": 0.0}, {"easy": 0.5, "hard": 0.5, "new": 1.0})
    assert gain == {"reward_gain": pytest.approx((-0.25 + 0.5) / 2)}
