"""What is shown of a batch of rollouts and of an LMPO update, as plain name-to-number mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from data.trajectory import Trajectory
from lightning_modules.lmpo import group_spread, with_variance


def rollout_metrics(trajectories: Sequence[Trajectory], seconds: float) -> dict[str, float]:
    """Mean of every score, response length, and tokens a second."""
    names = list(trajectories[0].score)
    steps = [step for trajectory in trajectories for step in trajectory.steps]
    sampled = sum(step.cost.completion_tokens for step in steps)
    return {
        **{f"score/{name}": sum(t.score[name] for t in trajectories) / len(trajectories) for name in names},
        "response_tokens": sampled / max(1, len(steps)),
        "cut_off": sum(step.finish_reason == "length" for step in steps) / max(1, len(steps)),
        "rollout_tokens_per_s": sampled / seconds,
    }


def group_metrics(rewards: torch.Tensor) -> dict[str, float]:
    """Of rewards ``[groups, members]``, NaN where there is none: mean, spread, and how many groups teach nothing."""
    there = rewards[~rewards.isnan()]
    return {
        "reward_mean": float(there.mean()),
        "reward_std": float(there.std(correction=0)),
        "reward_std_within_groups": float(group_spread(rewards).nanmean()),
        "groups_without_variance": float((~with_variance(rewards)).float().mean()),
    }


def gain_metrics(first: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """Mean over the questions seen before of (mean reward now − at the first visit); nothing when all are new.

    Questions differ in difficulty far more than a policy does from one iteration to the next, so that the plain mean
    reward of small batches goes up and down with what is in them. This does not.
    """
    gains = [reward - first[task] for task, reward in now.items() if task in first]
    return {"reward_gain": sum(gains) / len(gains)} if gains else {}


def ratio_metrics(ratio: torch.Tensor, clipped: torch.Tensor, entropy: torch.Tensor) -> dict[str, float]:
    """Of all trained tokens ``[tokens]`` of one pass."""
    return {
        "ratio_min": float(ratio.min()),
        "ratio_max": float(ratio.max()),
        "clip_fraction": float(clipped.float().mean()),
        "entropy": float(entropy.mean()),
    }


def mismatch_metrics(trainer: torch.Tensor, engine: torch.Tensor) -> dict[str, float]:
    """How far the engine's log-probabilities ``[tokens]`` are from the trainer's under the same weights.

    The KL estimate is the mean of r − 1 − log r with r = trainer / engine, which is never negative.
    """
    difference = trainer - engine
    return {
        "engine_mismatch_max": float(difference.abs().max()),
        "engine_mismatch_kl": float((difference.exp() - 1 - difference).mean()),
    }
