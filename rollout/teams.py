"""K teams on one task over one shared bank (LTS §3; M1-Parallel without the bank, MagenticOne with K = 1).

The seam: a team is a coroutine over a :class:`Seat`. Before each orchestrator step it reads ``seat.keys()`` and has the
values that it wants put into its context by ``seat.select``; after each agent step it reports ``(u_t, o_t)`` to
``seat.admit``. It stops when it has an answer or when ``seat.exhausted``. MagenticOne and the gym's simulated teams
both run on it unchanged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from data.task import Score, Task
from memory.shared_bank import Entry, SharedBank
from rollout.admission import Admission, Candidate, Summarise, Variant, Verdict
from rollout.clock import Clock
from rollout.failure import EpisodeError
from rollout.teams_episode import AdmissionStep, Stop, TeamResult, TeamsEpisode, TeamStep

Aggregate = Callable[[Task, Sequence[TeamResult]], Awaitable[str]]
"""𝒜: the task and every team's result, in the order of teams, to the final answer."""


@dataclass(frozen=True)
class Sharing:
    """What makes teams share: who decides, and who writes the keys."""

    admission: Admission
    summarise: Summarise


MakeAdmission = Callable[[Task, int], Admission]
"""(task, member) to the admission of that episode, for the variant that learns."""


class ParallelTeams(Protocol):
    """Whatever plays an episode of K teams: the gym's simulated ones, or real ones on an engine."""

    async def episode(
        self, task: Task, member: int, seed: int, variant: Variant, controller: MakeAdmission | None = None
    ) -> TeamsEpisode:
        """One episode.

        Args:
            seed: of everything that is left to chance.
            variant: who decides on admission; ``lts`` needs ``controller``.
        """
        ...

    async def close(self) -> None:
        """Free what episodes took, on their event loop; idempotent."""
        ...


class Team(Protocol):
    """One team: an orchestrator and its agents."""

    async def run(self, task: Task, seat: Seat) -> str:
        """Work on ``task`` and return the candidate answer y^k.

        Raises:
            EpisodeError: this team broke off; the others go on without it.
        """
        ...


class Seat:
    """A team's place in an episode: its step budget, and its view of the bank.

    Args:
        team: index of the team.
        max_steps: agent steps that it may take.
        admissions: the episode's list of decisions, which every seat appends to.
    """

    def __init__(
        self,
        team: int,
        max_steps: int,
        question: str,
        bank: SharedBank,
        admissions: list[AdmissionStep],
        sharing: Sharing | None,
        clock: Clock,
    ) -> None:
        self.team = team
        self.steps: list[TeamStep] = []
        self.tokens = 0
        self._max_steps = max_steps
        self._question = question
        self._bank = bank
        self._admissions = admissions
        self._sharing = sharing
        self._clock = clock

    @property
    def exhausted(self) -> bool:
        """No step is left: time for the final answer."""
        return len(self.steps) >= self._max_steps

    def keys(self) -> tuple[str, ...]:
        """The bank's keys now; none without sharing."""
        return self._bank.keys()

    def select(self, places: Sequence[int]) -> tuple[str, ...]:
        """Values of the keys at ``places``. Raises ``IndexError`` for a place that is not in the bank."""
        return self._bank.select(places, self.team, len(self.steps))

    def spend(self, tokens: int) -> None:
        """Count tokens that the team's models read or wrote."""
        self.tokens += tokens

    async def admit(self, instruction: str, output: str, context: str = "") -> None:
        """Report one agent step.

        Args:
            instruction: u_t, what the orchestrator told the agent.
            output: o_t, what the agent returned.
            context: what the orchestrator has before it.

        Raises:
            RuntimeError: the step is one more than the limit.
        """
        if self.exhausted:
            raise RuntimeError(f"team {self.team} took a step after its limit of {self._max_steps}: check exhausted")
        self.steps.append(TeamStep(instruction, output))
        if self._sharing is None:
            return
        summary = await self._sharing.summarise(self.team, instruction, output)
        keys = self._bank.keys()
        step = len(self.steps) - 1
        candidate = Candidate(self._question, keys, self.team, step, instruction, summary, output, context)
        self._record(candidate, await self._sharing.admission.decide(candidate))

    def _record(self, candidate: Candidate, verdict: Verdict) -> None:
        entry = None
        if verdict.admit:
            new = Entry(candidate.summary, candidate.output, self.team, candidate.step, self._clock.now())
            entry = self._bank.append(new)
        record = AdmissionStep(
            team=self.team,
            step=candidate.step,
            instruction=candidate.instruction,
            summary=candidate.summary,
            output=candidate.output,
            seen=len(candidate.keys),
            admitted=verdict.admit,
            probability=verdict.probability,
            entry=entry,
            wall_s=verdict.wall_s,
        )
        self._admissions.append(record)


async def run_teams(
    task: Task,
    teams: Sequence[Team],
    sharing: Sharing | None,
    aggregate: Aggregate,
    score: Callable[[Task, str], Score],
    clock: Clock,
    max_steps: int = 30,
    member: int = 0,
) -> TeamsEpisode:
    """One episode: all teams at once, then the aggregate.

    Args:
        sharing: ``None`` for teams that know nothing of each other.
        score: the benchmark's rule, applied to the aggregate (R_agg) and to the first team's answer (R_first).
        max_steps: of each team (paper: 30).
        member: place in the group of G.

    A team that raises :class:`rollout.failure.EpisodeError` has failed and answers nothing; an aggregate that raises it
    or of which no team is left, is empty. Whatever else they raise ends the episode; the other teams are cancelled.

    Raises:
        ValueError: no team.
    """
    if not teams:
        raise ValueError("an episode needs at least one team")
    started = time.perf_counter()
    bank, admissions = SharedBank(), list[AdmissionStep]()
    seats = [Seat(place, max_steps, task.question, bank, admissions, sharing, clock) for place, _ in enumerate(teams)]
    results = await _all_teams([_finish(task, team, seat, clock) for team, seat in zip(teams, seats, strict=True)])
    first = min(results, key=lambda result: (result.stop == "failed", result.finished_s, result.team))
    answer, failure = await _aggregated(task, results, aggregate)
    return TeamsEpisode(
        task=task,
        member=member,
        results=results,
        first=first.team,
        answer=answer,
        score=score(task, answer),
        score_first=score(task, first.answer),
        entries=bank.entries,
        uses=bank.uses,
        admissions=tuple(admissions),
        runtime_s=clock.now(),
        simulated=clock.simulated,
        wall_s=time.perf_counter() - started,
        failure=failure,
    )


async def _all_teams(teams: Sequence[Coroutine[Any, Any, TeamResult]]) -> tuple[TeamResult, ...]:
    """Results by team. The first exception, or a cancellation from outside, cancels the other teams."""
    running = [asyncio.create_task(team) for team in teams]
    try:
        return tuple(await asyncio.gather(*running))
    finally:
        for team in running:
            team.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _finish(task: Task, team: Team, seat: Seat, clock: Clock) -> TeamResult:
    answer, failure = "", None
    try:
        answer = await team.run(task, seat)
    except EpisodeError as error:
        failure = str(error)
    stop: Stop = "failed" if failure else "step_limit" if seat.exhausted else "answered"
    return TeamResult(seat.team, answer, stop, clock.now(), seat.tokens, tuple(seat.steps), failure)


async def _aggregated(task: Task, results: Sequence[TeamResult], aggregate: Aggregate) -> tuple[str, str | None]:
    """The aggregate, or why there is none."""
    reasons = [result.failure for result in results if result.failure]
    if len(reasons) == len(results):
        return "", f"all teams failed, the first: {reasons[0]}"
    try:
        return await aggregate(task, results), None
    except EpisodeError as error:
        return "", str(error)
