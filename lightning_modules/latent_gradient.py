"""∂loss/∂latents over many agent calls, micro-batch by micro-batch, without touching the composer.

The composer's own backward pass then runs once for all calls: ``latents.backward(gradient)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from lightning_modules.backbone import Backbone
from lightning_modules.token_scores import AgentCall, micro_batches, score_calls

CallLoss = Callable[[int, torch.Tensor], torch.Tensor]
"""(index of the call, log-probabilities ``[response]``) to its part of the loss, a scalar; parts are summed."""


@dataclass(frozen=True)
class LatentGradient:
    """What the agents' backward passes gave.

    Attributes:
        gradient: ``[rows, latents, hidden]``.
        loss: the summed loss.
        logprobs: of every call, ``[response]`` each, detached.
        entropy: of every call, ``[response]`` each.
    """

    gradient: torch.Tensor
    loss: float
    logprobs: list[torch.Tensor]
    entropy: list[torch.Tensor]


def latent_gradient(
    backbone: Backbone,
    calls: Sequence[AgentCall],
    latents: torch.Tensor,
    call_loss: CallLoss,
    temperature: float,
    micro_batch: int,
) -> LatentGradient:
    """Score ``calls`` under ``latents`` ``[rows, latents, hidden]`` and differentiate the summed loss."""
    leaf = latents.detach().requires_grad_()
    total = 0.0
    logprobs: dict[int, torch.Tensor] = {}
    entropy: dict[int, torch.Tensor] = {}
    for rows in micro_batches(calls, micro_batch):
        scores = score_calls(backbone, [calls[row] for row in rows], leaf, temperature)
        lengths = [len(calls[row].output_ids) for row in rows]
        parts = list(zip(rows, scores.logprobs.split(lengths), strict=True))
        loss = torch.stack([call_loss(row, part) for row, part in parts]).sum()
        loss.backward()
        total += float(loss.detach())
        logprobs |= {row: part.detach() for row, part in parts}
        entropy |= dict(zip(rows, scores.entropy.split(lengths), strict=True))
    assert leaf.grad is not None
    order = range(len(calls))
    return LatentGradient(leaf.grad, total, [logprobs[row] for row in order], [entropy[row] for row in order])
