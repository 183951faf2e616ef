from __future__ import annotations

import torch

from rollout.left_pad import left_pad


def test_left_padding_by_hand() -> None:
    embeds, mask, positions = left_pad([torch.ones(1, 2), torch.full((3, 2), 2.0)])
    assert embeds[:, :, 0].tolist() == [[0, 0, 1], [2, 2, 2]]
    assert mask.tolist() == [[0, 0, 1], [1, 1, 1]]
    assert positions.tolist() == [[0, 0, 0], [0, 1, 2]]
