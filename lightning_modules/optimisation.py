"""The optimiser and its schedule: AdamW, linear warm-up, cosine decay."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


@dataclass(frozen=True)
class OptimiserSettings:
    """AdamW (paper, LatentMem Table 3).

    Attributes:
        lr: of the LoRA weights (paper: 1e-5).
        head_lr: of queries, projection and scale; ``None`` takes ``lr`` (ours).
        offset_lr: of the latents' offset, which alone is a soft prompt and bears a far higher rate; ``None`` takes
            ``head_lr`` (ours).
        weight_decay: (ours).
        warmup_ratio: share of the stage's iterations with a rising rate (paper: 0.1).
        gradient_clip_val: largest gradient norm (paper: 1.0).
    """

    lr: float = 1e-5
    head_lr: float | None = None
    offset_lr: float | None = None
    weight_decay: float = 0.0
    warmup_ratio: float = 0.1
    gradient_clip_val: float = 1.0


def build_optimiser(
    adapters: Iterable[nn.Parameter],
    heads: Iterable[nn.Parameter],
    offset: nn.Parameter,
    settings: OptimiserSettings,
    steps: int,
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """The optimiser and the schedule of a stage of ``steps`` iterations."""
    head_lr = settings.lr if settings.head_lr is None else settings.head_lr
    offset_lr = head_lr if settings.offset_lr is None else settings.offset_lr
    groups = [
        {"params": list(adapters), "lr": settings.lr},
        {"params": list(heads), "lr": head_lr},
        {"params": [offset], "lr": offset_lr},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=settings.weight_decay)
    warmup = round(settings.warmup_ratio * steps)
    return optimiser, LambdaLR(optimiser, lambda step: rate_factor(step, warmup, steps))


def rate_factor(step: int, warmup: int, steps: int) -> float:
    """Share of the full rate in iteration ``step`` of ``steps``, counted from 0.

    The first iteration's is above 0, unlike in Hugging Face's schedule: an iteration of RL costs a rollout.
    """
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup)))) / 2
