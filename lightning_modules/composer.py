"""The memory composer σ_φ (LatentMem §4.3, Eq. 5): role profile and retrieved trajectories in, L' latent tokens out.

The trajectories come first, so that all roles of one query share their pass: one sequence, a trunk and a branch a role,
kept apart by the attention mask. Exact, and the cost of a role is its profile and L' positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from data.bounds import check_at_least
from data.trajectory import Trajectory, trajectory_text
from lightning_modules.backbone import Backbone


@dataclass(frozen=True)
class ComposerSettings:
    """Settings of σ_φ.

    Attributes:
        latents: L' (paper: 8).
        max_length: of the trajectories' text, in tokens; longer text keeps its beginning (paper: the prompt limit,
            10,240). The role profile comes on top.
        use_role: read the role profile γ; off is the paper's ablation ``without_role``.
        latent_std: of an untrained composer's latents, per dimension (ours: so small that they cost an agent little).
        micro_batch: queries a forward pass.
    """

    latents: int = 8
    max_length: int = 10240
    use_role: bool = True
    latent_std: float = 0.01
    micro_batch: int = 8

    def __post_init__(self) -> None:
        check_at_least(1, "composer", latents=self.latents, max_length=self.max_length, micro_batch=self.micro_batch)
        check_at_least(0, "composer", latent_std=self.latent_std)


@dataclass(frozen=True)
class ComposerText:
    """What σ_φ reads: the role profile γ (empty in the ablation ``without_role``) and the trajectories T_q."""

    role: str
    experience: str


def composer_text(profile: str, trajectories: Sequence[Trajectory], use_role: bool = True) -> ComposerText:
    """γ and T_q as text."""
    experience = "\n\n".join(trajectory_text(trajectory) for trajectory in trajectories)
    return ComposerText(f"\nRole: {profile}\n" if use_role else "", experience or "(no experience)")


class Composer(nn.Module):
    """Query vectors appended to the text; their last-layer states, projected and normalised, are the latents.

    m = offset + scale ⊙ LayerNorm(W s), with one offset and scale a latent token. The offset starts at zero and the
    scale small, so that an untrained memory changes an agent little. The LoRA weights that make the backbone a composer
    live in the backbone; everything else that learns lives here.
    """

    def __init__(self, backbone: Backbone, settings: ComposerSettings) -> None:
        super().__init__()
        self.settings = settings
        hidden = backbone.hidden_size
        spread = float(backbone.model.get_input_embeddings().weight.float().std())
        self.queries = nn.Parameter(torch.randn(settings.latents, hidden) * spread)
        self.projection = nn.Linear(hidden, hidden)
        nn.init.eye_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)
        self.norm = nn.LayerNorm(hidden, elementwise_affine=False)
        self.scale = nn.Parameter(torch.full((settings.latents, hidden), settings.latent_std))
        self.offset = nn.Parameter(torch.zeros(settings.latents, hidden))

    def forward(self, backbone: Backbone, texts: Sequence[ComposerText]) -> torch.Tensor:
        """m of Eq. 5 for every text, ``[texts, latents, hidden]``. Call it inside ``backbone.adapted()``."""
        packs: dict[str, list[int]] = {}
        for row, text in enumerate(texts):
            packs.setdefault(text.experience, []).append(row)
        rows = sorted(packs.values(), key=lambda pack: len(texts[pack[0]].experience))
        size = self.settings.micro_batch
        parts = [
            self._compose(backbone, [[texts[row] for row in pack] for pack in rows[at : at + size]])
            for at in range(0, len(rows), size)
        ]
        order = torch.tensor([row for pack in rows for row in pack])
        return torch.cat(parts)[order.argsort().to(parts[0].device)]

    def _compose(self, backbone: Backbone, packs: Sequence[Sequence[ComposerText]]) -> torch.Tensor:
        """Latents of all texts of the packs, pack by pack, ``[texts, latents, hidden]``."""
        packed = [self._pack(backbone, pack) for pack in packs]
        embeds = nn.utils.rnn.pad_sequence([each.embeds for each in packed], batch_first=True)
        segments = nn.utils.rnn.pad_sequence([each.segments for each in packed], batch_first=True, padding_value=-1)
        positions = nn.utils.rnn.pad_sequence([each.positions for each in packed], batch_first=True)
        states, _ = backbone.hidden_states(embeds, branch_mask(segments, embeds.dtype), positions)
        asked = torch.cat([states[row, each.queries] for row, each in enumerate(packed)])
        projected = self.projection(asked.to(self.projection.weight.dtype))
        return self.offset + self.scale * self.norm(projected.unflatten(0, (-1, self.settings.latents)))

    def _pack(self, backbone: Backbone, pack: Sequence[ComposerText]) -> Pack:
        """[T_q ; γ_1 ; queries ; γ_2 ; queries …]: the trajectories once, then every role that asks about them."""
        device, count = self.queries.device, self.settings.latents
        experience = self._token_ids(backbone, pack[0].experience)[: self.settings.max_length]
        parts = [backbone.embed(torch.tensor(experience, device=device))]
        segments, positions = [0] * len(experience), list(range(len(experience)))
        queries: list[int] = []
        for branch, text in enumerate(pack, start=1):
            role = self._token_ids(backbone, text.role)
            if role:
                parts.append(backbone.embed(torch.tensor(role, device=device)))
            parts.append(self.queries.to(parts[0].dtype))
            length = len(role) + count
            queries += range(len(segments) + len(role), len(segments) + length)
            segments += [branch] * length
            positions += range(len(experience), len(experience) + length)
        return Pack(torch.cat(parts), *(torch.tensor(each, device=device) for each in (segments, positions, queries)))

    @staticmethod
    def _token_ids(backbone: Backbone, text: str) -> list[int]:
        ids: list[int] = backbone.tokenizer.encode(text, add_special_tokens=False)
        return ids


@dataclass(frozen=True)
class Pack:
    """One sequence that serves all roles of a query.

    Attributes:
        embeds: ``[seq, hidden]``.
        segments: ``[seq]``; 0 for the trajectories, k for the k-th role and its queries.
        positions: ``[seq]``; every role continues behind the trajectories.
        queries: ``[roles · latents]``, where the query vectors stand.
    """

    embeds: torch.Tensor
    segments: torch.Tensor
    positions: torch.Tensor
    queries: torch.Tensor


def branch_mask(segments: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Additive attention mask ``[batch, 1, seq, seq]`` for ``segments [batch, seq]`` (−1 is padding).

    Causal; a position sees the trunk (segment 0) and its own branch, so that a branch reads as if it stood alone.
    """
    place = torch.arange(segments.shape[1], device=segments.device)
    causal = place[:, None] >= place[None]
    seen = (segments[:, None, :] == 0) | (segments[:, None, :] == segments[:, :, None])
    mask = torch.zeros(seen.shape, dtype=dtype, device=segments.device)
    return mask.masked_fill(~(seen & causal), torch.finfo(dtype).min)[:, None]
