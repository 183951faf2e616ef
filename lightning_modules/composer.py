"""The memory composer σ_φ (LatentMem §4.3, Eq. 5): role profile and retrieved trajectories in, L' latent tokens out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from data.trajectory import Trajectory, trajectory_text
from lightning_modules.backbone import Backbone, left_pad


@dataclass(frozen=True)
class ComposerSettings:
    """Settings of σ_φ.

    Attributes:
        latents: L' (paper: 8).
        max_length: of the text that the composer reads, in tokens; the role is always whole, longer trajectories
            keep their beginning (paper: the prompt limit, 10,240).
        use_role: read the role profile γ; off is the paper's ablation ``without_role``.
        latent_std: how far an untrained composer's latents stand from the neutral token, per dimension (ours).
        neutral_token: whose embedding the latents start at (ours: a line break, which costs an agent nothing).
        micro_batch: sequences a forward pass.
    """

    latents: int = 8
    max_length: int = 10240
    use_role: bool = True
    latent_std: float = 0.03
    neutral_token: str = "\n"
    micro_batch: int = 8


@dataclass(frozen=True)
class ComposerText:
    """What σ_φ reads: the role profile γ (empty in the ablation ``without_role``) and the trajectories T_q."""

    role: str
    experience: str


def composer_text(profile: str, trajectories: Sequence[Trajectory], use_role: bool = True) -> ComposerText:
    """γ and T_q as text."""
    experience = "\n\n".join(trajectory_text(trajectory) for trajectory in trajectories)
    return ComposerText(f"Role: {profile}\n" if use_role else "", experience or "(no experience)")


class Composer(nn.Module):
    """Query vectors appended to the text; their last-layer states, projected and normalised, are the latents.

    m = offset + scale ⊙ LayerNorm(W s), with one offset and scale a latent token. The offset starts at a neutral
    token's embedding and the scale small, so that an untrained memory leaves an agent as it is. The LoRA weights that
    make the backbone a composer live in the backbone; everything else that learns lives here.
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
        self.offset = nn.Parameter(_embedding_of(backbone, settings.neutral_token).repeat(settings.latents, 1))

    def forward(self, backbone: Backbone, texts: Sequence[ComposerText]) -> torch.Tensor:
        """m of Eq. 5 for every text, ``[texts, latents, hidden]``. Call it inside ``backbone.adapted()``."""
        size = self.settings.micro_batch
        ids = [self._token_ids(backbone, text) for text in texts]
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        parts = [
            self._compose(backbone, [ids[row] for row in order[at : at + size]]) for at in range(0, len(ids), size)
        ]
        return torch.cat(parts)[torch.tensor(order).argsort().to(parts[0].device)]

    def _compose(self, backbone: Backbone, ids: Sequence[Sequence[int]]) -> torch.Tensor:
        device = self.queries.device
        rows = [
            torch.cat([backbone.embed(torch.tensor(row, device=device)), self.queries.to(backbone.model.dtype)])
            for row in ids
        ]
        states, _ = backbone.hidden_states(*left_pad(rows))
        projected = self.projection(states[:, -self.settings.latents :].to(self.projection.weight.dtype))
        return self.offset + self.scale * self.norm(projected)

    def _token_ids(self, backbone: Backbone, text: ComposerText) -> list[int]:
        role, experience = (
            backbone.tokenizer.encode(part, add_special_tokens=False) for part in (text.role, text.experience)
        )
        return [*role, *experience[: max(0, self.settings.max_length - len(role))]]


def _embedding_of(backbone: Backbone, token: str) -> torch.Tensor:
    """Input embedding ``[1, hidden]`` of the last token of ``token``, fp32."""
    ids = backbone.tokenizer.encode(token, add_special_tokens=False)
    with torch.no_grad():
        return backbone.embed(torch.tensor(ids[-1:])).float()
