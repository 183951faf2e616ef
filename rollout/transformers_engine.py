"""The reference engine: transformers' own ``generate``, with dynamic batching.

Requests that arrive while a batch runs form the next batch. Each row samples with its own generator, so that a seed
gives the same response whatever it is batched with (up to the rounding of a different padding).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from data.assets import resolve_model
from data.bounds import check_at_least
from rollout.counters import Counters
from rollout.engine import Completion, Dtype, EngineDiedError, EngineError, Request, check_completion, check_request
from rollout.left_pad import left_pad
from rollout.seeded_sampler import SeededSampler
from rollout.structured_answer import structured_answer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class _Waiting:
    """A request, whoever awaits its answer, and ``time.perf_counter()`` when it came."""

    request: Request
    answer: asyncio.Future[Completion]
    arrived: float

    def fail(self, kind: type[EngineError], reason: str, cause: BaseException | None = None) -> None:
        """Raise an error of ``kind`` where the answer is awaited."""
        if not self.answer.done():
            failure = kind(f"{self.request.label}: {reason}")
            failure.__cause__ = cause
            self.answer.set_exception(failure)


@dataclass(frozen=True)
class _Loaded:
    """``stop_ids`` end a response: the tokenizer's end-of-turn token, and whatever else the checkpoint names."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    stop_ids: tuple[int, ...]


class TransformersEngine:
    """``generate`` behind the :class:`rollout.engine.Engine` seam.

    Args:
        model: asset name, local path or hub id.
        dtype: of the weights.
        max_model_len: prompt plus response, in positions.
        max_batch: rows of one ``generate`` call.
        device: where the model goes.
        structure_attempts: at an answer that is held to a structure, which is checked, not constrained (ours).

    Raises:
        ValueError: a size that means nothing, with its key.
    """

    text_only = False

    def __init__(
        self,
        model: str,
        dtype: Dtype = "float32",
        max_model_len: int = 14336,  # paper, LatentMem Table 3: 10,240 + 4,096
        max_batch: int = 32,
        device: str = "cpu",
        structure_attempts: int = 3,
    ) -> None:
        check_at_least(2, "engine.init_args", max_model_len=max_model_len)  # a prompt and a response
        check_at_least(1, "engine.init_args", max_batch=max_batch, structure_attempts=structure_attempts)
        self.model = model
        self.dtype = dtype
        self.max_model_len = max_model_len
        self.max_batch = max_batch
        self.device = device
        self.structure_attempts = structure_attempts
        self.counters = Counters()
        self._shared: _Loaded | None = None
        self._loaded: _Loaded | None = None
        self._waiting: list[_Waiting] = []
        self._running: list[_Waiting] = []
        self._worker: asyncio.Task[None] | None = None

    def share(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Generate with a model that is in memory already instead of loading a second copy."""
        self._shared = _take(model, tokenizer)

    async def start(self) -> None:
        self._loaded = self._loaded or self._shared or self._load()

    async def generate(self, request: Request) -> Completion:
        return await structured_answer(request, self._answer, self.structure_attempts)

    async def _answer(self, request: Request) -> Completion:
        if self._loaded is None:
            raise EngineDiedError(f"{request.label}: the transformers engine was not started")
        check_request(request, self.max_model_len, self._loaded.model.get_input_embeddings().weight.shape[1])
        waiting = _Waiting(request, asyncio.get_running_loop().create_future(), time.perf_counter())
        self._waiting.append(waiting)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._drain(self._loaded))
        completion = check_completion(request, await waiting.answer)
        self.counters.count(request, completion)
        return completion

    async def close(self) -> None:
        abandoned, self._waiting = [*self._waiting, *self._running], []
        for waiting in abandoned:
            waiting.fail(EngineDiedError, "the transformers engine was closed before it answered")
        if self._worker is not None:
            await asyncio.wait([self._worker])  # its batch stops at the next token, since nobody waits for it
        self._loaded = self._worker = None

    def _load(self) -> _Loaded:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        try:
            path = resolve_model(self.model)
            model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, self.dtype))
            return _take(model.to(self.device).eval(), AutoTokenizer.from_pretrained(path))
        except (OSError, ValueError, RuntimeError) as error:
            raise EngineError(f"transformers could not load the model {self.model!r}: {error}") from error

    async def _drain(self, loaded: _Loaded) -> None:
        await asyncio.sleep(0)  # lets every coroutine that is ready now join the first batch
        while self._waiting:
            # Sorting by length keeps padding small; the rest waits for the next batch.
            self._waiting.sort(key=lambda waiting: waiting.request.length)
            batch, self._waiting = self._waiting[: self.max_batch], self._waiting[self.max_batch :]
            self._running = batch
            work = asyncio.create_task(asyncio.to_thread(_answer, loaded, batch))
            await asyncio.wait([work])
            self._running = []
            _settle(batch, work)


def _settle(batch: Sequence[_Waiting], work: asyncio.Task[list[Completion]]) -> None:
    """Give every caller its completion, or the error that came instead."""
    error = work.exception()
    for row, waiting in enumerate(batch):
        if error is not None:
            waiting.fail(EngineError, f"transformers failed while answering ({error!r})", error)
        elif not waiting.answer.done():  # else its caller was cancelled
            waiting.answer.set_result(work.result()[row])


def _take(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> _Loaded:
    from transformers import GenerationConfig

    named = model.generation_config.eos_token_id
    stop_ids = {tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])} - {None}
    # What else a checkpoint advises (a repetition penalty, say) would act on top of the sampling that was asked for.
    model.generation_config = GenerationConfig()
    return _Loaded(model, tokenizer, tuple(sorted(stop_ids)))


@torch.no_grad()
def _answer(loaded: _Loaded, batch: Sequence[_Waiting]) -> list[Completion]:
    started = time.perf_counter()
    requests = [waiting.request for waiting in batch]
    embeds, mask, _ = left_pad([_embed(loaded.model, request) for request in requests])
    sampler = SeededSampler([request.sampling for request in requests])

    def abandoned(input_ids: torch.Tensor, scores: torch.Tensor | None) -> torch.Tensor:
        done = all(waiting.answer.done() for waiting in batch)
        return torch.full((len(batch),), done, device=input_ids.device)

    tokens = loaded.model.generate(
        inputs_embeds=embeds,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=max(request.sampling.max_tokens for request in requests),
        logits_processor=[sampler],
        stopping_criteria=[abandoned],
        eos_token_id=list(loaded.stop_ids) or None,
        pad_token_id=loaded.stop_ids[0] if loaded.stop_ids else 0,  # what follows a stop is cut off anyway
    )
    ended, first = time.perf_counter(), sampler.first_step_at or started
    rows = zip(batch, tokens.tolist(), sampler.logprobs().tolist(), strict=True)
    return [_completion(loaded, waiting, ids, logprobs, (started, first, ended)) for waiting, ids, logprobs in rows]


def _embed(model: PreTrainedModel, request: Request) -> torch.Tensor:
    table = model.get_input_embeddings()
    if request.prompt_embeds is not None:
        return request.prompt_embeds.to(device=table.weight.device, dtype=table.weight.dtype)
    return table(torch.tensor(request.prompt_ids, device=table.weight.device))


def _completion(
    loaded: _Loaded, waiting: _Waiting, row: list[int], logprobs: list[float], times: tuple[float, float, float]
) -> Completion:
    """``row`` runs on past this request's own end; ``times`` are start, first token and end of the batch."""
    started, first, ended = times
    ids = row[: waiting.request.sampling.max_tokens]
    stop = next((place for place, token in enumerate(ids) if token in loaded.stop_ids), None)
    ids = ids if stop is None else ids[: stop + 1]
    return Completion(
        text=str(loaded.tokenizer.decode(ids, skip_special_tokens=True)),
        token_ids=tuple(ids),
        logprobs=tuple(logprobs[: len(ids)]),
        finish_reason="length" if stop is None else "stop",
        cached_tokens=None,
        wall_s=ended - waiting.arrived,
        first_token_s=first - waiting.arrived,
        queue_s=started - waiting.arrived,
    )
