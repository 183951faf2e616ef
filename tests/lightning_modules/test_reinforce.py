"""Equations 6 to 10 of LTS against values worked by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightning_modules.reinforce import ReinforceSettings, admission_loss, episode_returns, shaped_advantages

PLAIN = ReinforceSettings(temperature=1.0, lambda_sparse=0.0)


def loss(settings: ReinforceSettings = PLAIN, **changes: Any) -> Any:
    """Two decisions with π(YES) = 0.8 and 0.25: one admitted with advantage 2, one rejected with advantage −1."""
    logits = torch.tensor([[math.log(4), 0.0], [0.0, math.log(3)]], dtype=torch.float64)
    given = {
        "logits": logits,
        "admitted": torch.tensor([True, False]),
        "advantages": torch.tensor([2.0, -1.0], dtype=torch.float64),
        "old_probability": torch.tensor([0.8, 0.25], dtype=torch.float64),
        "trajectories": 1,
    }
    return admission_loss(**{**given, **changes}, settings=settings)


def test_the_return_adds_the_first_answer() -> None:
    got = episode_returns(torch.tensor([1.0, 0.0]), torch.tensor([0.5, 1.0]), lambda_first=0.5)
    torch.testing.assert_close(got, torch.tensor([1.25, 0.5]))


def test_advantages_by_hand() -> None:
    # Returns 2 and 0: mean 1, population deviation 1, so A = +1 and -1.
    used = [[torch.tensor([True, False]), torch.tensor([True])]]
    (members,) = shaped_advantages(torch.tensor([[2.0, 0.0]]), used, beta=0.5, epsilon=0.0)
    torch.testing.assert_close(members[0], torch.tensor([1.5, 1.0]))  # the used step has the bonus
    torch.testing.assert_close(members[1], torch.tensor([-1.0]))  # used, but R = 0: no bonus


def test_without_variance_the_bonus_is_all_there_is() -> None:
    used = [[torch.tensor([True, False]), torch.tensor([False])]]
    (members,) = shaped_advantages(torch.tensor([[1.0, 1.0]]), used, beta=0.5, epsilon=1e-6)
    torch.testing.assert_close(members[0], torch.tensor([0.5, 0.0]))
    torch.testing.assert_close(members[1], torch.tensor([0.0]))


@given(st.lists(st.floats(0, 2, width=32), min_size=2, max_size=6), st.floats(0, 2))
def test_the_bonus_only_ever_adds(returns: list[float], beta: float) -> None:
    used = [[torch.tensor([True, False]) for _ in returns]]
    (members,) = shaped_advantages(torch.tensor([returns]), used, beta, 1e-6)
    for value, advantages in zip(returns, members, strict=True):
        assert float(advantages[0] - advantages[1]) == pytest.approx(beta if value > 0 else 0, abs=1e-4)


def test_policy_term_by_hand() -> None:
    # -2 ln 0.8 + 1 ln 0.75, over one trajectory.
    assert float(loss().policy) == pytest.approx(-2 * math.log(0.8) + math.log(0.75))
    assert float(loss().total) == pytest.approx(float(loss().policy))


def test_sparsity_term_by_hand() -> None:
    # 0.1 (0.8 + 0.25): π(YES) of every decision, admitted or not.
    got = loss(ReinforceSettings(temperature=1.0, lambda_sparse=0.1))
    assert float(got.sparsity) == pytest.approx(0.105)
    assert float(got.total) == pytest.approx(float(got.policy) + 0.105)


def test_both_terms_are_means_over_trajectories() -> None:
    settings = ReinforceSettings(temperature=1.0, lambda_sparse=0.1)
    assert float(loss(settings, trajectories=4).total) == pytest.approx(float(loss(settings).total) / 4)


def test_probabilities_are_those_at_the_sampling_temperature() -> None:
    # Logit difference ln 4 at T = 2 is ln 2: π(YES) = 2/3; and -ln 3 becomes -ln √3.
    got = loss(ReinforceSettings(temperature=2.0, lambda_sparse=1.0))
    no = math.sqrt(3) / (1 + math.sqrt(3))
    assert float(got.policy) == pytest.approx(-2 * math.log(2 / 3) + math.log(no))
    assert float(got.sparsity) == pytest.approx(2 / 3 + 1 - no)


def test_the_gradient_of_the_sparsity_term_by_hand() -> None:
    logits = torch.tensor([[math.log(4), 0.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    settings = ReinforceSettings(temperature=1.0, lambda_sparse=0.5)
    loss(settings, logits=logits, advantages=torch.zeros(2, dtype=torch.float64)).total.backward()
    assert logits.grad is not None
    # λ π (1 − π): 0.5 · 0.8 · 0.2 and 0.5 · 0.5 · 0.5.
    torch.testing.assert_close(logits.grad[:, 0], torch.tensor([0.08, 0.125], dtype=torch.float64))


def test_clipped_correction_by_hand() -> None:
    # Old chances 0.5 and 0.75 of what was done: ratios 1.6 and 1. The first is clipped at 1.2: -(1.2 · 2) - (1 · -1).
    settings = ReinforceSettings(temperature=1.0, lambda_sparse=0.0, importance_correction="clipped", clip=0.2)
    got = loss(settings, old_probability=torch.tensor([0.5, 0.25], dtype=torch.float64))
    assert float(got.policy) == pytest.approx(-2.4 + 1.0)


def test_clipped_correction_has_the_plain_gradient_where_nothing_has_changed() -> None:
    grads = []
    for correction in ("none", "clipped"):
        logits = torch.tensor([[math.log(4), 0.0], [0.0, math.log(3)]], dtype=torch.float64, requires_grad=True)
        settings = ReinforceSettings(temperature=1.0, lambda_sparse=0.0, importance_correction=correction)
        loss(settings, logits=logits).total.backward()
        grads.append(logits.grad)
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"group_size": 1}, "reinforce.group_size is 1"),
        ({"temperature": 0.0}, "reinforce.temperature is 0"),
        ({"importance_correction": "ppo"}, "give none or clipped"),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReinforceSettings(**setting)
