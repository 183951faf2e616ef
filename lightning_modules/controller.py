"""C_θ, the memory controller of LTS (§3.2): a causal LM over a few embedded tokens that says YES or NO.

    c_t = [W_q φ(q) ; W_m φ(s_1) … W_m φ(s_M) ; W_s φ(u_t) ; W_s φ(s_t) ; W_s φ(o_t)]      (Eq. 2)

Two ways to evaluate it, both exact. In training all decisions of an episode are scored in one forward pass
(:mod:`lightning_modules.packed_decisions`); at inference the keys and values of the growing prefix [query ; keys] are
kept (:class:`DecisionCache`), so that a decision costs its own three tokens and the keys that are new.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from transformers.cache_utils import DynamicCache

from lightning_modules.backbone import Backbone
from lightning_modules.phi import Pooling

STEP_TOKENS = 3
"""φ(u_t), φ(s_t), φ(o_t)."""


@dataclass(frozen=True)
class ControllerSettings:
    """The controller beside its base and adapters.

    Attributes:
        yes, no: the two words; the first token of each is its vocabulary entry.
        pooling: of φ (ours: last).
        max_tokens: φ's window (ours).
        initial_admission: π(YES) that the untrained controller is set to, on average over a first set of decisions, by
            a constant added to the YES logit; ``None`` leaves the logits alone (ours: a base may start so sure of one
            word that nothing else is ever sampled).
    """

    yes: str = "YES"
    no: str = "NO"
    pooling: Pooling = "last"
    max_tokens: int = 512
    initial_admission: float | None = None

    def __post_init__(self) -> None:
        if self.initial_admission is not None and not 0 < self.initial_admission < 1:
            raise ValueError(f"controller.initial_admission is {self.initial_admission}; give a chance between 0 and 1")


class Controller(nn.Module):
    """W_q, W_m, W_s and the read-out of the two words. The base and its adapters are the :class:`Backbone`'s.

    ``offset`` is the constant that is added to the YES logit.
    """

    offset: torch.Tensor

    def __init__(self, backbone: Backbone, settings: ControllerSettings) -> None:
        super().__init__()
        self.settings = settings
        hidden = backbone.hidden_size
        self.query, self.memory, self.step = (nn.Linear(hidden, hidden, bias=False) for _ in range(3))
        for projection in (self.query, self.memory, self.step):
            nn.init.orthogonal_(projection.weight)  # keeps the length that φ gives its vectors
        self.register_buffer("offset", torch.zeros(()))
        self.words = [_first_token(backbone, word) for word in (settings.yes, settings.no)]
        if self.words[0] == self.words[1]:
            raise ValueError(
                f"{settings.yes!r} and {settings.no!r} begin with the same token in the vocabulary of "
                f"{backbone.name!r}; choose other words with controller.yes and controller.no"
            )

    def logits(self, backbone: Backbone, states: torch.Tensor) -> torch.Tensor:
        """Last-layer states ``[..., hidden]`` to the YES and NO logits ``[..., 2]``, fp32."""
        head = backbone.model.get_output_embeddings()
        bias = head.bias[self.words] if getattr(head, "bias", None) is not None else None
        both = F.linear(states, head.weight[self.words], bias).float()
        return both + torch.stack([self.offset, torch.zeros_like(self.offset)])


def _first_token(backbone: Backbone, word: str) -> int:
    return int(backbone.tokenizer.encode(word, add_special_tokens=False)[0])


class DecisionCache:
    """The decisions of one episode at inference: the prefix's keys and values grow with the bank.

    Args:
        query: φ(q), ``[hidden]``.
    """

    def __init__(self, backbone: Backbone, controller: Controller, query: torch.Tensor) -> None:
        self._backbone = backbone
        self._controller = controller
        self._query = query
        self._cache: DynamicCache | None = None
        self._length = 0

    @property
    def cached(self) -> int:
        """Positions whose keys and values are kept: the query and the bank's keys so far."""
        return 0 if self._cache is None else int(self._cache.get_seq_length())

    @torch.inference_mode()
    def logits(self, keys: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """YES and NO logits ``[2]`` of one decision.

        Args:
            keys: ``[M, hidden]``, φ of all keys in the bank now; those of earlier calls come first.
            step: ``[3, hidden]``, φ(u_t), φ(s_t), φ(o_t).
        """
        new = self._controller.memory(keys[max(0, self._length - 1) :])
        if self._length == 0:
            new = torch.cat([self._controller.query(self._query)[None], new])
        tokens = torch.cat([new, self._controller.step(step)])
        places = self._length + torch.arange(tokens.shape[0], device=tokens.device)[None]
        dtype = self._backbone.model.get_input_embeddings().weight.dtype
        with self._backbone.adapted(inference=True):
            states, self._cache = self._backbone.hidden_states(
                tokens[None].to(dtype),
                torch.ones(1, self._length + tokens.shape[0], device=tokens.device),
                places,
                self._cache,
                use_cache=True,
            )
        assert self._cache is not None
        self._cache.crop(-STEP_TOKENS)
        self._length += new.shape[0]
        return self._controller.logits(self._backbone, states[0, -1])
