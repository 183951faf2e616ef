"""An engine that computes nothing: it answers from a script, or plays a recorded trace back exactly.

For tests, for measuring what the runner itself costs, and for going over a run again without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rollout.counters import Counters
from rollout.engine import CallKey, Completion, EngineError, Request
from rollout.trace import TracedCall
from rollout.trace_reader import read_trace

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Place = tuple[str, str, int]
"""Task id, agent, and the call's number within the episode."""

Script = Callable[[Request], str] | Mapping[Place, str]

END_OF_TURN = 256
"""The id that ends a scripted response where there is no tokenizer; those below it are UTF-8 bytes."""


class ReplayEngine:
    """A simulation behind the :class:`rollout.engine.Engine` seam. Give exactly one of ``trace`` and ``script``.

    Args:
        trace: a file by :class:`rollout.trace.TraceWriter`. Calls are found by phase, step, task, member and number;
            text, token ids, log-probabilities and times come back as recorded. Where a call stands there twice (a run
            that was resumed), the later line counts.
        script: what to answer, as a function of the request or by (task, agent, call). The script is certain: every
            token has the log-probability 0. Times are 0.
        tokenizer: makes a script's token ids; without one they are the text's UTF-8 bytes and ``END_OF_TURN``.

    Raises:
        ValueError: neither or both of ``trace`` and ``script``; a trace that cannot be read.
    """

    text_only = False

    def __init__(
        self,
        trace: str | Path | None = None,
        script: Script | None = None,
        tokenizer: PreTrainedTokenizerBase | None = None,
    ) -> None:
        if (trace is None) == (script is None):
            raise ValueError("ReplayEngine: give exactly one of trace and script")
        self.counters = Counters()
        self._trace = trace
        self._script = script
        self._tokenizer = tokenizer
        self._recorded = {} if trace is None else _calls(trace)

    async def start(self) -> None:
        """Nothing to load."""

    async def generate(self, request: Request) -> Completion:
        """The answer at this place. Raises :class:`EngineError` that names the place when there is none."""
        completion = self._scripted(request) if self._trace is None else self._played_back(request)
        self.counters.count(request, completion)
        return completion

    async def close(self) -> None:
        """Nothing to free."""

    def _played_back(self, request: Request) -> Completion:
        key = _key_of(request)
        call = self._recorded.get(_place(key))
        if call is None:
            raise EngineError(f"{request.label}: {self._trace} has no line for {_named(key)}")
        if call.agent != key.agent:
            raise EngineError(f"{request.label}: in {self._trace} {call.agent!r} speaks at {_named(key)}")
        return Completion(
            text=call.output,
            token_ids=call.output_ids,
            logprobs=call.logprobs,
            finish_reason=call.finish_reason,
            cached_tokens=call.cached_tokens,
            wall_s=call.wall_s,
            first_token_s=call.first_token_s,
            queue_s=call.queue_s,
            retries=call.retries,
            prompt_tokens=call.prompt_tokens + call.latent_tokens,
            completion_tokens=call.completion_tokens,
        )

    def _scripted(self, request: Request) -> Completion:
        ids, ended = self._ids(self._answer(request)), True
        if len(ids) > request.sampling.max_tokens:
            ids, ended = ids[: request.sampling.max_tokens], False
        finish = "stop" if ended else "length"
        return Completion(self._text(ids), ids, (0.0,) * len(ids), finish, 0, 0.0, 0.0, 0.0)

    def _answer(self, request: Request) -> str:
        if callable(self._script):
            return self._script(request)
        key = _key_of(request)
        place = (key.task, key.agent, key.call)
        if self._script is None or place not in self._script:
            raise EngineError(f"{request.label}: the script has no answer for (task, agent, call) {place}")
        return self._script[place]

    def _ids(self, text: str) -> tuple[int, ...]:
        if self._tokenizer is None:
            return (*text.encode(), END_OF_TURN)
        return (*self._tokenizer.encode(text, add_special_tokens=False), self._tokenizer.eos_token_id)

    def _text(self, ids: tuple[int, ...]) -> str:
        if self._tokenizer is None:
            return bytes(token for token in ids if token != END_OF_TURN).decode(errors="replace")
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))


def _calls(trace: str | Path) -> dict[tuple[str, int, str, int, int], TracedCall]:
    calls = (record for record in read_trace(trace) if isinstance(record, TracedCall))
    return {(call.phase, call.step, call.task, call.member, call.call): call for call in calls}


def _key_of(request: Request) -> CallKey:
    if request.key is None:
        raise EngineError(f"{request.label}: the request does not say which call it is, so there is nothing to replay")
    return request.key


def _place(key: CallKey) -> tuple[str, int, str, int, int]:
    return key.phase, key.step, key.task, key.member, key.call


def _named(key: CallKey) -> str:
    return f"phase {key.phase}, step {key.step}, task {key.task}, member {key.member}, call {key.call}"
