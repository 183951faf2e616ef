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
    """Score ``calls`` under ``latents`` ``[rows, latents, hidden]`` and differentiate the summed loss.

    Calls that are the same in prompt, latents and response are scored once, whatever their advantages: the members of
    a group repeat one another more and more as a policy sharpens.
    """
    leaf = latents.detach().requires_grad_()
    total = 0.0
    logprobs: dict[int, torch.Tensor] = {}
    entropy: dict[int, torch.Tensor] = {}
    same: dict[AgentCall, list[int]] = {}
    for index, call in enumerate(calls):
        same.setdefault(call, []).append(index)
    distinct = list(same)
    for rows in micro_batches(distinct, micro_batch):
        batch = [distinct[row] for row in rows]
        scores = score_calls(backbone, batch, leaf, temperature)
        lengths = [len(call.output_ids) for call in batch]
        scored = zip(batch, scores.logprobs.split(lengths), scores.entropy.split(lengths), strict=True)
        parts = [(index, part, spread) for call, part, spread in scored for index in same[call]]
        loss = torch.stack([call_loss(index, part) for index, part, _ in parts]).sum()
        loss.backward()
        total += float(loss.detach())
        logprobs |= {index: part.detach() for index, part, _ in parts}
        entropy |= {index: spread for index, _, spread in parts}
    assert leaf.grad is not None
    order = range(len(calls))
    return LatentGradient(leaf.grad, total, [logprobs[row] for row in order], [entropy[row] for row in order])
