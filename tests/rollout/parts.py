"""What tests of the runner share: a tokenizer, four tasks, an exact benchmark, a memory that recalls one thing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from data.task import Score, Task
from data.trajectory import Trajectory
from memory.memory import Agent, Recall
from rollout.counters import Counters
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.mas.mas import MAS
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.trace import TraceWriter
from tests.tiny_model import tiny_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TOKENIZER: PreTrainedTokenizerBase = tiny_tokenizer()
TABLE = torch.randn(len(TOKENIZER), 4, generator=torch.Generator().manual_seed(0))
PHASE = Phase("lmpo", step=3, run_seed=11, temperature=1.0)
TASKS = tuple(Task(f"t{n}", f"What is fact {n}?", (f"answer {n}",), "facts") for n in range(4))


def embed(ids: torch.Tensor) -> torch.Tensor:
    return TABLE[ids]


class Facts:
    """One point for the exact answer. ``raises`` is an answer that the rule stumbles over."""

    name = "facts"
    metrics: tuple[str, ...] = ("exact_match", "half")

    def __init__(self, raises: str | None = None, slow_scoring: bool = False) -> None:
        self.raises = raises
        self.slow_scoring = slow_scoring
        self.threads: set[str] = set()

    def tasks(self, split: str) -> Sequence[Task]:
        return TASKS

    def score(self, task: Task, answer: str) -> Score:
        self.threads.add(threading.current_thread().name)
        if answer == self.raises:
            raise ArithmeticError("no rule for this")
        return {"exact_match": float(answer in task.answers), "half": 0.5}


@dataclass
class FixedMemory:
    """Recalls the same text and latents for everyone; notes what it was asked and on which thread."""

    text: str = ""
    latents: torch.Tensor | None = None
    prepared: list[tuple[tuple[Task, ...], tuple[Agent, ...], int]] = field(default_factory=list)
    recalled: list[tuple[str, str, str]] = field(default_factory=list)
    ended: list[Trajectory] = field(default_factory=list)

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None:
        self.prepared.append((tuple(tasks), tuple(agents), threading.get_ident()))

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        self.recalled.append((task.id, agent.name, context))
        return Recall(self.text, self.latents, ("e1", "e2"))

    def end_episode(self, trajectory: Trajectory) -> None:
        self.ended.append(trajectory)


def make_runner(
    loop: EventLoopThread,
    engine: Any,
    mas: MAS | None = None,
    benchmark: Any = None,
    trace: TraceWriter | None = None,
    **limits: Any,
) -> EpisodeRunner:
    settings = RolloutSettings(**{"max_tokens": 16, **limits})
    return EpisodeRunner(engine, mas or AutoGen(), TOKENIZER, embed, benchmark or Facts(), settings, trace, loop)


def identity(trajectory: Trajectory) -> tuple[str, int]:
    return trajectory.task.id, trajectory.member


def sums(trajectories: Sequence[Trajectory]) -> Counters:
    costs = [step.cost for trajectory in trajectories for step in trajectory.steps]
    return Counters(
        requests=len(costs),
        prompt_tokens=sum(cost.prompt_tokens + cost.latent_tokens for cost in costs),
        completion_tokens=sum(cost.completion_tokens for cost in costs),
        cached_tokens=sum(cost.cached_tokens or 0 for cost in costs),
        retries=sum(cost.retries for cost in costs),
    )


def difference(after: Counters, before: Counters) -> Counters:
    return Counters(*(now - then for now, then in zip(astuple(after), astuple(before), strict=True)))
