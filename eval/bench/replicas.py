"""Kill one of two vLLM replicas at a random moment of a run, again and again: what is lost, what is doubled?

One ``vllm serve`` with the small model answers behind two proxy processes: two such servers would not fit on a small
machine, and what a client sees of a replica that dies is its process gone with its connections. Each trial runs AutoGen
episodes on ``VLLMServerEngine`` over both, kills one of them by SIGKILL, starts it again, and waits until the engine
has taken it back. Counted are the lines of the trace: of every call of every episode there is to be exactly one.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from data.assets import resolve_model
from data.short_answer import ShortAnswerQA
from data.task import Task
from eval.bench.result import print_result
from eval.bench.tcp_proxy import ProxyProcess, free_port
from eval.bench.vllm_serve import vllm_serve
from rollout.engine import EngineError
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.trace import TraceWriter
from rollout.vllm_server_engine import VLLMServerEngine

MODEL = "smollm2-135m-instruct"
CALLS = 2
"""Of an AutoGen episode."""
BACK_WITHIN_S = 60.0

CallKey = tuple[str, int, int]
"""(task, member, call)."""


@dataclass(frozen=True)
class Trial:
    """What became of one run. ``resent`` requests had to be asked again, which is what the kill is for."""

    lost: int
    doubled: int
    resent: int


def main(argv: Sequence[str]) -> None:
    """Print one line a trial, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench replicas", description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0, help="of the moments and of which replica is killed")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        print(f"replicas    2 proxy processes before one vllm serve of {MODEL}; the one killed is a proxy", flush=True)
        with vllm_serve(MODEL, 512, 32, Path(folder) / "vllm.log") as port:
            bench = Bench(resolve_model(MODEL), port, args.episodes, args.max_tokens, Path(folder) / "trace.jsonl")
            trials = bench.run(args.trials, random.Random(args.seed))
    lost, doubled = sum(trial.lost for trial in trials), sum(trial.doubled for trial in trials)
    print_result("replicas", trials=len(trials), lost=lost, doubled=doubled)


class Bench:
    """Two proxies to ``port``, an engine over them and a runner on it."""

    def __init__(self, model: str, port: int, episodes: int, max_tokens: int, trace: Path) -> None:
        from transformers import AutoTokenizer

        self.proxies = [ProxyProcess(free_port(), port) for _ in range(2)]
        self.engine = VLLMServerEngine(model, [proxy.url for proxy in self.proxies])
        self.benchmark, self.episodes, self.trace = ShortAnswerQA(), episodes, trace
        self.loop = EventLoopThread()
        self.runner = EpisodeRunner(
            self.engine,
            AutoGen(),
            AutoTokenizer.from_pretrained(model),
            _no_latents,
            self.benchmark.score,
            RolloutSettings(max_tokens=max_tokens, max_concurrent=episodes),
            TraceWriter(trace),
            self.loop,
        )

    def run(self, trials: int, chance: random.Random) -> list[Trial]:
        """A run without a kill, whose duration bounds the moments of the kills, then the trials."""
        for proxy in self.proxies:
            proxy.start()
        try:
            started = time.perf_counter()
            self._episodes(0)
            duration = time.perf_counter() - started
            return [self._trial(number, chance, duration) for number in range(1, trials + 1)]
        finally:
            self.runner.close()
            self.loop.close()
            for proxy in self.proxies:
                proxy.kill()

    def _trial(self, number: int, chance: random.Random, duration: float) -> Trial:
        victim, moment = chance.randrange(2), chance.uniform(0.0, duration)
        kill = threading.Timer(moment, self.proxies[victim].kill)
        kill.start()
        tasks = self._episodes(number)
        kill.join()
        self.proxies[victim].start()
        self._wait_until_back()
        trial = count(read_calls(self.trace, number), tasks)
        print(f"trial {number:3d}   killed replica {victim} after {moment:5.2f} s: {trial}", flush=True)
        return trial

    def _episodes(self, number: int) -> Sequence[Task]:
        tasks = self.benchmark.tasks("train")
        start = number * self.episodes % (len(tasks) - self.episodes)
        taken = tasks[start : start + self.episodes]
        try:
            self.runner.run(taken, 1, Phase("bench", number, 0, 1.0), None)
        except EngineError as error:
            print(f"trial {number:3d}   {error}", flush=True)  # the calls it took along are missing in the trace
        return taken

    def _wait_until_back(self) -> None:
        deadline = time.monotonic() + BACK_WITHIN_S
        while not all(replica.live for replica in self.engine.replicas.all):
            if time.monotonic() > deadline:
                raise RuntimeError(f"a replica that was started again did not return: {self.engine.replicas.report()}")
            time.sleep(0.05)


def read_calls(trace: Path, step: int) -> list[tuple[CallKey, int]]:
    """Key and retries of every line of one step that has an answer."""
    with trace.open(encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    answered = [line for line in lines if line["step"] == step and "call" in line and line["completion_tokens"] > 0]
    return [((line["task"], line["member"], line["call"]), line["retries"]) for line in answered]


def count(calls: Sequence[tuple[CallKey, int]], tasks: Iterable[Task]) -> Trial:
    """Compare the calls that were answered with those that were to be."""
    seen = Counter(key for key, _ in calls)
    wanted = {(task.id, 0, call) for task in tasks for call in range(CALLS)}
    lost, doubled = len(wanted - seen.keys()), sum(times - 1 for times in seen.values())
    return Trial(lost, doubled + len(seen.keys() - wanted), sum(retries > 0 for _, retries in calls))


def _no_latents(ids: torch.Tensor) -> torch.Tensor:
    raise AssertionError("this bench has no latents to embed")
