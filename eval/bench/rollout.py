"""Concurrent AutoGen episodes on vLLM, against one after another on transformers and against vLLM's own limit.

AutoGen writes and reviews small programs, so that responses have the length of work, not of a name. Three ways over the
same model, prompts and response lengths, in one run, in tokens sampled a second:

    concurrent   ``EpisodeRunner`` on ``VLLMEngine``, all episodes at once
    sequential   the same calls, one after another, by transformers' ``generate`` (a few episodes; the rate is constant)
    limit        vLLM's offline ``LLM.generate`` over the very prompts of the concurrent run, in one call, which no
                 order among calls holds back; as many at once as there are episodes, as in the concurrent run
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from data.assets import resolve_model
from data.task import Score, Task
from data.trajectory import Step, Trajectory
from eval.bench.result import print_result
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.vllm_engine import VLLMEngine

MODEL = "smollm2-135m-instruct"
RESULTS = ("sum", "product", "mean", "median", "largest value", "smallest value", "number of zeros", "range")
INPUTS = ("a list of integers", "the digits of a number", "the lengths of the words of a text", "a dictionary's values")
TASKS = tuple(
    Task(
        f"{result} of {given}",
        f"Write a Python function `f` that returns the {result} of {given}.",
        (),
        "bench",
        "code",
    )
    for given in INPUTS
    for result in RESULTS
)
"""Problem statements for up to 32 episodes."""


def main(argv: Sequence[str]) -> None:
    """Print one line a way, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench rollout", description=__doc__)
    parser.add_argument("--episodes", type=int, default=32, choices=range(1, len(TASKS) + 1), metavar="1..32")
    parser.add_argument("--sequential-episodes", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--max-model-len", type=int, default=512)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of each way")
    args = parser.parse_args(argv)
    engine = bench_engine(args.max_model_len, args.threads, args.episodes)
    trajectories, concurrent = run_concurrent(engine, args.episodes, args.max_tokens)
    print(f"concurrent  {concurrent:8.1f} tokens/s  {args.episodes} AutoGen episodes at once", flush=True)
    torch.set_num_threads(args.threads)
    limit = run_limit(engine, [step for t in trajectories for step in t.steps])
    print(f"limit       {limit:8.1f} tokens/s  the same prompts in one offline call", flush=True)
    sequential = run_sequential([step for t in trajectories[: args.sequential_episodes] for step in t.steps])
    print(f"sequential  {sequential:8.1f} tokens/s  {args.sequential_episodes} episodes by transformers", flush=True)
    print_result("rollout", vs_sequential=concurrent / sequential, of_limit=concurrent / limit)


def bench_engine(max_model_len: int, threads: int, at_once: int) -> VLLMEngine:
    """The engine of the quickstart, with room for ``at_once`` calls."""
    return VLLMEngine(MODEL, "float32", max_model_len, max_num_seqs=at_once, kv_cache_gib=1, cpu_threads=threads)


def run_concurrent(engine: VLLMEngine, episodes: int, max_tokens: int) -> tuple[list[Trajectory], float]:
    """All episodes at once; trajectories and tokens a second, the engine's start and first batch left out."""
    from transformers import AutoTokenizer

    settings = RolloutSettings(max_tokens=max_tokens, max_concurrent=episodes)
    tokenizer = AutoTokenizer.from_pretrained(resolve_model(MODEL))
    runner = EpisodeRunner(engine, AutoGen(), tokenizer, _no_latents, _unscored, settings, loop=EventLoopThread())
    runner.run([replace(task, question="Write a program.") for task in TASKS[:4]], 1, Phase("warm-up", 0, 0, 1.0), None)
    started = time.perf_counter()
    trajectories = runner.run(TASKS[:episodes], 1, Phase("bench", 0, 0, 1.0), None)
    elapsed = time.perf_counter() - started
    runner.close()
    return trajectories, _sampled([step for t in trajectories for step in t.steps]) / elapsed


def run_limit(engine: VLLMEngine, steps: Sequence[Step]) -> float:
    """Tokens a second of the offline engine, same settings, same prompts, same response lengths."""
    from vllm import LLM, SamplingParams

    with engine.environment():  # in this very process: no hand-over between processes slows the limit down
        llm = LLM(**engine.arguments())
    prompts: list[Any] = [{"prompt_token_ids": list(step.prefix_ids + step.suffix_ids)} for step in steps]
    sampling = [
        SamplingParams(temperature=1.0, max_tokens=len(step.output_ids), ignore_eos=True, logprobs=0, seed=row)
        for row, step in enumerate(steps)
    ]
    llm.generate(_disjoint(prompts[:4]), sampling[:4], use_tqdm=False)
    started = time.perf_counter()
    llm.generate(prompts, sampling, use_tqdm=False)
    elapsed = time.perf_counter() - started
    return _sampled(steps) / elapsed


def run_sequential(steps: Sequence[Step]) -> float:
    """Tokens a second of transformers' ``generate``, one call at a time, same prompts and response lengths."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(resolve_model(MODEL), dtype=torch.float32).eval()

    def call(step: Step) -> None:
        ids = torch.tensor([step.prefix_ids + step.suffix_ids])
        count = len(step.output_ids)
        with torch.no_grad():
            model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                top_k=0,
                max_new_tokens=count,
                min_new_tokens=count,
                pad_token_id=0,
            )

    call(steps[0])
    started = time.perf_counter()
    for step in steps:
        call(step)
    return _sampled(steps) / (time.perf_counter() - started)


def _sampled(steps: Sequence[Step]) -> int:
    return sum(len(step.output_ids) for step in steps)


def _disjoint(prompts: Sequence[Any]) -> list[Any]:
    """Prompts that leave nothing in the prefix cache for the real ones."""
    return [{"prompt_token_ids": list(reversed(prompt["prompt_token_ids"]))} for prompt in prompts]


def _unscored(task: Task, answer: str) -> Score:
    return {}


def _no_latents(ids: torch.Tensor) -> torch.Tensor:
    raise AssertionError("this bench has no latents to embed")
