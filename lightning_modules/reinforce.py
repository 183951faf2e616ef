"""Stepwise REINFORCE with usage-aware credit (LTS §3.3, Eq. 6 to 10) as pure functions.

R(τ)  = R_agg + λ_first R_first
A     = (R − μ) / (σ + ε)                       over the G trajectories of one task
Â_t   = A + β · 1[t ∈ U and R > 0]              U: admitted steps whose key was selected later
L     = E_τ[ Σ_t −log π(z_t | c_t) Â_t + λ_sparse π(YES | c_t) ]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from data.bounds import check_at_least
from lightning_modules.lmpo import clipped_surrogate, group_advantages

Correction = Literal["none", "clipped"]


@dataclass(frozen=True)
class ReinforceSettings:
    """Hyper-parameters of the controller's training.

    Attributes:
        group_size: G, episodes a task and epoch (paper: 5).
        temperature: of sampling, and of the log π that is trained (paper: 1.2).
        reward: which score of the benchmark R_agg and R_first are.
        lambda_first: weight of R_first (paper: 1).
        beta: usage bonus (ours; the paper gives no value).
        lambda_sparse: weight of π(YES) (ours; the paper gives no value).
        used_by_other_team: U counts selections by another team only (ours).
        advantage_epsilon: ε (ours).
        importance_correction: ``none`` reuses trajectories as they are (paper); ``clipped`` weighs them by the clipped
            ratio of the present policy to the one that sampled (option).
        clip: of that ratio.
        micro_batch: episodes a forward pass (ours).
    """

    group_size: int = 5
    temperature: float = 1.2
    reward: str = "score"
    lambda_first: float = 1.0
    beta: float = 0.5
    lambda_sparse: float = 0.05
    used_by_other_team: bool = True
    advantage_epsilon: float = 1e-6
    importance_correction: Correction = "none"
    clip: float = 0.2
    micro_batch: int = 5

    def __post_init__(self) -> None:
        if self.group_size < 2:
            raise ValueError(f"reinforce.group_size is {self.group_size}; an advantage needs a group of at least 2")
        if self.temperature <= 0:
            raise ValueError(f"reinforce.temperature is {self.temperature}; greedy decisions explore nothing")
        check_at_least(1, "reinforce", micro_batch=self.micro_batch)
        check_at_least(0, "reinforce", clip=self.clip, advantage_epsilon=self.advantage_epsilon)
        if self.importance_correction not in ("none", "clipped"):
            raise ValueError(f"reinforce.importance_correction is {self.importance_correction!r}; give none or clipped")


def episode_returns(r_agg: torch.Tensor, r_first: torch.Tensor, lambda_first: float) -> torch.Tensor:
    """R(τ), same shape as both (Eq. 6)."""
    return r_agg + lambda_first * r_first


def shaped_advantages(
    returns: torch.Tensor, used: list[list[torch.Tensor]], beta: float, epsilon: float
) -> list[list[torch.Tensor]]:
    """Â_t (Eq. 7 and 8).

    Args:
        returns: ``[tasks, members]``.
        used: for each task and member ``[T]``, whether step t is in U.

    Returns:
        For each task and member ``[T]``.
    """
    base = group_advantages(returns, epsilon)
    return [
        [base[i, j] + beta * (steps & bool(returns[i, j] > 0)).to(base.dtype) for j, steps in enumerate(members)]
        for i, members in enumerate(used)
    ]


@dataclass(frozen=True)
class AdmissionLoss:
    """The two terms of Eq. 10, each summed over decisions and divided by the number of trajectories."""

    policy: torch.Tensor
    sparsity: torch.Tensor

    @property
    def total(self) -> torch.Tensor:
        """L."""
        return self.policy + self.sparsity


def admission_loss(
    logits: torch.Tensor,
    admitted: torch.Tensor,
    advantages: torch.Tensor,
    old_probability: torch.Tensor,
    trajectories: int,
    settings: ReinforceSettings,
) -> AdmissionLoss:
    """Eq. 9 and 10.

    Args:
        logits: YES and NO, ``[decisions, 2]``.
        admitted: z_t, ``[decisions]`` of bool.
        advantages: Â_t, ``[decisions]``.
        old_probability: π_old(YES), ``[decisions]``; read by ``importance_correction: clipped`` alone.
        trajectories: how many the optimiser step has in all, over all its micro-batches.
    """
    log_pi = torch.log_softmax(logits / settings.temperature, dim=-1)
    chosen = torch.where(admitted, log_pi[:, 0], log_pi[:, 1])
    if settings.importance_correction == "clipped":
        old = torch.where(admitted, old_probability, 1 - old_probability).clamp_min(1e-8).log()
        policy = clipped_surrogate(chosen, old, advantages, settings.clip).loss
    else:
        policy = -chosen * advantages
    return AdmissionLoss(
        policy=policy.sum() / trajectories,
        sparsity=settings.lambda_sparse * log_pi[:, 0].exp().sum() / trajectories,
    )
