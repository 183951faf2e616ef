"""φ of LTS (§3.2, Eq. 1): texts to vectors by the controller's own frozen base, adapters off."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import torch

from lightning_modules.backbone import Backbone

Pooling = Literal["last", "mean"]


class Phi:
    """Vectors of texts, each computed once and kept.

    One text a forward pass, never a padded batch: a text's vector is then the same to the last bit whatever was
    embedded before it, which a resumed run relies on. Vectors are scaled to the length of the base's own input
    embeddings (ours): a hidden state of the last layer is far longer than what the first layer expects.

    Args:
        backbone: whose base is φ.
        pooling: the last token's state, or the mean over tokens (ours: last).
        max_tokens: longer texts are cut at the end and counted in ``truncated`` (ours).
        max_texts: how many vectors are kept before the oldest goes (ours).
    """

    def __init__(
        self, backbone: Backbone, pooling: Pooling = "last", max_tokens: int = 512, max_texts: int = 100_000
    ) -> None:
        self._backbone = backbone
        self._pooling = pooling
        self._max_tokens = max_tokens
        self._max_texts = max_texts
        self._vectors: dict[str, torch.Tensor] = {}
        self.truncated = 0

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """``[len(texts), hidden]`` in fp32, without gradient.

        Raises ``RuntimeError`` for a new text while the adapters are on.
        """
        return torch.stack([self._vector(text) for text in texts])

    def share(self, other: Phi) -> None:
        """Use the vectors of another φ over the same frozen base, and add to them."""
        self._vectors = other._vectors

    def _vector(self, text: str) -> torch.Tensor:
        if text not in self._vectors:
            if len(self._vectors) >= self._max_texts:
                del self._vectors[next(iter(self._vectors))]
            self._vectors[text] = self._embed(text)
        return self._vectors[text]

    @cached_property
    def _scale(self) -> float:
        return embedding_scale(self._backbone)

    @torch.no_grad()
    def _embed(self, text: str) -> torch.Tensor:
        if self._backbone.adapting:
            raise RuntimeError("φ is the base without adapters: embed texts before adapted() is entered")
        ids = self._backbone.tokenizer.encode(text or " ", add_special_tokens=False)
        self.truncated += len(ids) > self._max_tokens
        words = self._backbone.embed(torch.tensor([ids[: self._max_tokens]]))
        places = torch.arange(words.shape[1], device=words.device)[None]
        states, _ = self._backbone.hidden_states(words, torch.ones_like(places), places)
        vector = (states[0, -1] if self._pooling == "last" else states[0].mean(dim=0)).float()
        return vector / vector.square().mean().sqrt() * self._scale


def embedding_scale(backbone: Backbone) -> float:
    """Root mean square of the base's input embeddings."""
    table = backbone.model.get_input_embeddings().weight
    return float(table.detach().float().square().mean().sqrt())
