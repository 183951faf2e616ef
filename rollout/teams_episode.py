"""What K teams did on one task over one bank: enough to score, to report, and to train the controller again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from data.plain import plain, task_from_plain
from data.task import Score, Task
from data.trajectory import Step, Trajectory
from memory.shared_bank import Entry, Use, used_entries

Stop = Literal["answered", "step_limit", "failed"]


@dataclass(frozen=True)
class TeamStep:
    """One step of a team: the instruction u_t and what came of it, o_t."""

    instruction: str
    output: str


@dataclass(frozen=True)
class TeamResult:
    """What one team ended with.

    Attributes:
        finished_s: on the episode's clock.
        failure: why a team that ``failed`` broke off without an answer (:mod:`rollout.failure`).
    """

    team: int
    answer: str
    stop: Stop
    finished_s: float
    tokens: int
    steps: tuple[TeamStep, ...]
    failure: str | None = None


@dataclass(frozen=True)
class AdmissionStep:
    """One admission decision and its context c_t.

    Attributes:
        seen: M, how many keys the bank had when it was taken.
        admitted: z_t.
        probability: π(YES | c_t) as it was sampled from, ``None`` for a decision that no policy took.
        entry: the place in the bank, if admitted.
        wall_s: seconds of wall clock that the decision took.
    """

    team: int
    step: int
    instruction: str
    summary: str
    output: str
    seen: int
    admitted: bool
    probability: float | None
    entry: int | None
    wall_s: float


@dataclass(frozen=True)
class TeamsEpisode:
    """τ of LTS.

    Attributes:
        member: place in the group of G.
        results: by team.
        first: index of the team that finished first, failed ones last.
        answer: the aggregate.
        score, score_first: R_agg and R_first by metric.
        admissions: in the order in which they were decided; empty without a bank.
        runtime_s: until the aggregate, on the episode's clock.
        simulated: that clock, and the agents, are a simulation's.
        wall_s: seconds of wall clock.
        failure: why there is no aggregate.
        calls: of the engine, for the trace alone: neither compared nor kept in checkpoints.
    """

    task: Task
    member: int
    results: tuple[TeamResult, ...]
    first: int
    answer: str
    score: Score
    score_first: Score
    entries: tuple[Entry, ...]
    uses: tuple[Use, ...]
    admissions: tuple[AdmissionStep, ...]
    runtime_s: float
    simulated: bool
    wall_s: float
    failure: str | None = None
    calls: tuple[Step, ...] = field(default=(), compare=False, repr=False)

    def used(self, by_other_team: bool = True) -> frozenset[int]:
        """U: indices into ``admissions`` of the admitted steps whose key was selected later."""
        entries = used_entries(self.entries, self.uses, by_other_team)
        return frozenset(place for place, each in enumerate(self.admissions) if each.entry in entries)


def episode_to_dict(episode: TeamsEpisode) -> dict[str, Any]:
    """JSON values only, without ``calls``, so that it survives a checkpoint loaded with ``weights_only=True``."""
    state: dict[str, Any] = plain(asdict(replace(episode, calls=())))
    del state["calls"]
    return state


def traced(episode: TeamsEpisode) -> Trajectory:
    """The episode in the form of every other MAS's, for the trace."""
    return Trajectory(
        episode.task,
        f"teams_{len(episode.results)}",
        episode.member,
        episode.calls,
        episode.answer,
        episode.score,
        episode.failure,
        episode.wall_s,
    )


def episode_from_dict(state: Mapping[str, Any]) -> TeamsEpisode:
    """The inverse of :func:`episode_to_dict`."""
    results = (
        TeamResult(**{**result, "steps": tuple(TeamStep(**step) for step in result["steps"])})
        for result in state["results"]
    )
    parts = {
        "task": task_from_plain(state["task"]),
        "results": tuple(results),
        "entries": tuple(Entry(**entry) for entry in state["entries"]),
        "uses": tuple(Use(**use) for use in state["uses"]),
        "admissions": tuple(AdmissionStep(**step) for step in state["admissions"]),
    }
    return TeamsEpisode(**{**state, **parts})
