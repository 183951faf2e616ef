"""The default engine: vLLM in process, asynchronous, with token and embedding prompts."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from data.assets import resolve_model
from rollout.engine import Completion, EngineError, Request, check_request

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM


class VLLMEngine:
    """``AsyncLLM`` behind the :class:`rollout.engine.Engine` seam.

    Args:
        model: asset name, local path or hub id.
        dtype: of weights and cache. ``float32`` is the only sensible choice on a CPU without AVX-512 or AMX.
        max_model_len: prompt plus response, in positions; vLLM's own default wastes memory.
        max_num_seqs: requests decoded at once; more wait in vLLM's queue.
        kv_cache_gib: cache size on a CPU (on a GPU, vLLM's ``gpu_memory_utilization`` rules).
        gpu_memory_utilization: share of the GPU that vLLM takes; the trainer needs the rest.
        cpu_threads: OpenMP threads of vLLM's worker on a CPU; ``None`` leaves vLLM's own choice.
    """

    def __init__(
        self,
        model: str,
        dtype: str = "bfloat16",
        max_model_len: int = 14336,  # paper, LatentMem Table 3: 10,240 for the prompt and 4,096 for the response
        max_num_seqs: int = 64,
        kv_cache_gib: int = 2,
        gpu_memory_utilization: float = 0.5,
        cpu_threads: int | None = None,
    ) -> None:
        self.model = model
        self.dtype = dtype
        self.max_model_len = max_model_len
        self.max_num_seqs = max_num_seqs
        self.kv_cache_gib = kv_cache_gib
        self.gpu_memory_utilization = gpu_memory_utilization
        self.cpu_threads = cpu_threads
        self._llm: AsyncLLM | None = None
        self._request_number = itertools.count()

    async def start(self) -> None:
        if self._llm is not None:
            return
        with _environment(self._worker_environment()):
            from vllm import AsyncEngineArgs
            from vllm.v1.engine.async_llm import AsyncLLM

            args = AsyncEngineArgs(
                model=resolve_model(self.model),
                dtype=self.dtype,
                max_model_len=self.max_model_len,
                max_num_seqs=self.max_num_seqs,
                # A seeded request whose prompt is prefilled in parts kills the CPU engine, so prompts go in whole.
                enable_chunked_prefill=False,
                max_num_batched_tokens=max(self.max_model_len, 2048),
                enable_prompt_embeds=True,
                enable_prefix_caching=True,
                enforce_eager=True,
                # The log-probabilities of what was really sampled, temperature applied.
                logprobs_mode="processed_logprobs",
                gpu_memory_utilization=self.gpu_memory_utilization,
                disable_log_stats=False,
            )
            try:
                self._llm = AsyncLLM.from_engine_args(args)
            except (RuntimeError, ValueError, OSError) as error:
                raise EngineError(f"vLLM could not start with model {self.model!r}: {error}") from error

    async def generate(self, request: Request) -> Completion:
        if self._llm is None:
            raise EngineError(f"{request.label}: the vLLM engine was not started")
        check_request(request, self.max_model_len)
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        started = time.perf_counter()
        try:
            output = await self._last_output(request)
        except (EngineDeadError, EngineGenerateError) as error:
            raise EngineError(
                f"{request.label}: the vLLM engine died while answering ({error}); see its log above"
            ) from error
        completion = output.outputs[0]
        if not completion.token_ids:
            raise EngineError(f"{request.label}: vLLM returned no token (finish reason {completion.finish_reason!r})")
        times = output.metrics
        return Completion(
            text=completion.text,
            token_ids=tuple(completion.token_ids),
            logprobs=tuple(
                step[token].logprob for step, token in zip(completion.logprobs, completion.token_ids, strict=True)
            ),
            finish_reason=str(completion.finish_reason),
            cached_tokens=output.num_cached_tokens,
            wall_s=time.perf_counter() - started,
            first_token_s=times.first_token_latency if times else None,
            queue_s=times.scheduled_ts - times.queued_ts if times else None,
        )

    async def close(self) -> None:
        if self._llm is not None:
            self._llm.shutdown()
            self._llm = None

    async def _last_output(self, request: Request) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = request.sampling
        params = SamplingParams(
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed if sampling.temperature > 0 else None,
            logprobs=0,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt: Any = (
            {"prompt_embeds": request.prompt_embeds.detach().cpu()}
            if request.prompt_embeds is not None
            else {"prompt_token_ids": list(request.prompt_ids or ())}
        )
        assert self._llm is not None
        output = None
        async for output in self._llm.generate(prompt, params, request_id=str(next(self._request_number))):
            pass
        return output

    def _worker_environment(self) -> dict[str, str]:
        variables = {"VLLM_CPU_KVCACHE_SPACE": str(self.kv_cache_gib), "VLLM_LOGGING_LEVEL": "WARNING"}
        if self.cpu_threads is not None:
            # Two processes share few cores: waiting threads sleep instead of spinning away the other's time.
            variables |= {
                "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                "OMP_NUM_THREADS": str(self.cpu_threads),
                "OMP_WAIT_POLICY": "PASSIVE",
            }
        return {name: value for name, value in variables.items() if name not in os.environ}


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """vLLM is configured by environment variables, read while it starts; the user's own values win."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
