"""Every admission decision of an episode in one forward pass, exactly as if each had been scored alone.

All contexts c_t of an episode begin with [query ; keys], of which decision t saw the first M_t. So the query and all
keys stand once at the front, the three tokens of each decision behind them, and a mask lets decision t see the query,
its own M_t keys and itself; position ids are those that its tokens would have had alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lightning_modules.backbone import Backbone
from lightning_modules.controller import STEP_TOKENS, Controller


@dataclass(frozen=True)
class EmbeddedEpisode:
    """φ of everything that an episode's T decisions read.

    Attributes:
        query: ``[hidden]``.
        keys: ``[M, hidden]``, in the order of admission.
        steps: ``[T, 3, hidden]``: φ(u_t), φ(s_t), φ(o_t).
        seen: M_t of each decision.
    """

    query: torch.Tensor
    keys: torch.Tensor
    steps: torch.Tensor
    seen: tuple[int, ...]

    @property
    def length(self) -> int:
        """Tokens of the packed sequence."""
        return 1 + self.keys.shape[0] + STEP_TOKENS * len(self.seen)


def score_packed(backbone: Backbone, controller: Controller, episodes: Sequence[EmbeddedEpisode]) -> torch.Tensor:
    """YES and NO logits ``[Σ T, 2]`` of all decisions, episode after episode, with gradient; adapters must be on."""
    length = max(episode.length for episode in episodes)
    rows = [_tokens(controller, episode) for episode in episodes]
    embeds = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    dtype = backbone.model.get_input_embeddings().weight.dtype
    masks = torch.stack([block_mask(e.keys.shape[0], e.seen, length) for e in episodes])[:, None]
    additive = torch.zeros(masks.shape, dtype=dtype).masked_fill(~masks, torch.finfo(dtype).min).to(embeds.device)
    positions = torch.stack([position_ids(e.keys.shape[0], e.seen, length) for e in episodes]).to(embeds.device)
    states, _ = backbone.hidden_states(embeds.to(dtype), additive, positions)
    last = [states[row, e.keys.shape[0] + STEP_TOKENS : e.length : STEP_TOKENS] for row, e in enumerate(episodes)]
    return controller.logits(backbone, torch.cat(last))


def score_separately(backbone: Backbone, controller: Controller, episode: EmbeddedEpisode) -> torch.Tensor:
    """The same logits ``[T, 2]`` by one forward pass a decision: what the packed form is measured against."""
    found = []
    for seen, step in zip(episode.seen, episode.steps, strict=True):
        alone = EmbeddedEpisode(episode.query, episode.keys[:seen], step[None], (seen,))
        tokens = _tokens(controller, alone)[None].to(backbone.model.get_input_embeddings().weight.dtype)
        places = torch.arange(tokens.shape[1], device=tokens.device)[None]
        states, _ = backbone.hidden_states(tokens, torch.ones_like(places), places)
        found.append(controller.logits(backbone, states[0, -1]))
    return torch.stack(found)


def block_mask(keys: int, seen: Sequence[int], length: int) -> torch.Tensor:
    """Which position sees which, ``[length, length]``; padding behind an episode sees itself alone.

    Args:
        keys: M, all keys of the episode.
        seen: M_t of each decision.
        length: at least ``1 + keys + 3 len(seen)``.
    """
    mask = torch.eye(length, dtype=torch.bool)
    mask[: 1 + keys, : 1 + keys] = torch.ones(1 + keys, 1 + keys).tril().bool()
    for place, count in enumerate(seen):
        start = 1 + keys + STEP_TOKENS * place
        own = slice(start, start + STEP_TOKENS)
        mask[own, : 1 + count] = True
        mask[own, own] = torch.ones(STEP_TOKENS, STEP_TOKENS).tril().bool()
    return mask


def position_ids(keys: int, seen: Sequence[int], length: int) -> torch.Tensor:
    """``[length]``: the query is 0, the keys follow, and decision t's tokens stand at M_t + 1 to M_t + 3."""
    own = [1 + count + token for count in seen for token in range(STEP_TOKENS)]
    places = [*range(1 + keys), *own]
    return torch.tensor(places + [0] * (length - len(places)))


def _tokens(controller: Controller, episode: EmbeddedEpisode) -> torch.Tensor:
    return torch.cat(
        [
            controller.query(episode.query)[None],
            controller.memory(episode.keys),
            controller.step(episode.steps).flatten(0, 1),
        ]
    )
