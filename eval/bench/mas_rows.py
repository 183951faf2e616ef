"""Tokens a second of every MAS on one engine, and of the offline engine over the very same prompts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import torch

from data.assets import resolve_model
from data.trajectory import Step, Trajectory
from eval.bench.programs import TASKS, Programs
from rollout.engine import Engine
from rollout.event_loop import EventLoopThread
from rollout.failure import check_any_finished
from rollout.mas.mas import MAS
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.vllm_engine import VLLMEngine

MODEL = "smollm2-135m-instruct"
SYSTEMS: Mapping[str, str] = {
    "autogen": "rollout.mas.autogen.AutoGen",
    "macnet": "rollout.mas.macnet.MacNet",
    "camel": "rollout.mas.camel.CAMEL",
    "dylan": "rollout.mas.dylan.DyLAN",
}
WARM_UP = [replace(task, question="Write a program.") for task in TASKS[:4]]


@dataclass(frozen=True)
class Measured:
    """What a MAS did, all episodes at once, and in how many seconds."""

    made: tuple[Trajectory, ...]
    seconds: float

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for trajectory in self.made for step in trajectory.steps)


@dataclass(frozen=True)
class Row:
    """One MAS. ``concurrent`` and ``limit`` are tokens sampled a second, ``of_limit`` their ratio."""

    mas: str
    calls: int
    failed: int
    tokens: int
    concurrent: float
    limit: float
    of_limit: float

    def __str__(self) -> str:
        rates = f"{self.concurrent:8.1f} of {self.limit:8.1f} tokens/s = {self.of_limit:.3f}"
        return f"{self.mas:8} {rates}  {self.calls} calls, {self.failed} episodes failed"


def bench_engine(max_model_len: int, threads: int, at_once: int) -> VLLMEngine:
    """The engine of the quickstart, with room for ``at_once`` calls."""
    return VLLMEngine(MODEL, "float32", max_model_len, max_num_seqs=at_once, kv_cache_gib=1, cpu_threads=threads)


def load_systems(names: Iterable[str]) -> dict[str, MAS]:
    """The MAS of each name, with its own defaults."""
    paths = {name: SYSTEMS[name].rpartition(".") for name in names}
    return {name: getattr(import_module(module), cls)() for name, (module, _, cls) in paths.items()}


def run_systems(engine: Engine, systems: Mapping[str, MAS], episodes: int, max_tokens: int) -> dict[str, Measured]:
    """All episodes of each MAS at once, one MAS after another; start and first batch are left out of the time.

    ``engine`` is started and closed here. Raises ``RuntimeError`` when all episodes of a MAS failed.
    """
    from transformers import AutoTokenizer

    loop, found = EventLoopThread(), {}
    settings = RolloutSettings(max_tokens=max_tokens, max_concurrent=episodes)
    tokenizer: Any = AutoTokenizer.from_pretrained(resolve_model(MODEL))
    for name, mas in systems.items():
        runner = EpisodeRunner(engine, mas, tokenizer, _no_latents, Programs(), settings, loop=loop)
        runner.run(WARM_UP, 1, Phase("warm-up", 0, 0, 1.0), None)
        started = time.perf_counter()
        made = runner.run(TASKS[:episodes], 1, Phase("bench", 0, 0, 1.0), None)
        found[name] = Measured(tuple(made), time.perf_counter() - started)
        check_any_finished(made)
    loop.run(engine.close())
    loop.close()
    return found


def limit_rates(engine: VLLMEngine, steps: Mapping[str, Sequence[Step]]) -> dict[str, float]:
    """Tokens a second of one offline engine by MAS: same settings, same prompts, same response lengths."""
    from vllm import LLM

    with engine.environment():  # in this very process: no hand-over between processes slows the limit down
        llm = LLM(**engine.arguments())
    return {name: _offline_rate(llm, each) for name, each in steps.items()}


def row(name: str, measured: Measured, limit: float) -> Row:
    """The row of one MAS whose prompts vLLM answers at ``limit`` tokens a second."""
    tokens, steps = sampled(measured.steps), measured.steps
    failed = sum(trajectory.failure is not None for trajectory in measured.made)
    concurrent = tokens / measured.seconds
    return Row(name, len(steps), failed, tokens, concurrent, limit, concurrent / limit)


def sampled(steps: Sequence[Step]) -> int:
    """Tokens that the agents said."""
    return sum(len(step.output_ids) for step in steps)


def _offline_rate(llm: Any, steps: Sequence[Step]) -> float:
    from vllm import SamplingParams

    prompts: list[Any] = [{"prompt_token_ids": list(step.prefix_ids + step.suffix_ids)} for step in steps]
    sampling = [
        SamplingParams(temperature=1.0, max_tokens=len(step.output_ids), ignore_eos=True, logprobs=0, seed=number)
        for number, step in enumerate(steps)
    ]
    # Backwards, prompts leave nothing in the prefix cache for the real ones. What an earlier MAS left is cleared.
    warm_up: list[Any] = [{"prompt_token_ids": prompt["prompt_token_ids"][::-1]} for prompt in prompts[:4]]
    llm.reset_prefix_cache()
    llm.generate(warm_up, sampling[:4], use_tqdm=False)
    started = time.perf_counter()
    llm.generate(prompts, sampling, use_tqdm=False)
    return sampled(steps) / (time.perf_counter() - started)


def _no_latents(ids: torch.Tensor) -> torch.Tensor:
    raise AssertionError("this bench has no latents to embed")
