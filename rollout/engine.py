"""The seam between agents and whatever generates their tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch


class EngineError(RuntimeError):
    """A request that could not be answered. The message names the task and agent, the cause, and what to do."""


@dataclass(frozen=True)
class Sampling:
    """How to sample one response. ``top_p`` is 1 and ``top_k`` off always: anything else biases importance ratios.

    Attributes:
        temperature: 0 is greedy.
        max_tokens: response limit (paper, LatentMem Table 3: 4096).
        seed: of this very call, derived by :func:`rollout.seeds.call_seed`; ignored when greedy.
    """

    temperature: float = 1.0
    max_tokens: int = 4096
    seed: int = 0


@dataclass(frozen=True)
class Request:
    """One call of one agent. Exactly one of ``prompt_ids`` and ``prompt_embeds`` is given.

    Attributes:
        prompt_ids: token ids of the whole prompt.
        prompt_embeds: ``[seq, hidden]`` input embeddings of the whole prompt (pure, never mixed with ids).
        label: ``"task <id>, agent <name>"``, for error messages.
    """

    label: str
    sampling: Sampling = field(default_factory=Sampling)
    prompt_ids: tuple[int, ...] | None = None
    prompt_embeds: torch.Tensor | None = None

    @property
    def length(self) -> int:
        """Prompt length in positions."""
        if self.prompt_embeds is not None:
            return int(self.prompt_embeds.shape[0])
        return len(self.prompt_ids or ())


@dataclass(frozen=True)
class Completion:
    """What came back. ``token_ids`` are exactly what was sampled, end-of-turn token included; never re-tokenise ``text``.

    Attributes:
        text: decoded without special tokens.
        logprobs: of each sampled token at the sampling temperature, same length as ``token_ids``
            (at temperature 0: of the unscaled distribution).
        finish_reason: ``stop`` (end-of-turn sampled) or ``length``.
        cached_tokens: prompt tokens served from the prefix cache, ``None`` when the engine does not tell.
        wall_s, first_token_s, queue_s: seconds; the latter two ``None`` when the engine does not tell.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str
    cached_tokens: int | None
    wall_s: float
    first_token_s: float | None
    queue_s: float | None


class Engine(Protocol):
    """Asynchronous generation. ``start`` is idempotent; many coroutines may await ``generate`` at once.

    All three coroutines run on one event loop, the one of :class:`rollout.event_loop.EventLoopThread`.
    """

    async def start(self) -> None:
        """Load what is needed. Raises :class:`EngineError` when that fails."""
        ...

    async def generate(self, request: Request) -> Completion:
        """Answer one request. Raises :class:`EngineError`; never returns a completion without tokens."""
        ...

    async def close(self) -> None:
        """Free what ``start`` took; idempotent."""
        ...


def check_request(request: Request, max_model_len: int) -> None:
    """Refuse what an engine would answer wrongly or die of.

    Raises:
        EngineError: both or neither prompt form, an empty prompt, non-finite embeddings,
            or prompt plus response limit over ``max_model_len``.
    """
    if (request.prompt_ids is None) == (request.prompt_embeds is None):
        raise EngineError(f"{request.label}: give exactly one of prompt_ids and prompt_embeds")
    if request.length == 0:
        raise EngineError(f"{request.label}: the prompt is empty")
    if request.prompt_embeds is not None and not bool(torch.isfinite(request.prompt_embeds).all()):
        raise EngineError(
            f"{request.label}: the prompt embeddings hold NaN or infinity; "
            "look at train/latent_norm and lower the learning rate or clip gradients"
        )
    needed = request.length + request.sampling.max_tokens
    if needed > max_model_len:
        raise EngineError(
            f"{request.label}: {request.length} prompt positions plus a response limit of {request.sampling.max_tokens} "
            f"are {needed}, over the engine's max_model_len of {max_model_len}; raise max_model_len, "
            "lower max_tokens, or shorten the memory that is injected"
        )
