"""A question to the run's engine outside of any episode: what a memory wants to know of an agent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rollout.counters import prompt_positions, sampled_tokens
from rollout.engine import Completion, Engine, EngineDiedError, EngineError, Request, Sampling
from rollout.mas.mas import Message
from rollout.prompt import render
from rollout.seeds import call_seed
from rollout.structure import JsonSchema, Structure

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

T = TypeVar("T")

ATTEMPTS = 3
"""Replies that are asked for before a question is given up (ours)."""

_BEFORE_JSON = re.compile(r"[{\[]")


def question(
    tokenizer: PreTrainedTokenizerBase | None,
    messages: Sequence[Message],
    sampling: Sampling,
    structure: Structure | None,
    label: str,
) -> Request:
    """The request, in the form of every kind of engine: as messages, and with a tokenizer as token ids too."""
    ids = None
    if tokenizer is not None:
        prompt = render(tokenizer, messages)
        ids = prompt.prefix_ids + prompt.suffix_ids
    return Request(label, sampling, prompt_ids=ids, structure=structure, messages=tuple(messages))


@dataclass
class Asker:
    """Questions whose replies are JSON, and what they cost.

    Args:
        engine: started.
        tokenizer: of the engine's model; ``None`` for an engine that takes text only.
        run_seed: of the whole run; a question's seed comes from it and from the question's label.
        calls, prompt_tokens, completion_tokens: so far, failed attempts included.
        unreadable: questions that were given up.
    """

    engine: Engine
    tokenizer: PreTrainedTokenizerBase | None
    run_seed: int
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreadable: int = 0

    async def ask_json(
        self,
        messages: Sequence[Message],
        schema: JsonSchema,
        read: Callable[[object], T | None],
        max_tokens: int,
        label: str,
    ) -> T | None:
        """``read`` of the reply's JSON value; ``None`` after :data:`ATTEMPTS` replies without one that it takes.

        The first attempt is greedy, the others are sampled at temperature 1 (ours). A reply that the engine gave up
        (among them one that was cut off, so that its JSON has no end) is a failed attempt too: no episode is lost
        because nobody could say what was learnt from it.

        Raises:
            EngineDiedError: nobody can be asked any more.
        """
        for attempt in range(ATTEMPTS):
            sampling = Sampling(float(attempt > 0), max_tokens, call_seed(self.run_seed, 0, label, 0, attempt))
            request = question(self.tokenizer, messages, sampling, schema, label)
            self.calls += 1
            try:
                reply = await self.engine.generate(request)
            except EngineDiedError:
                raise
            except EngineError:
                continue
            self._count(request, reply)
            value = read(json_value(reply.text))
            if value is not None:
                return value
        self.unreadable += 1
        return None

    def _count(self, request: Request, reply: Completion) -> None:
        self.prompt_tokens += prompt_positions(request, reply)
        self.completion_tokens += sampled_tokens(reply)


def json_value(text: str) -> object | None:
    """The first JSON object or list in ``text``, whatever stands around it (prose, code fences), or ``None``."""
    decoder = json.JSONDecoder()
    for start in _BEFORE_JSON.finditer(text):
        try:
            value, _ = decoder.raw_decode(text, start.start())
        except (json.JSONDecodeError, RecursionError):
            continue
        return value
    return None
