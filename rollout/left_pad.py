"""Prompts of several lengths as one batch that ends together, as generation and cached prefixes need it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


def left_pad(rows: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """``[len_i, hidden]`` rows to embeddings ``[rows, longest, hidden]``, mask and positions ``[rows, longest]``."""
    embeds = nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_side="left")
    lengths = torch.tensor([row.shape[0] for row in rows], device=embeds.device)
    places = torch.arange(embeds.shape[1], device=embeds.device)[None] - (embeds.shape[1] - lengths[:, None])
    return embeds, (places >= 0).long(), places.clamp_min(0)
