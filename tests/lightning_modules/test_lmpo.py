"""Equations 10 to 13 against values worked by hand, and the invariants behind them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_modules.lmpo import LMPOSettings, clipped_surrogate, group_advantages, token_weights

REWARD = st.floats(0, 1, width=32)
GROUPS = st.integers(2, 6).flatmap(lambda size: st.lists(st.lists(REWARD, min_size=size, max_size=size), min_size=1))
CALLS = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 4)), min_size=1, max_size=20)


def test_advantages_by_hand() -> None:
    # Means 0.25 and 0.5; population deviations sqrt(3)/4 = 0.4330127 and 0.5.
    rewards = torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    expected = torch.tensor([[1.7320508, -0.5773503, -0.5773503, -0.5773503], [1.0, 1.0, -1.0, -1.0]])
    torch.testing.assert_close(group_advantages(rewards, 0.0), expected)


def test_epsilon_is_added_to_the_deviation() -> None:
    torch.testing.assert_close(group_advantages(torch.tensor([[1.0, 0.0]]), 0.5), torch.tensor([[0.5, -0.5]]))


def test_a_member_without_reward_is_left_out_of_its_group() -> None:
    nan = math.nan
    rewards = torch.tensor([[1.0, nan, 0.0], [nan, 1.0, 1.0], [nan, nan, 1.0], [nan, nan, nan]])
    expected = torch.zeros(4, 3)
    expected[0] = torch.tensor([1.0, 0.0, -1.0])
    torch.testing.assert_close(group_advantages(rewards, 0.0), expected)


@given(GROUPS)
def test_advantages_of_a_group_sum_to_zero(rewards: list[list[float]]) -> None:
    advantages = group_advantages(torch.tensor(rewards, dtype=torch.float64), 1e-4)
    torch.testing.assert_close(advantages.sum(dim=1), torch.zeros(len(rewards), dtype=torch.float64))


@given(REWARD, st.integers(2, 9))
def test_a_group_without_variance_gets_exact_zeros(reward: float, size: int) -> None:
    assert group_advantages(torch.full((1, size), reward), 1e-4).count_nonzero() == 0


@given(GROUPS, st.floats(-3, 3), st.floats(0.5, 4))
def test_advantages_ignore_the_scale_of_the_reward(rewards: list[list[float]], shift: float, scale: float) -> None:
    plain = torch.tensor(rewards, dtype=torch.float64)
    varied = plain.std(dim=1, correction=0) > 1e-3
    moved = group_advantages(plain * scale + shift, 0.0)
    torch.testing.assert_close(moved[varied], group_advantages(plain, 0.0)[varied], rtol=1e-6, atol=1e-6)


def test_token_weights_by_hand() -> None:
    # Group 7 has 2 + 4 = 6 tokens, group 9 has 3; two groups weigh one half each.
    weights = token_weights([2, 3, 4], [7, 9, 7], "group_tokens")
    assert weights == pytest.approx([1 / 12, 1 / 6, 1 / 12])
    assert token_weights([2, 3, 4], [7, 9, 7], "batch_tokens") == pytest.approx([1 / 9] * 3)


@given(CALLS, st.sampled_from(["group_tokens", "batch_tokens"]))
def test_the_weights_of_all_tokens_sum_to_one(calls: list[tuple[int, int]], normaliser: str) -> None:
    lengths, groups = zip(*calls, strict=True)
    weights = token_weights(lengths, groups, normaliser)
    assert sum(w * n for w, n in zip(weights, lengths, strict=True)) == pytest.approx(1)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_one_group_is_the_mean_over_its_tokens(lengths: list[int]) -> None:
    losses = [torch.randn(length, dtype=torch.float64) for length in lengths]
    weights = token_weights(lengths, [0] * len(lengths), "group_tokens")
    summed = sum(float(part.sum()) * weight for part, weight in zip(losses, weights, strict=True))
    assert summed == pytest.approx(float(torch.cat(losses).mean()), abs=1e-12)


@given(CALLS)
def test_every_group_weighs_the_same(calls: list[tuple[int, int]]) -> None:
    lengths, groups = zip(*calls, strict=True)
    weights = token_weights(lengths, groups, "group_tokens")
    shares = dict.fromkeys(groups, 0.0)
    for weight, length, group in zip(weights, lengths, groups, strict=True):
        shares[group] += weight * length
    assert list(shares.values()) == pytest.approx([1 / len(shares)] * len(shares))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "clipped", "slope"),
    [
        # min(r A, clip(r, 0.8, 1.2) A), negated; d loss / d log-probability is -r A, or 0 where the clip acts.
        (0.5, 2.0, -1.0, False, -1.0),
        (1.1, 2.0, -2.2, False, -2.2),
        (1.5, 2.0, -2.4, True, 0.0),
        (0.5, -2.0, 1.6, True, 0.0),
        (1.1, -2.0, 2.2, False, 2.2),
        (1.5, -2.0, 3.0, False, 3.0),
    ],
    ids=["good-rarer", "good-inside", "good-likelier", "bad-rarer", "bad-inside", "bad-likelier"],
)
def test_clip_by_hand(ratio: float, advantage: float, loss: float, clipped: bool, slope: float) -> None:
    old = torch.tensor([-2.0])
    new = (old + math.log(ratio)).requires_grad_()
    surrogate = clipped_surrogate(new, old, advantage, 0.2)
    surrogate.loss.sum().backward()
    assert surrogate.loss.item() == pytest.approx(loss, rel=1e-5)
    assert surrogate.ratio.item() == pytest.approx(ratio, rel=1e-5)
    assert bool(surrogate.clipped) is clipped
    assert new.grad is not None
    assert new.grad.item() == (0.0 if clipped else pytest.approx(slope, rel=1e-5))


def test_the_same_policy_gives_ratio_one_and_the_policy_gradient() -> None:
    logprobs = torch.tensor([-0.1, -3.0, -7.5], requires_grad=True)
    surrogate = clipped_surrogate(logprobs, logprobs.detach(), 1.5, 0.2)
    surrogate.loss.sum().backward()
    assert surrogate.ratio.tolist() == [1.0, 1.0, 1.0]
    assert not surrogate.clipped.any()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [-1.5, -1.5, -1.5]


@settings(max_examples=200)
@given(st.floats(-2, 2), st.floats(-3, 3), st.floats(0.05, 0.5))
def test_the_surrogate_is_never_better_than_the_free_ratio(shift: float, advantage: float, clip: float) -> None:
    old = torch.tensor([-1.0], dtype=torch.float64)
    surrogate = clipped_surrogate(old + shift, old, advantage, clip)
    assert surrogate.loss.item() >= -math.exp(shift) * advantage - 1e-12
    assert bool(surrogate.clipped) <= (abs(math.exp(shift) - 1) > clip - 1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group_size": 1}, "lmpo.group_size is 1"),
        ({"normaliser": "mean"}, "lmpo.normaliser is 'mean'; give group_tokens or batch_tokens"),
        ({"old_logprobs": "new"}, "lmpo.old_logprobs is 'new'; give recompute or engine"),
        ({"prompt_reuse": 0}, "lmpo.prompt_reuse is 0"),
        ({"temperature": 0.0}, "lmpo.temperature is 0.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LMPOSettings(**change)  # type: ignore[arg-type]
