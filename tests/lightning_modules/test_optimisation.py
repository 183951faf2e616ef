"""Warm-up and cosine by hand, and which weights get which rate."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from lightning_modules.optimisation import OptimiserSettings, build_optimiser, rate_factor


def test_warm_up_then_cosine_by_hand() -> None:
    # Two of eight iterations warm up: 1/3, 2/3; then (1 + cos(pi k / 6)) / 2 for k = 0 to 5.
    expected = [1 / 3, 2 / 3, 1.0, (2 + math.sqrt(3)) / 4, 0.75, 0.5, 0.25, (2 - math.sqrt(3)) / 4]
    assert [rate_factor(step, 2, 8) for step in range(8)] == pytest.approx(expected)


@pytest.mark.parametrize(("warmup", "steps"), [(0, 1), (1, 1), (1, 10), (3, 10), (0, 4)])
def test_every_iteration_learns(warmup: int, steps: int) -> None:
    assert all(0 < rate_factor(step, warmup, steps) <= 1 for step in range(steps))
    assert rate_factor(steps + 5, warmup, steps) <= 1


def a_weight() -> nn.Parameter:
    return nn.Parameter(torch.zeros(2))


def test_the_schedule_sets_all_three_rates() -> None:
    settings = OptimiserSettings(lr=1e-3, head_lr=1e-2, offset_lr=0.1, warmup_ratio=0.1)
    optimiser, schedule = build_optimiser([a_weight()], [a_weight()], a_weight(), settings, steps=10)
    seen = []
    for _ in range(10):
        seen.append([group["lr"] for group in optimiser.param_groups])
        optimiser.step()
        schedule.step()
    assert seen[0] == pytest.approx([5e-4, 5e-3, 5e-2])
    assert seen[1] == pytest.approx([1e-3, 1e-2, 0.1])
    assert all(offset == pytest.approx(100 * adapters) for adapters, _, offset in seen)


@pytest.mark.parametrize(("head_lr", "expected"), [(None, [1e-3, 1e-3, 1e-3]), (1e-2, [1e-3, 1e-2, 1e-2])])
def test_a_rate_that_is_not_given_is_the_one_before_it(head_lr: float | None, expected: list[float]) -> None:
    settings = OptimiserSettings(lr=1e-3, head_lr=head_lr, warmup_ratio=0.0)
    optimiser, _ = build_optimiser([a_weight()], [a_weight()], a_weight(), settings, steps=0)
    assert [group["lr"] for group in optimiser.param_groups] == expected
