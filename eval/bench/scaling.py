"""What the runner itself costs an agent call, at 8 to 512 episodes at once.

The engine answers from a script and computes nothing (a simulation), so all of the time is ours: prompts, tokenisation,
scheduling, seeds, scoring, the trace. AutoGen on the bundled questions with the small model's tokenizer; every round
runs with fresh questions, so that nothing cached of an earlier one is counted as speed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch

from data.assets import resolve_model
from data.short_answer import ShortAnswerQA
from data.task import Task
from eval.bench.result import print_result
from rollout.mas.autogen import AutoGen
from rollout.replay_engine import ReplayEngine
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.trace import TraceWriter

MODEL = "smollm2-135m-instruct"
EPISODES = (8, 32, 128, 512)
CALLS = 2
ANSWER = "Jane Austen wrote it, in 1815."


@dataclass(frozen=True)
class Cost:
    """Milliseconds an agent call, the best of the rounds: by the clock, and of processor time."""

    wall_ms: float
    cpu_ms: float


def main(argv: Sequence[str]) -> None:
    """Print one line for each number of episodes, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench scaling", description=__doc__)
    parser.add_argument("--episodes", type=int, nargs="+", default=EPISODES)
    parser.add_argument("--calls", type=int, default=2048, help="agent calls of each round, at least")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    costs = measure(args.episodes, args.calls, args.rounds)
    for episodes, cost in costs.items():
        print(f"{episodes:5} episodes at once  {cost.wall_ms:.3f} ms a call  {cost.cpu_ms:.3f} ms of CPU", flush=True)
    wall = [cost.wall_ms for cost in costs.values()]
    figures = {f"ms_per_call_{episodes}": cost.wall_ms for episodes, cost in costs.items()}
    print_result("scaling", worst_ms=max(wall), last_over_first=wall[-1] / wall[0], **figures)


def measure(episodes: Sequence[int], calls: int, rounds: int) -> Mapping[int, Cost]:
    """The cost at each number of episodes at once. Rounds take turns, so that what slows the machine slows all."""
    tasks = fresh_tasks()
    found: dict[int, list[Cost]] = {each: [] for each in episodes}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for each in episodes:
                found[each].append(one_round(tasks, each, calls, Path(folder)))
    best = {each: (min(c.wall_ms for c in costs), min(c.cpu_ms for c in costs)) for each, costs in found.items()}
    return {each: Cost(*pair) for each, pair in best.items()}


def one_round(tasks: Iterator[Task], episodes: int, calls: int, folder: Path) -> Cost:
    """As many batches of ``episodes`` as make ``calls`` calls."""
    from transformers import AutoTokenizer

    settings = RolloutSettings(max_tokens=64, max_concurrent=episodes)
    tokenizer: Any = AutoTokenizer.from_pretrained(resolve_model(MODEL))
    engine = ReplayEngine(script=lambda request: ANSWER)
    trace = TraceWriter(folder / "trace.jsonl")
    runner = EpisodeRunner(engine, AutoGen(), tokenizer, _no_latents, ShortAnswerQA(), settings, trace)
    batches = [list(islice(tasks, episodes)) for _ in range(max(1, calls // (CALLS * episodes)) + 1)]
    runner.run(batches[0], 1, Phase("warm-up", 0, 0, 1.0), None)
    wall, cpu = time.perf_counter(), time.process_time()
    for step, batch in enumerate(batches[1:]):
        runner.run(batch, 1, Phase("bench", step, 0, 1.0), None)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    runner.close()
    made = 1000 / (CALLS * episodes * (len(batches) - 1))
    return Cost(wall * made, cpu * made)


def fresh_tasks() -> Iterator[Task]:
    """The bundled questions over and over, each time with another number in front."""
    sample = ShortAnswerQA().tasks("train")
    for number in count():
        task = sample[number % len(sample)]
        yield replace(task, id=f"{task.id}/{number}", question=f"({number}) {task.question}")


def _no_latents(ids: torch.Tensor) -> torch.Tensor:
    raise AssertionError("this bench has no latents to embed")
