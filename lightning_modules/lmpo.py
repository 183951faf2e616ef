"""Latent Memory Policy Optimization (LatentMem §4.4, Eq. 10-13) as pure functions.

Departures from the published code, all towards the paper: every turn of every agent is trained, old log-probabilities
are those of the policy that sampled, and the normaliser is the number of tokens (see ``docs/paper_index.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from data.bounds import check_at_least


@dataclass(frozen=True)
class LMPOSettings:
    """Hyper-parameters of the LMPO stage.

    Attributes:
        group_size: G (ours: 8; the paper gives none).
        reward: which score of the benchmark is R.
        temperature: when sampling (paper: 1.0).
        clip: ε of Eq. 12 (paper: 0.2).
        prompt_reuse: optimiser steps on one batch of rollouts (paper: 1; with 1 the ratio is 1 and never clipped).
        normaliser: ``group_tokens`` averages over all tokens of a group (Eq. 11), then over groups;
            ``batch_tokens`` over all tokens of the batch.
        advantage_epsilon: ε of Eq. 10 (ours).
        old_logprobs: ``recompute`` takes the trainer's own first pass (ours), ``engine`` what the engine reported.
        micro_batch: agent calls a forward pass (paper: 8).
    """

    group_size: int = 8
    reward: str = "exact_match"
    temperature: float = 1.0
    clip: float = 0.2
    prompt_reuse: int = 1
    normaliser: str = "group_tokens"
    advantage_epsilon: float = 1e-4
    old_logprobs: str = "recompute"
    micro_batch: int = 8

    def __post_init__(self) -> None:
        if self.group_size < 2:
            raise ValueError(f"lmpo.group_size is {self.group_size}; an advantage needs a group of at least 2")
        if self.temperature <= 0:
            raise ValueError(f"lmpo.temperature is {self.temperature}; a group of greedy members has no variance")
        if self.normaliser not in ("group_tokens", "batch_tokens"):
            raise ValueError(f"lmpo.normaliser is {self.normaliser!r}; give group_tokens or batch_tokens")
        if self.old_logprobs not in ("recompute", "engine"):
            raise ValueError(f"lmpo.old_logprobs is {self.old_logprobs!r}; give recompute or engine")
        check_at_least(1, "lmpo", prompt_reuse=self.prompt_reuse, micro_batch=self.micro_batch)
        check_at_least(0, "lmpo", clip=self.clip, advantage_epsilon=self.advantage_epsilon)


def group_advantages(rewards: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Â of Eq. 10. ``rewards [groups, members]`` to the same shape; a group without variance gets exact zeros.

    The standard deviation is the population's (divided by G). A member without a reward (NaN) is left out of its group.
    """
    difference = rewards - rewards.nanmean(dim=1, keepdim=True)
    taught = with_variance(rewards)[:, None] & ~rewards.isnan()
    return torch.where(taught, difference / (group_spread(rewards)[:, None] + epsilon), torch.zeros_like(rewards))


def group_spread(rewards: torch.Tensor) -> torch.Tensor:
    """Population standard deviation of each group of ``rewards [groups, members]``, ``[groups]``; NaN is no reward."""
    return (rewards - rewards.nanmean(dim=1, keepdim=True)).square().nanmean(dim=1).sqrt()


def with_variance(rewards: torch.Tensor) -> torch.Tensor:
    """Which groups of ``rewards [groups, members]`` teach anything, ``[groups]``.

    Asked of the rewards themselves: in float32 the deviation of seven times 0.81 is not 0. NaN is no reward.
    """
    return rewards.nan_to_num(nan=-torch.inf).amax(dim=1) > rewards.nan_to_num(nan=torch.inf).amin(dim=1)


def token_weights(lengths: Sequence[int], groups: Sequence[int], normaliser: str) -> list[float]:
    """How much one token of each call weighs in Eq. 11.

    Args:
        lengths: sampled tokens of each call of the groups that have variance.
        groups: the group that each call belongs to.
        normaliser: see :class:`LMPOSettings`.

    Returns:
        One weight a call; Σ weight · length is 1.
    """
    if normaliser == "batch_tokens":
        return [1 / sum(lengths)] * len(lengths)
    totals: dict[int, int] = {}
    for length, group in zip(lengths, groups, strict=True):
        totals[group] = totals.get(group, 0) + length
    return [1 / (totals[group] * len(totals)) for group in groups]


@dataclass(frozen=True)
class Surrogate:
    """Eq. 12 for every token, ``[tokens]``: the loss to be minimised, the ratio, and where the clip took effect."""

    loss: torch.Tensor
    ratio: torch.Tensor
    clipped: torch.Tensor


def clipped_surrogate(
    logprobs: torch.Tensor, old_logprobs: torch.Tensor, advantage: torch.Tensor | float, clip: float
) -> Surrogate:
    """−min(r Â, clip(r, 1−ε, 1+ε) Â) with r of Eq. 13. Tensors are ``[tokens]``; ``advantage`` may be one number."""
    ratio = torch.exp(logprobs - old_logprobs)
    free = ratio * advantage
    bounded = ratio.clamp(1 - clip, 1 + clip) * advantage
    return Surrogate(-torch.minimum(free, bounded), ratio.detach(), (bounded < free).detach())
