"""The reference engine: transformers' own ``generate``, with dynamic batching.

Requests that arrive while a batch runs form the next batch. Each row samples with its own generator, so that a seed
gives the same response whatever it is batched with (up to the rounding of a different padding).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from data.assets import resolve_model
from rollout.engine import Completion, EngineError, Request, check_request

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_Pending = tuple[Request, "asyncio.Future[Completion]", float]


class TransformersEngine:
    """``generate`` behind the :class:`rollout.engine.Engine` seam.

    Args:
        model: asset name, local path or hub id.
        dtype: of the weights.
        max_model_len: prompt plus response, in positions.
        max_batch: rows of one ``generate`` call.
        device: where the model goes.
    """

    def __init__(
        self,
        model: str,
        dtype: str = "float32",
        max_model_len: int = 14336,  # paper, LatentMem Table 3: 10,240 + 4,096
        max_batch: int = 32,
        device: str = "cpu",
    ) -> None:
        self.model = model
        self.dtype = dtype
        self.max_model_len = max_model_len
        self.max_batch = max_batch
        self.device = device
        self._loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase] | None = None
        self._pending: list[_Pending] = []
        self._worker: asyncio.Task[None] | None = None

    def share(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Generate with a model that is in memory already instead of loading a second copy."""
        self._loaded = (model, tokenizer)

    async def start(self) -> None:
        if self._loaded is None:
            from transformers import AutoModelForCausalLM, AutoTokenizer

            path = resolve_model(self.model)
            model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, self.dtype))
            self._loaded = (model.to(self.device).eval(), AutoTokenizer.from_pretrained(path))

    async def generate(self, request: Request) -> Completion:
        if self._loaded is None:
            raise EngineError(f"{request.label}: the transformers engine was not started")
        check_request(request, self.max_model_len)
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._pending.append((request, future, time.perf_counter()))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._drain())
        return await future

    async def close(self) -> None:
        self._loaded = None

    async def _drain(self) -> None:
        await asyncio.sleep(0)  # lets every coroutine that is ready now join the first batch
        while self._pending:
            # Sorting by length keeps padding small; the rest waits for the next batch.
            self._pending.sort(key=lambda item: item[0].length)
            batch, self._pending = self._pending[: self.max_batch], self._pending[self.max_batch :]
            try:
                completions = await asyncio.to_thread(self._answer, batch)
            except Exception as error:  # whatever it was, every waiting caller must hear of it
                for request, future, _ in batch:
                    failure = EngineError(f"{request.label}: transformers failed while answering ({error!r})")
                    failure.__cause__ = error
                    _settle(future, failure)
                continue
            for (_, future, _), completion in zip(batch, completions, strict=True):
                _settle(future, completion)

    @torch.no_grad()
    def _answer(self, batch: Sequence[_Pending]) -> list[Completion]:
        assert self._loaded is not None
        model, tokenizer = self._loaded
        started = time.perf_counter()
        requests = [request for request, _, _ in batch]
        embeds, mask = _left_pad([self._embed(model, request) for request in requests])
        sampler = SeededSampler(requests, embeds.device)
        out = model.generate(
            inputs_embeds=embeds,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=max(request.sampling.max_tokens for request in requests),
            logits_processor=[sampler],
            pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id,
        )
        elapsed = time.perf_counter() - started
        logprobs = sampler.logprobs(out)
        return [
            _completion(tokenizer, request, out[row], logprobs[row], started - arrived, elapsed)
            for row, (request, _, arrived) in enumerate(batch)
        ]

    @staticmethod
    def _embed(model: PreTrainedModel, request: Request) -> torch.Tensor:
        table = model.get_input_embeddings()
        if request.prompt_embeds is not None:
            return request.prompt_embeds.to(device=table.weight.device, dtype=table.weight.dtype)
        return table(torch.tensor(request.prompt_ids, device=table.weight.device))


class SeededSampler:
    """A logits processor that turns greedy decoding into sampling with one seed a row.

    Adding Gumbel noise to ``logits / T`` and taking the maximum is an exact sample from ``softmax(logits / T)``.
    """

    def __init__(self, requests: Sequence[Request], device: torch.device) -> None:
        self._temperatures = [request.sampling.temperature for request in requests]
        self._generators = [
            torch.Generator(device="cpu").manual_seed(request.sampling.seed % 2**63) for request in requests
        ]
        self._device = device
        self._scores: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """``[rows, vocabulary]`` to the same shape."""
        scale = torch.tensor([t if t > 0 else 1.0 for t in self._temperatures], device=logits.device)
        scores = torch.log_softmax(logits.float() / scale[:, None], dim=-1)
        self._scores.append(scores)
        noise = torch.stack([self._gumbel(row, scores.shape[-1]) for row in range(scores.shape[0])])
        return scores + noise.to(scores.device)

    def logprobs(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Log-probability of each of ``token_ids [rows, new]`` at the sampling temperature."""
        scores = torch.stack(self._scores[: token_ids.shape[1]], dim=1)
        return scores.gather(-1, token_ids[..., None]).squeeze(-1)

    def _gumbel(self, row: int, size: int) -> torch.Tensor:
        if self._temperatures[row] == 0:
            return torch.zeros(size)
        uniform = torch.rand(size, generator=self._generators[row]).clamp_min(1e-20)
        return -torch.log(-torch.log(uniform))


def _left_pad(rows: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """``[len_i, hidden]`` rows to embeddings ``[rows, longest, hidden]`` and mask ``[rows, longest]``."""
    embeds = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_side="left")
    lengths = torch.tensor([row.shape[0] for row in rows], device=embeds.device)
    mask = torch.arange(embeds.shape[1], device=embeds.device)[None] >= embeds.shape[1] - lengths[:, None]
    return embeds, mask.long()


def _completion(
    tokenizer: PreTrainedTokenizerBase,
    request: Request,
    row: torch.Tensor,
    logprobs: torch.Tensor,
    queue_s: float,
    elapsed_s: float,
) -> Completion:
    ids: list[int] = row[: request.sampling.max_tokens].tolist()
    stopped = tokenizer.eos_token_id in ids
    if stopped:
        ids = ids[: ids.index(tokenizer.eos_token_id) + 1]
    return Completion(
        text=str(tokenizer.decode(ids, skip_special_tokens=True)),
        token_ids=tuple(ids),
        logprobs=tuple(logprobs[: len(ids)].tolist()),
        finish_reason="stop" if stopped else "length",
        cached_tokens=None,
        wall_s=queue_s + elapsed_s,
        first_token_s=None,
        queue_s=queue_s,
    )


def _settle(future: asyncio.Future[Any], outcome: Completion | EngineError) -> None:
    if future.done():  # the caller was cancelled
        return
    if isinstance(outcome, EngineError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
