"""The JSONL trace: a line for every agent call, then one for their episode; see ``docs/trace.md``.

An episode is written when it and all before it have finished, in one piece. The dataclasses are the schema, for writing
and for reading alike (:mod:`rollout.trace_reader`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.trajectory import Cost, Step, Trajectory


@dataclass(frozen=True)
class TracedCall:
    """One agent call. ``call`` is its number within the episode; calls that were broken off leave gaps."""

    phase: str
    step: int
    task: str
    member: int
    call: int
    mas: str
    agent: str
    role: str
    prompt: str
    output: str
    finish_reason: str
    entry_ids: tuple[str, ...]
    output_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    prompt_tokens: int
    completion_tokens: int
    latent_tokens: int
    cached_tokens: int | None
    wall_s: float
    first_token_s: float | None
    queue_s: float | None
    retries: int


@dataclass(frozen=True)
class TracedEpisode:
    """One episode, after its calls. Tokens, retries and ``queue_s`` are their sums; ``None`` where no call tells.

    ``wall_s`` is the clock from start to score, ``first_token_s`` that of the first call.
    """

    phase: str
    step: int
    task: str
    member: int
    mas: str
    calls: int
    answer: str
    score: dict[str, float]
    failure: str | None
    prompt_tokens: int
    completion_tokens: int
    latent_tokens: int
    cached_tokens: int | None
    wall_s: float
    first_token_s: float | None
    queue_s: float | None
    retries: int


KINDS: dict[str, type[TracedCall] | type[TracedEpisode]] = {"call": TracedCall, "episode": TracedEpisode}


class TraceWriter:
    """Appends to one file, which is whole lines at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, phase: str, step: int, trajectories: Sequence[Trajectory]) -> None:
        """All lines of ``trajectories``, in their order, in one piece."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [line for trajectory in trajectories for line in trace_lines(phase, step, trajectory)]
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))


def trace_lines(phase: str, step: int, trajectory: Trajectory) -> Iterator[str]:
    """The JSON of each call, then of the episode."""
    for taken in trajectory.steps:
        yield _line("call", traced_call(phase, step, trajectory, taken))
    yield _line("episode", traced_episode(phase, step, trajectory))


def traced_call(phase: str, step: int, trajectory: Trajectory, taken: Step) -> TracedCall:
    """The record of one call of ``trajectory``."""
    return TracedCall(
        phase=phase,
        step=step,
        task=trajectory.task.id,
        member=trajectory.member,
        call=taken.call,
        mas=trajectory.mas,
        agent=taken.agent,
        role=taken.role,
        prompt=taken.prompt,
        output=taken.output,
        finish_reason=taken.finish_reason,
        entry_ids=taken.entry_ids,
        output_ids=taken.output_ids,
        logprobs=taken.logprobs,
        **vars(taken.cost),
    )


def traced_episode(phase: str, step: int, trajectory: Trajectory) -> TracedEpisode:
    """The record of ``trajectory`` as a whole."""
    total = total_cost([taken.cost for taken in trajectory.steps], trajectory.wall_s)
    return TracedEpisode(
        phase=phase,
        step=step,
        task=trajectory.task.id,
        member=trajectory.member,
        mas=trajectory.mas,
        calls=len(trajectory.steps),
        answer=trajectory.answer,
        score=dict(trajectory.score),
        failure=trajectory.failure,
        **vars(total),
    )


def total_cost(costs: Sequence[Cost], wall_s: float) -> Cost:
    """What an episode consumed: sums over its calls, ``wall_s`` as given, the first token's time of the first call."""
    cached = [cost.cached_tokens for cost in costs if cost.cached_tokens is not None]
    queued = [cost.queue_s for cost in costs if cost.queue_s is not None]
    return Cost(
        prompt_tokens=sum(cost.prompt_tokens for cost in costs),
        completion_tokens=sum(cost.completion_tokens for cost in costs),
        latent_tokens=sum(cost.latent_tokens for cost in costs),
        cached_tokens=sum(cached) if cached else None,
        wall_s=wall_s,
        first_token_s=costs[0].first_token_s if costs else None,
        queue_s=sum(queued) if queued else None,
        retries=sum(cost.retries for cost in costs),
    )


def _line(kind: str, record: TracedCall | TracedEpisode) -> str:
    return json.dumps({"kind": kind, **vars(record)}, ensure_ascii=False, allow_nan=False)
