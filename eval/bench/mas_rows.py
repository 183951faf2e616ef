"""Every MAS on vLLM at once, in tokens sampled a second, against vLLM's own limit over the same prompts.

    concurrent   ``EpisodeRunner`` on ``VLLMEngine``, all episodes at once
    limit        vLLM's offline ``LLM.generate`` over the very prompts of the concurrent run, in one call

One engine runs all MAS one after another, then one offline engine all their prompts. Both decode as many calls at once
as the engine's ``max_num_seqs``; the limit is held back by no order among calls.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch

from data.assets import resolve_model
from data.trajectory import Step
from eval.bench.programs import Programs
from rollout.event_loop import EventLoopThread
from rollout.failure import check_any_finished
from rollout.mas.mas import MAS
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.vllm_engine import VLLMEngine

MODEL = "smollm2-135m-instruct"
EPISODES = len(Programs().tasks("bench"))
SYSTEMS: Mapping[str, str] = {
    "autogen": "rollout.mas.autogen.AutoGen",
    "macnet": "rollout.mas.macnet.MacNet",
    "camel": "rollout.mas.camel.CAMEL",
    "dylan": "rollout.mas.dylan.DyLAN",
}


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


@dataclass(frozen=True)
class Measured:
    """What a MAS did at once, and in how many seconds."""

    steps: tuple[Step, ...]
    failed: int
    seconds: float


def load_systems(names: Sequence[str]) -> dict[str, MAS]:
    """The MAS of each name, with its own defaults."""
    paths = {name: SYSTEMS[name].rpartition(".") for name in names}
    return {name: getattr(import_module(module), cls)() for name, (module, _, cls) in paths.items()}


def mas_rows(engine: VLLMEngine, measured: Mapping[str, Measured], episodes: int) -> list[Row]:
    """Each MAS's row, from what :func:`run_systems` found and the limit. Prints each."""
    rates = limit_rates(engine, {name: each.steps for name, each in measured.items()})
    rows = [_row(name, each, rates[name]) for name, each in measured.items()]
    for row in rows:
        print(
            f"{row.mas:8} {row.concurrent:8.1f} of {row.limit:8.1f} tokens/s = {row.of_limit:.3f}  "
            f"{row.calls} calls, {row.failed} of {episodes} episodes failed",
            flush=True,
        )
    return rows


def run_systems(engine: VLLMEngine, systems: Mapping[str, MAS], episodes: int, max_tokens: int) -> dict[str, Measured]:
    """All episodes of each MAS at once, one MAS after another; start and first batch are left out of the time."""
    from transformers import AutoTokenizer

    benchmark, loop, found = Programs(), EventLoopThread(), {}
    settings = RolloutSettings(max_tokens=max_tokens, max_concurrent=episodes)
    tokenizer: Any = AutoTokenizer.from_pretrained(resolve_model(MODEL))
    for name, mas in systems.items():
        runner = EpisodeRunner(engine, mas, tokenizer, _no_latents, benchmark, settings, loop=loop)
        runner.run(benchmark.tasks("warm-up"), 1, Phase("warm-up", 0, 0, 1.0), None)
        started = time.perf_counter()
        made = runner.run(benchmark.tasks("bench")[:episodes], 1, Phase("bench", 0, 0, 1.0), None)
        seconds = time.perf_counter() - started
        check_any_finished(made)
        steps = tuple(step for trajectory in made for step in trajectory.steps)
        found[name] = Measured(steps, sum(trajectory.failure is not None for trajectory in made), seconds)
    loop.run(engine.close())
    loop.close()
    return found


def limit_rates(engine: VLLMEngine, steps: Mapping[str, Sequence[Step]]) -> dict[str, float]:
    """Tokens a second of the offline engine by MAS: same settings, same prompts, same response lengths."""
    from vllm import LLM

    with engine.environment():  # in this very process: no hand-over between processes slows the limit down
        llm = LLM(**engine.arguments())
    return {name: _offline_rate(llm, each) for name, each in steps.items()}


def _offline_rate(llm: Any, steps: Sequence[Step]) -> float:
    from vllm import SamplingParams

    prompts: list[Any] = [{"prompt_token_ids": list(step.prefix_ids + step.suffix_ids)} for step in steps]
    sampling = [
        SamplingParams(temperature=1.0, max_tokens=len(step.output_ids), ignore_eos=True, logprobs=0, seed=row)
        for row, step in enumerate(steps)
    ]
    # Backwards, prompts leave nothing in the prefix cache for the real ones.
    warm_up: list[Any] = [{"prompt_token_ids": prompt["prompt_token_ids"][::-1]} for prompt in prompts[:4]]
    llm.generate(warm_up, sampling[:4], use_tqdm=False)
    started = time.perf_counter()
    llm.generate(prompts, sampling, use_tqdm=False)
    return sampled(steps) / (time.perf_counter() - started)


def _row(name: str, measured: Measured, limit: float) -> Row:
    tokens = sampled(measured.steps)
    concurrent = tokens / measured.seconds
    return Row(name, len(measured.steps), measured.failed, tokens, concurrent, limit, concurrent / limit)


def sampled(steps: Sequence[Step]) -> int:
    return sum(len(step.output_ids) for step in steps)


def _no_latents(ids: torch.Tensor) -> torch.Tensor:
    raise AssertionError("this bench has no latents to embed")
