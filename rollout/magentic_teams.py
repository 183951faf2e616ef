"""K MagenticOne teams on one engine: LTS on the real path. K = 3 without sharing is M1-Parallel, K = 1 MagenticOne."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from data.assets import resolve_model
from data.bounds import check_at_least
from data.task import Benchmark, Task
from memory.memory import Agent
from rollout.admission import AskedSummary, Variant, asked_admission
from rollout.aggregation import AskedAggregate
from rollout.clock import WallClock
from rollout.engine import Engine
from rollout.failure import blame
from rollout.mas.magentic_one.magentic_one import MagenticOne
from rollout.mas.mas import Message
from rollout.structure import Structure
from rollout.team_calls import TeamCalls, TeamSampling
from rollout.teams import Aggregate, MakeAdmission, Seat, Sharing, Team, run_teams
from rollout.teams_episode import TeamResult, TeamsEpisode

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SUMMARY_WORDS: Mapping[str, tuple[int, int]] = {"short": (15, 20), "long": (45, 50)}
"""Lengths of a key (paper, Table 6)."""


class MagenticTeam(Team):
    """One seat taken by a MagenticOne.

    Args:
        calls: of the episode; tokens of this team's summaries and decisions are counted with its own.
    """

    def __init__(self, mas: MagenticOne, calls: TeamCalls) -> None:
        self._mas = mas
        self._calls = calls

    async def run(self, task: Task, seat: Seat) -> str:
        """The candidate answer. Raises :class:`rollout.failure.EpisodeError`, ``EngineDiedError``."""

        async def act(agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> str:
            return await self._calls(seat.team, agent, messages, structure)

        try:
            with blame("agents"):
                return await self._mas.work(task, act, seat)
        finally:
            seat.spend(self._calls.tokens[seat.team])


@dataclass(frozen=True)
class MagenticTeams:
    """Episodes of real teams. Implements :class:`rollout.teams.ParallelTeams`; the clock is the wall's.

    Attributes:
        mas: the team that every seat is taken by; its ``max_steps`` is for running alone.
        engine: started by the first episode.
        model: name or path of the model whose tokenizer and chat template are the engine's; not looked at with an
            engine that takes text only.
        benchmark: scores answers.
        teams: K (paper: 3).
        max_steps: of each team (paper: 30).
        summary: length of the keys (paper: short).
        sampling: of all calls.
        transcript_characters: of each team that the aggregator reads, the end (ours).

    Raises:
        ValueError: no team, no step, no character.
    """

    mas: MagenticOne
    engine: Engine
    model: str
    benchmark: Benchmark
    teams: int = 3
    max_steps: int = 30
    summary: Literal["short", "long"] = "short"
    sampling: TeamSampling = field(default_factory=TeamSampling)
    transcript_characters: int = 4000

    def __post_init__(self) -> None:
        check_at_least(
            1,
            "teams.init_args",
            teams=self.teams,
            max_steps=self.max_steps,
            transcript_characters=self.transcript_characters,
        )

    async def episode(
        self, task: Task, member: int, seed: int, variant: Variant, controller: MakeAdmission | None = None
    ) -> TeamsEpisode:
        """One episode. What chance decides in one team depends on ``seed`` and the bank that it saw.

        Raises:
            EngineDiedError: nobody can be served.
            ValueError: ``lts`` without ``controller``.
        """
        await self.engine.start()
        tokenizer = None if self.engine.text_only else chat_tokenizer(self.model)
        calls = TeamCalls(self.engine, tokenizer, task, member, seed, variant, self.teams, self.sampling)
        played = await run_teams(
            task,
            [MagenticTeam(self.mas, calls) for _ in range(self.teams)],
            self._sharing(calls, task, member, variant, controller),
            self._aggregate(calls),
            self.benchmark.score,
            WallClock(),
            self.max_steps,
            member,
        )
        return replace(played, calls=tuple(sorted(calls.steps, key=lambda step: step.call)))

    def _aggregate(self, calls: TeamCalls) -> Aggregate:
        asked = AskedAggregate(calls, self.transcript_characters)

        async def aggregate(task: Task, results: Sequence[TeamResult]) -> str:
            with blame("agents"):
                return await asked(task, results)

        return aggregate

    async def close(self) -> None:
        """Stop the engine, on the event loop of the episodes."""
        await self.engine.close()

    def _sharing(
        self, calls: TeamCalls, task: Task, member: int, variant: Variant, controller: MakeAdmission | None
    ) -> Sharing | None:
        if variant == "lts" and controller is None:
            raise ValueError("the variant lts needs a controller; give one, or another variant")
        learnt = controller(task, member) if variant == "lts" and controller is not None else None
        admission = learnt or asked_admission(variant, calls)
        if admission is None:
            return None
        return Sharing(admission, AskedSummary(calls, SUMMARY_WORDS[self.summary]))


@lru_cache
def chat_tokenizer(model: str) -> PreTrainedTokenizerBase:
    """Read once a process."""
    from transformers import AutoTokenizer

    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(resolve_model(model))
    return tokenizer
