"""Every MAS on vLLM at once, in tokens sampled a second, against vLLM's own limit over the same prompts.

    concurrent   ``EpisodeRunner`` on ``VLLMEngine``, all episodes at once
    limit        vLLM's offline ``LLM.generate`` over the very prompts of the concurrent run, in one call

One engine runs all MAS one after another, then one offline engine all their prompts. ``python -m eval.bench rollout``
shows these rows beside its own figures; alone, this bench prints them only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import torch

from data.assets import resolve_model
from data.short_answer import ShortAnswerQA
from data.trajectory import Step
from eval.bench.result import print_result
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


def main(argv: Sequence[str]) -> None:
    """Print one line for each MAS, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench mas_rows", description=__doc__)
    parser.add_argument("--mas", nargs="+", choices=SYSTEMS, default=tuple(SYSTEMS))
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--max-model-len", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of each way")
    args = parser.parse_args(argv)
    engine = VLLMEngine(
        MODEL, dtype="float32", max_model_len=args.max_model_len, kv_cache_gib=1, cpu_threads=args.threads
    )
    rows = mas_rows(engine, load_systems(args.mas), args.episodes, args.max_tokens)
    print_result("mas_rows", of_limit=min(row.of_limit for row in rows), rows=[asdict(row) for row in rows])


def load_systems(names: Sequence[str]) -> dict[str, MAS]:
    """The MAS of each name, with its own defaults."""
    paths = {name: SYSTEMS[name].rpartition(".") for name in names}
    return {name: getattr(import_module(module), cls)() for name, (module, _, cls) in paths.items()}


def mas_rows(engine: VLLMEngine, systems: Mapping[str, MAS], episodes: int, max_tokens: int) -> list[Row]:
    """Measure every MAS on ``engine``, which is started and closed here, then the limits. Prints each row."""
    measured = run_systems(engine, systems, episodes, max_tokens)
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

    benchmark, loop, found = ShortAnswerQA(), EventLoopThread(), {}
    settings = RolloutSettings(max_tokens=max_tokens, max_concurrent=episodes)
    tokenizer: Any = AutoTokenizer.from_pretrained(resolve_model(MODEL))
    tasks = benchmark.tasks("train")
    for name, mas in systems.items():
        runner = EpisodeRunner(engine, mas, tokenizer, _no_latents, benchmark, settings, loop=loop)
        runner.run(tasks[episodes : episodes + 4], 1, Phase("warm-up", 0, 0, 1.0), None)
        started = time.perf_counter()
        made = runner.run(tasks[:episodes], 1, Phase("bench", 0, 0, 1.0), None)
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
    return _sampled(steps) / (time.perf_counter() - started)


def _row(name: str, measured: Measured, limit: float) -> Row:
    tokens = _sampled(measured.steps)
    concurrent = tokens / measured.seconds
    return Row(name, len(measured.steps), measured.failed, tokens, concurrent, limit, concurrent / limit)


def _sampled(steps: Sequence[Step]) -> int:
    return sum(len(step.output_ids) for step in steps)


def _no_latents(ids: torch.Tensor) -> torch.Tensor:
    raise AssertionError("this bench has no latents to embed")
