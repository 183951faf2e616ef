"""The seam between agents and whatever generates their tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch

from rollout.mas.mas import Message
from rollout.structure import Structure, grammar_fault

Dtype = Literal["float32", "bfloat16", "float16"]

LOWEST_TEMPERATURE = 0.01


class EngineError(RuntimeError):
    """A request that could not be answered. The message names the task and agent, the cause, and what to do.

    It costs the episode that asked; the engine serves the others.
    """


class EngineDiedError(EngineError):
    """The engine can serve nobody any more (it died, was closed, or never started): it ends the run."""


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
class CallKey:
    """Which call of a run a request is: its seed is derived from this, and a replay finds its answer by it.

    Attributes:
        phase, step: :class:`rollout.settings.Phase`.
        task: its id.
        member: place in the group of G episodes of the task.
        call: place within the episode, in the order in which calls were made.
        agent: who speaks.
    """

    phase: str
    step: int
    task: str
    member: int
    call: int
    agent: str


@dataclass(frozen=True)
class Request:
    """One call of one agent.

    An engine that takes tokens needs exactly one of ``prompt_ids`` and ``prompt_embeds`` and ignores ``messages``;
    one that is :attr:`Engine.text_only` needs ``messages`` and ignores ``prompt_ids``.

    Attributes:
        prompt_ids: token ids of the whole prompt.
        prompt_embeds: ``[seq, hidden]`` input embeddings of the whole prompt (pure, never mixed with ids).
        messages: the chat before its template, memory text included.
        label: ``"task <id>, agent <name>"``, for error messages.
        structure: what the response may look like, ``None`` for anything.
        key: which call this is, where it belongs to an episode.
    """

    label: str
    sampling: Sampling = field(default_factory=Sampling)
    prompt_ids: tuple[int, ...] | None = None
    prompt_embeds: torch.Tensor | None = None
    structure: Structure | None = None
    messages: tuple[Message, ...] | None = None
    key: CallKey | None = None

    @property
    def length(self) -> int:
        """Prompt length in positions."""
        if self.prompt_embeds is not None:
            return int(self.prompt_embeds.shape[0])
        return len(self.prompt_ids or ())


@dataclass(frozen=True)
class Completion:
    """What came back. ``token_ids`` are exactly what was sampled, end-of-turn token included: never tokenise ``text``.

    Attributes:
        text: decoded without special tokens; of a request with a structure: without white space or a fence around it.
        token_ids: empty from a text-only engine, as are ``logprobs``: what it says cannot be trained on.
        logprobs: of each sampled token at the sampling temperature, same length as ``token_ids``
            (at temperature 0: of the unscaled distribution). Where a structure constrained decoding they are of the
            constrained distribution, whose forced tokens have log-probability 0: no policy's own.
        finish_reason: ``stop`` (end-of-turn sampled) or ``length``.
        cached_tokens: prompt tokens served from the prefix cache, ``None`` when the engine does not tell.
        wall_s, first_token_s, queue_s: seconds; the latter two ``None`` when the engine does not tell.
        retries: attempts before the one that counted.
        prompt_tokens: prompt positions read for this call, latents and earlier attempts included;
            ``None``: those of the request, read once.
        completion_tokens: tokens sampled for this call, earlier attempts included; ``None``: ``token_ids``.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str
    cached_tokens: int | None
    wall_s: float
    first_token_s: float | None
    queue_s: float | None
    retries: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Engine(Protocol):
    """Asynchronous generation. ``start`` is idempotent; many coroutines may await ``generate`` at once.

    All three coroutines run on one event loop, the one of :class:`rollout.event_loop.EventLoopThread`.

    Attributes:
        text_only: takes ``messages``, not tokens or embeddings, and does not tell what tokens it sampled.
    """

    text_only: bool

    async def start(self) -> None:
        """Load what is needed. Raises :class:`EngineError` when that fails."""
        ...

    async def generate(self, request: Request) -> Completion:
        """Answer one request; never return a completion without tokens.

        Raises:
            EngineDiedError: the engine can serve nobody any more.
            EngineError: this request cannot be answered.
        """
        ...

    async def close(self) -> None:
        """Free what ``start`` took; requests still waiting raise :class:`EngineDiedError`. Idempotent."""
        ...


def check_request(request: Request, max_model_len: int, hidden_size: int | None = None) -> None:
    """Refuse what an engine would answer wrongly or die of.

    Raises:
        EngineError: both or neither prompt form, an empty prompt, embeddings that are not finite or not
            ``[seq, hidden_size]``, a temperature or response limit that means nothing,
            or prompt plus response limit over ``max_model_len``.
    """
    if (request.prompt_ids is None) == (request.prompt_embeds is None):
        raise EngineError(f"{request.label}: give exactly one of prompt_ids and prompt_embeds")
    if request.prompt_embeds is not None:
        _check_embeds(request.label, request.prompt_embeds, hidden_size)
    if request.length == 0:
        raise EngineError(f"{request.label}: the prompt is empty")
    _check_sampling(request.label, request.sampling)
    needed = request.length + request.sampling.max_tokens
    if needed > max_model_len:
        raise EngineError(
            f"{request.label}: {request.length} prompt positions plus a response limit of "
            f"{request.sampling.max_tokens} are {needed}, over the engine's max_model_len of {max_model_len}; "
            "raise max_model_len, lower max_tokens, or shorten the memory that is injected"
        )


def check_text_request(request: Request) -> None:
    """Refuse what a text-only engine cannot be asked.

    Raises:
        EngineError: embeddings, no messages, a temperature or response limit that means nothing.
    """
    if request.prompt_embeds is not None:
        raise EngineError(
            f"{request.label}: this engine takes text only and cannot be sent latents; use a memory of text, "
            "or an engine that takes prompt embeddings (VLLMEngine, VLLMServerEngine, TransformersEngine)"
        )
    if not request.messages:
        raise EngineError(f"{request.label}: this engine takes text only and the request has no messages")
    _check_sampling(request.label, request.sampling)


def check_grammar(request: Request) -> None:
    """Refuse a schema that an engine which constrains decoding cannot take.

    Raises:
        EngineError: with the path of the keyword.
    """
    fault = grammar_fault(request.structure) if request.structure is not None else None
    if fault is not None:
        raise EngineError(f"{request.label}: the keyword {fault}")


def _check_embeds(label: str, embeds: torch.Tensor, hidden_size: int | None) -> None:
    if embeds.ndim != 2 or embeds.shape[1] != (hidden_size or embeds.shape[1]):
        raise EngineError(
            f"{label}: the prompt embeddings have shape {list(embeds.shape)}, the engine takes "
            f"[seq, {hidden_size or 'hidden'}]; latents come from the model that the engine runs"
        )
    if not bool(torch.isfinite(embeds).all()):
        raise EngineError(
            f"{label}: the prompt embeddings hold NaN or infinity; "
            "look at train/latent_norm and lower the learning rate or clip gradients"
        )


def _check_sampling(label: str, sampling: Sampling) -> None:
    if sampling.max_tokens < 1:
        raise EngineError(f"{label}: max_tokens is {sampling.max_tokens}; a response has at least one token")
    fault = _temperature_fault(sampling.temperature)
    if fault:
        raise EngineError(f"{label}: the temperature {fault}")


def check_temperature(key: str, temperature: float) -> None:
    """Raises ``ValueError``, which begins with the config's ``key``, for a temperature that no engine samples at."""
    fault = _temperature_fault(temperature)
    if fault:
        raise ValueError(f"{key} {fault}")


def _temperature_fault(temperature: float) -> str:
    if temperature == 0 or LOWEST_TEMPERATURE <= temperature < math.inf:
        return ""
    return (
        f"is {temperature}; give 0 for greedy, or a number from {LOWEST_TEMPERATURE} on "
        "(vLLM would silently raise a lower one to that)"
    )


def check_completion(request: Request, completion: Completion, text_only: bool = False) -> Completion:
    """``completion`` itself, when it is a real answer.

    Raises:
        EngineError: no token (no text, of a text-only engine), a finish reason that is neither ``stop`` nor
            ``length``, log-probabilities not finite.
    """
    if completion.finish_reason not in ("stop", "length"):
        raise EngineError(f"{request.label}: the engine gave up (finish reason {completion.finish_reason!r})")
    if not (completion.text if text_only else completion.token_ids):
        raise EngineError(f"{request.label}: the engine returned no token")
    if not all(map(math.isfinite, completion.logprobs)):
        raise EngineError(
            f"{request.label}: the model's log-probabilities hold NaN or infinity; "
            "the prompt embeddings are too large for its dtype, or its weights are damaged"
        )
    return completion
