from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from data.task import Task
from data.trajectory import Cost, Step, Trajectory
from lightning_modules.lmpo import LMPOSettings
from lightning_modules.surrogate_loss import SurrogateLoss, trained_calls

TWO = LMPOSettings(group_size=2)


def episode(task: str, member: int, *responses: tuple[float, ...]) -> Trajectory:
    """One agent call a response; its tokens' log-probabilities are given."""
    cost = Cost(1, 1, 0, None, 0.0, None, None)
    steps = tuple(
        Step("solver", "solver", "", "", (1,), (), (7,) * len(logprobs), logprobs, "stop", (), cost, call)
        for call, logprobs in enumerate(responses)
    )
    return Trajectory(Task(task, "?", ("x",), "test"), "solo", member, steps, "", {})


def batch() -> list[Trajectory]:
    """Group a has variance, 3 and 1 tokens; group b has none."""
    return [
        episode("a", 0, (-1.0, -1.0), (-2.0,)),
        episode("a", 1, (-3.0,)),
        episode("b", 0, (-1.0,)),
        episode("b", 1, (-1.0,)),
    ]


def test_groups_without_variance_are_not_scored() -> None:
    calls = trained_calls(batch(), [1.0, -1.0, 0.0, 0.0], TWO)
    assert [(call.trajectory, call.step.call, call.advantage) for call in calls] == [(0, 0, 1), (0, 1, 1), (1, 0, -1)]
    assert [call.weight for call in calls] == [0.25] * 3  # 4 tokens in the only group


def test_a_member_at_the_mean_counts_in_the_normaliser_and_is_not_scored() -> None:
    trajectories = [episode("a", member, (-1.0,)) for member in range(3)]
    calls = trained_calls(trajectories, [1.0, 0.0, -1.0], LMPOSettings(group_size=3))
    assert [(call.trajectory, call.weight) for call in calls] == [(0, 1 / 3), (2, 1 / 3)]


def test_the_first_pass_is_the_old_policy_and_the_second_is_clipped_against_it() -> None:
    """ε = 0.2. Pass 2 raises both tokens of a good call by log 1.5: Eq. 12 stops at 1.2; −1.2 · 2 tokens / 4 = −0.6."""
    calls = trained_calls(batch(), [1.0, -1.0, 0.0, 0.0], TWO)
    loss = SurrogateLoss(calls, TWO)
    first = [torch.tensor([-1.5, -0.5]), torch.tensor([-2.0]), torch.tensor([-3.0])]
    assert [float(loss(row, logprobs)) for row, logprobs in enumerate(first)] == [-0.5, -0.25, 0.25]
    loss.keep(first)
    second = [first[0] + math.log(1.5), first[1], first[2] + math.log(1.5)]
    found = [float(loss(row, logprobs)) for row, logprobs in enumerate(second)]
    assert found == pytest.approx([-0.6, -0.25, 0.375])  # a bad call that grew is never clipped
    ratio, clipped = loss.last_pass()
    assert ratio.tolist() == pytest.approx([1.5, 1.5, 1.0, 1.5])
    assert clipped.tolist() == [True, True, False, False]


@pytest.mark.parametrize(("old", "ratio"), [("recompute", 1.0), ("engine", math.exp(0.5))])
def test_old_logprobs_are_the_trainers_or_the_engines(old: str, ratio: float) -> None:
    settings: Any = LMPOSettings(group_size=2, old_logprobs=old)
    calls = trained_calls(batch(), [1.0, -1.0, 0.0, 0.0], settings)
    loss = SurrogateLoss(calls, settings)
    mine = [torch.tensor(call.step.logprobs) + 0.5 for call in calls]
    for row, logprobs in enumerate(mine):
        loss(row, logprobs)
    loss.keep(mine)
    for row, logprobs in enumerate(mine):
        loss(row, logprobs)
    assert loss.last_pass()[0].tolist() == pytest.approx([ratio] * 4)
    assert loss.sampled().tolist() == [-1.0, -1.0, -2.0, -3.0]


def test_the_gradient_of_the_first_pass_is_the_policy_gradient() -> None:
    """At r = 1 the derivative of a token's loss is −Â times its weight."""
    calls = trained_calls(batch(), [1.0, -1.0, 0.0, 0.0], TWO)
    loss = SurrogateLoss(calls, TWO)
    logprobs = [torch.tensor(call.step.logprobs, requires_grad=True) for call in calls]
    torch.stack([loss(row, each) for row, each in enumerate(logprobs)]).sum().backward()
    assert [each.grad.tolist() for each in logprobs if each.grad is not None] == [[-0.25, -0.25], [-0.25], [0.25]]
