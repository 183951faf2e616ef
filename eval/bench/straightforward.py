"""Scoring agent calls in the plainest way: one full sequence each, everything with gradient, no cache.

It is what :mod:`lightning_modules.token_scores` is compared with, in a bench for speed and in tests for exactness.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lightning_modules.backbone import Backbone, left_pad
from lightning_modules.token_scores import AgentCall


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
