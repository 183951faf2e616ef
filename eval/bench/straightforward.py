"""The LMPO update in the plainest way: composer run for every call, one full sequence each, everything with gradient.

It is what :mod:`lightning_modules.token_scores` is compared with, in a bench for speed and in tests for exactness. One
thing it does not do badly on purpose: only the response positions go through the output layer, as in ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lightning_modules.backbone import Backbone
from lightning_modules.composer import Composer, ComposerText
from lightning_modules.latent_gradient import CallLoss
from lightning_modules.token_scores import AgentCall
from rollout.left_pad import left_pad


def straightforward_update(
    backbone: Backbone,
    composer: Composer,
    texts: Sequence[ComposerText],
    calls: Sequence[AgentCall],
    call_loss: CallLoss,
    temperature: float,
    micro_batch: int,
) -> float:
    """Backward through ``micro_batch`` calls at a time, the composer included; returns the summed loss.

    Args:
        backbone: the agents' policy, and with its adapters the composer's.
        composer: the rest of σ_φ; its gradients and the adapters' are added to.
        texts: what the composer reads, by :attr:`AgentCall.latent_row`.
        calls: all of the update, in the order in which they are taken.
        call_loss: index of a call and its log-probabilities ``[response]`` to its part of the loss.
        temperature: that the tokens were sampled at.
        micro_batch: calls a forward pass.
    """
    total = 0.0
    for at in range(0, len(calls), micro_batch):
        taken = calls[at : at + micro_batch]
        with backbone.adapted():
            latents = composer(backbone, [texts[call.latent_row] for call in taken])
        logprobs = full_sequence_logprobs(backbone, taken, latents, temperature)
        loss = torch.stack([call_loss(at + row, part) for row, part in enumerate(logprobs)]).sum()
        with backbone.adapted():
            loss.backward()
        total += float(loss.detach())
    return total


def full_sequence_logprobs(
    backbone: Backbone, calls: Sequence[AgentCall], latents: torch.Tensor, temperature: float
) -> list[torch.Tensor]:
    """Log-probabilities ``[response]`` of every call from one forward pass over [prefix; latents; suffix; response].

    Args:
        backbone: with its adapters off.
        calls: the micro-batch; :attr:`AgentCall.latent_row` is not used.
        latents: ``[calls, latents, hidden]``, one row for each call.
        temperature: that the tokens were sampled at.
    """
    rows = [_sequence(backbone, call, row) for call, row in zip(calls, latents, strict=True)]
    states, _ = backbone.hidden_states(*left_pad(rows))
    scored = [
        backbone.logits(state[-len(call.output_ids) - 1 : -1]) / temperature
        for call, state in zip(calls, states, strict=True)
    ]
    return [
        torch.log_softmax(logits, dim=-1).gather(-1, _ids(call.output_ids, logits)[:, None]).squeeze(-1)
        for call, logits in zip(calls, scored, strict=True)
    ]


def _sequence(backbone: Backbone, call: AgentCall, latents: torch.Tensor) -> torch.Tensor:
    prefix = backbone.embed(_ids(call.prefix_ids, latents))
    rest = backbone.embed(_ids(call.suffix_ids + call.output_ids, latents))
    return torch.cat([prefix, latents.to(prefix.dtype), rest])


def _ids(ids: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(ids, dtype=torch.long, device=like.device)
