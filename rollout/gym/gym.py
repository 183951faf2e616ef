"""The gym itself (SIMULATION): tasks, scoring, and one episode of K simulated teams with any admission."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from data.bounds import check_at_least
from data.task import Score, Task
from memory.memory import Agent
from rollout.admission import NO, YES, Admission, Candidate, Variant, Verdict, asked_admission
from rollout.gym.clock import SimulatedClock
from rollout.gym.tasks import GymTasks, make_task, topics_of
from rollout.gym.team import UNKNOWN, GymTeams, SimulatedTeam
from rollout.gym.texts import Length
from rollout.mas.mas import Message
from rollout.seeds import call_seed
from rollout.structure import Structure
from rollout.teams import MakeAdmission, Sharing, run_teams
from rollout.teams_episode import TeamResult, TeamsEpisode


class GymBenchmark:
    """Implements :class:`data.task.Benchmark`.

    Args:
        tasks: how tasks are made.
        train, test: how many of each there are.
    """

    name = "gym"
    metrics = ("exact_match", "partial")

    def __init__(self, settings: GymTasks = GymTasks(), train: int = 48, test: int = 120) -> None:
        made = {"train": train, "test": test}
        self._tasks = {split: [make_task(settings, split, i) for i in range(made[split])] for split in made}  # type: ignore[arg-type]

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``train`` or ``test``."""
        if split not in self._tasks:
            raise ValueError(f"the gym has no split {split!r}; it has train and test")
        return self._tasks[split]

    def score(self, task: Task, answer: str) -> Score:
        """``exact_match``: every value right; ``partial``: the share of right ones."""
        return score_values(task, answer)


def score_values(task: Task, answer: str) -> Score:
    """Compare value by value, in order."""
    wanted, given = task.answers[0].split("; "), answer.split("; ")
    right = sum(one == other for one, other in zip(wanted, given, strict=False))
    return {"exact_match": float(right == len(wanted)), "partial": right / len(wanted)}


@dataclass(frozen=True)
class DecisionTimes:
    """Simulated seconds that a decision costs its team (ours): a small model, a stateless call, the whole context."""

    lts: float = 0.05
    llm: float = 4.0
    orchestrator: float = 7.0


@dataclass(frozen=True)
class Gym:
    """Episodes of K simulated teams. Implements :class:`rollout.teams.ParallelTeams`.

    Attributes:
        teams: K (paper: 3).
        max_steps: of each team (paper: 30; ours: 10, so that searching everything alone does not fit).
        behaviour: of a team.
        decision_s: simulated cost of a decision.
        judge_error: how often a prompted decider errs on what its words give away (ours).
        summary: length of the keys.
    """

    teams: int = 3
    max_steps: int = 10
    behaviour: GymTeams = field(default_factory=GymTeams)
    decision_s: DecisionTimes = field(default_factory=DecisionTimes)
    judge_error: float = 0.15
    summary: Length = "short"

    def __post_init__(self) -> None:
        check_at_least(1, "teams.init_args", teams=self.teams, max_steps=self.max_steps)

    async def episode(
        self, task: Task, member: int, seed: int, variant: Variant, controller: MakeAdmission | None = None
    ) -> TeamsEpisode:
        """One episode; equal arguments give equal episodes.

        Args:
            seed: of everything that is left to chance.
            variant: who decides on admission.
            controller: makes the admission of ``lts``.
        """
        clock = SimulatedClock(self.teams)
        rngs = [random.Random(call_seed(seed, 0, task.id, member, team)) for team in range(self.teams)]
        teams = [SimulatedTeam(self.behaviour, clock, rng, self.summary) for rng in rngs]
        judge = SimulatedJudge(self.judge_error, random.Random(call_seed(seed, 1, task.id, member, 0)))
        if variant == "lts":
            if controller is None:
                raise ValueError("the variant lts needs a controller; give one, or another variant")
            admission: Admission | None = controller(task, member)
        else:
            admission = asked_admission(variant, judge)
        sharing = None
        if admission is not None:
            costs = {
                "lts": self.decision_s.lts,
                "llm": self.decision_s.llm,
                "orchestrator": self.decision_s.orchestrator,
            }
            timed = TimedAdmission(admission, clock, costs.get(variant, 0.0))
            sharing = Sharing(timed, _summariser(teams, clock))

        async def aggregate(task: Task, results: Sequence[TeamResult]) -> str:
            clock.pass_time(self.behaviour.step_s)
            return majority(topics_of(task), results)

        return await run_teams(task, teams, sharing, aggregate, score_values, clock, self.max_steps, member)

    async def close(self) -> None:
        """Nothing to free."""


class TimedAdmission:
    """An admission whose decisions take simulated time."""

    def __init__(self, admission: Admission, clock: SimulatedClock, seconds: float) -> None:
        self._admission = admission
        self._clock = clock
        self._seconds = seconds

    async def decide(self, candidate: Candidate) -> Verdict:
        """The admission's own verdict, ``seconds`` later."""
        await self._clock.sleep(candidate.team, self._seconds)
        return await self._admission.decide(candidate)


class SimulatedJudge:
    """Stands in for the prompted model of ``llm`` and ``orchestrator`` (SIMULATION): an :class:`Ask`.

    It keeps what states a value and drops failures and notes, but errs; the one with context errs half as often. It
    does not learn what misleads other teams: an unsupported claim that states a value passes.
    """

    def __init__(self, error: float, rng: random.Random) -> None:
        self._error = error
        self._rng = rng

    async def __call__(
        self, team: int, agent: Agent, messages: Sequence[Message], structure: Structure | None = None
    ) -> str:
        """``YES`` or ``NO``."""
        result = messages[-1].content.partition("Result:\n")[2]
        sensible = re.search(r" is \d", result) is not None
        error = self._error / 2 if agent.role == "orchestrator" else self._error
        return YES if sensible != (self._rng.random() < error) else NO


def majority(topics: Sequence[str], results: Sequence[TeamResult]) -> str:
    """The simulated aggregator: value by value what most teams say, ties to the team that finished first."""
    by_time = sorted(results, key=lambda result: (result.finished_s, result.team))
    answers = [result.answer.split("; ") for result in by_time]
    chosen = []
    for place in range(len(topics)):
        said = [answer[place] for answer in answers if answer[place] != UNKNOWN]
        chosen.append(Counter(said).most_common(1)[0][0] if said else UNKNOWN)
    return "; ".join(chosen)


def _summariser(teams: Sequence[SimulatedTeam], clock: SimulatedClock) -> Callable[[int, str, str], Awaitable[str]]:
    async def summarise(team: int, instruction: str, output: str) -> str:
        await clock.sleep(team, teams[team].settings.summary_s)
        return teams[team].texts[-1].summary

    return summarise
