"""Log-probabilities of sampled tokens under latents, at the cost of the response alone.

Latents stand at the end of the prompt, so nothing before them depends on φ: the words before run once under ``no_grad``
(once for all calls that share them), and only [latents ; the template's last tokens ; response] runs with gradient
against that key/value cache. Exact, and the backward pass does not grow with the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers.cache_utils import DynamicCache

from lightning_modules.backbone import Backbone
from rollout.left_pad import left_pad


@dataclass(frozen=True)
class AgentCall:
    """One agent call as the trainer sees it: the very token ids that were sent and sampled.

    Attributes:
        prefix_ids: prompt tokens before the latents.
        suffix_ids: prompt tokens after them.
        output_ids: sampled tokens.
        latent_row: which row of the latents this call was given.
    """

    prefix_ids: tuple[int, ...]
    suffix_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    latent_row: int


@dataclass(frozen=True)
class TokenScores:
    """Ragged, flattened in call order, ``[Σ response lengths]``. ``entropy`` carries no gradient."""

    logprobs: torch.Tensor
    entropy: torch.Tensor


def micro_batches(calls: Sequence[AgentCall], size: int) -> Iterator[list[int]]:
    """Indices of ``calls`` in batches of ``size``; prefixes that begin alike, then equal lengths, go together."""
    order = sorted(
        range(len(calls)),
        key=lambda row: (calls[row].prefix_ids, len(calls[row].suffix_ids) + len(calls[row].output_ids)),
    )
    yield from (order[at : at + size] for at in range(0, len(order), size))


def score_calls(
    backbone: Backbone, calls: Sequence[AgentCall], latents: torch.Tensor, temperature: float
) -> TokenScores:
    """Score one micro-batch with the frozen agent; adapters must be off.

    Args:
        backbone: the agents' policy π_θ.
        calls: the micro-batch.
        latents: ``[rows, latents, hidden]``, indexed by :attr:`AgentCall.latent_row`.
        temperature: that the tokens were sampled at.
    """
    device = latents.device
    cache, prefix_mask = _prefix_cache(backbone, calls, device)
    tails = [_tail(backbone, call, latents) for call in calls]
    lengths = torch.tensor([tail.shape[0] for tail in tails], device=device)
    embeds = nn.utils.rnn.pad_sequence(tails, batch_first=True)
    places = torch.arange(embeds.shape[1], device=device)[None]
    states, _ = backbone.hidden_states(
        embeds,
        mask=torch.cat([prefix_mask, (places < lengths[:, None]).long()], dim=1),
        positions=prefix_mask.sum(dim=1, keepdim=True) + places,
        cache=cache,
    )
    # The position before a token predicts it, so a response of R tokens is scored at the last R tail positions.
    scored = torch.cat(
        [
            states[row, tail.shape[0] - len(call.output_ids) : tail.shape[0]]
            for row, (call, tail) in enumerate(zip(calls, tails, strict=True))
        ]
    )
    targets = torch.tensor([token for call in calls for token in call.output_ids], device=device)
    distribution = torch.log_softmax(backbone.logits(scored) / temperature, dim=-1)
    return TokenScores(
        logprobs=distribution.gather(-1, targets[:, None]).squeeze(-1),
        entropy=-(distribution.detach().exp() * distribution.detach()).sum(dim=-1),
    )


@torch.no_grad()
def _prefix_cache(
    backbone: Backbone, calls: Sequence[AgentCall], device: torch.device
) -> tuple[DynamicCache, torch.Tensor]:
    """Keys and values of every call's prefix, and the mask ``[calls, longest]``.

    Each distinct prefix is computed once, and what all of them begin with once for the whole micro-batch: the members
    of a group differ only from the first reply on.
    """
    rows = {prefix: row for row, prefix in enumerate(dict.fromkeys(call.prefix_ids for call in calls))}
    shared = common_length(list(rows))
    cache, mask = None, torch.ones(len(rows), shared, dtype=torch.long, device=device)
    if shared > 0:
        head = torch.tensor(next(iter(rows))[:shared], device=device)
        _, cache = backbone.hidden_states(*left_pad([backbone.embed(head)]), use_cache=True)
    if len(rows) > 1:
        rests = [backbone.embed(torch.tensor(prefix[shared:], dtype=torch.long, device=device)) for prefix in rows]
        embeds, rest_mask, positions = left_pad(rests)
        mask = torch.cat([mask, rest_mask], dim=1)
        if cache is not None:
            cache.batch_select_indices(torch.zeros(len(rows), dtype=torch.long, device=device))
        _, cache = backbone.hidden_states(embeds, mask, shared + positions, cache, use_cache=True)
    assert cache is not None, "a prompt without words before the latents"
    index = torch.tensor([rows[call.prefix_ids] for call in calls], device=device)
    cache.batch_select_indices(index)
    return cache, mask[index]


def common_length(rows: Sequence[tuple[int, ...]]) -> int:
    """How many leading ids all ``rows`` share."""
    first, last = min(rows), max(rows)  # in lexicographic order whatever lies between shares what these two share
    return next(
        (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first)
    )


def _tail(backbone: Backbone, call: AgentCall, latents: torch.Tensor) -> torch.Tensor:
    """[latents ; suffix ; response without its last token], ``[tail, hidden]``."""
    words = backbone.embed(
        torch.tensor([*call.suffix_ids, *call.output_ids[:-1]], dtype=torch.long, device=latents.device)
    )
    return torch.cat([latents[call.latent_row].to(words.dtype), words])
