"""DyLAN: debaters over rounds, an early stop, a ranker, agent importance scores (Liu et al., 2024).

LatentMem's App. B.3 has four debaters and a ranker. Ours, because no paper here says it: three rounds; the ranker keeps
two debaters from the third round on (as in the published code); ratings are a call of their own beside a debater's
answer, so that an answer can be held to choices; all of a round speak at once, where the published code asks one after
another and may stop within a round; a reply that cannot be read as ratings or a ranking counts as a neutral one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Literal

from data.task import Task
from data.trajectory import Trajectory
from memory.memory import Agent
from rollout.mas.debate import Debate, Round, consensus, importance, most_frequent, read_ranking, read_ratings
from rollout.mas.mas import MAS, Act
from rollout.mas.playback import playback
from rollout.prompt import check_roles, load_prompts
from rollout.structure import answer_structure

TEAM = ("expert", "analyst", "critic", "pragmatist")


class DyLAN(MAS):
    """At most 17 calls a task with the defaults: 4 answers, 4 answers and ratings, a ranking, 2 answers and ratings.

    Args:
        team: roles of the debaters, one each (paper: four of them; these roles: ours). A role may come more than once.
        rounds: at most so many (ours: 3).
        keep: debaters that the ranker lets go on from the third round (ours).
        rate: debaters rate what they read, which :meth:`importance` needs and the answer does not.
    """

    name = "dylan"

    def __init__(self, team: tuple[str, ...] = TEAM, rounds: int = 3, keep: int = 2, rate: bool = True) -> None:
        check_roles(self.name, (*team, "ranker"))
        if len(team) < 2 or rounds < 1 or not 1 <= keep <= len(team):
            raise ValueError(
                f"mas.init_args.team has {len(team)} debaters, rounds is {rounds} and keep {keep}; "
                "give at least 2 debaters and 1 round, and keep between 1 and the number of debaters"
            )
        self.team, self.rounds, self.keep, self.rate = tuple(team), rounds, keep, rate

    def agents(self, domain: str) -> tuple[Agent, ...]:
        """The debaters in order of the team, then the ranker."""
        prompts = load_prompts(domain)
        debaters = [prompts.agent(self.name, role, f"debater_{place}") for place, role in enumerate(self.team)]
        return (*debaters, prompts.agent(self.name, "ranker"))

    async def run(self, task: Task, act: Act) -> str:
        """The answer of the debate."""
        return (await self.debate(task, act)).answer

    async def debate(self, task: Task, act: Act) -> Debate:
        """Rounds until more than floor(2n/3) of a round's n debaters agree; else the last round's most frequent answer.

        Of answers that are equally frequent the one whose debater the ranker put first.
        """
        rounds: list[Round] = []
        active: Sequence[int] = range(len(self.team))
        while len(rounds) < self.rounds:
            if len(rounds) >= 2 and len(active) > self.keep:
                active = await self._rank(task, act, rounds[-1].replies)
            rounds.append(await self._round(task, act, active, rounds[-1].replies if rounds else {}))
            if consensus(tuple(rounds[-1].replies.values())):
                break
        return Debate(tuple(rounds), most_frequent(rounds[-1].replies.values())[0])

    def importance(self, trajectory: Trajectory) -> dict[str, float]:
        """Agent Importance Scores by name of agent, from a finished episode of this MAS alone.

        Not for code on a running event loop, which awaits :meth:`debate` with :func:`playback` instead.

        Raises ``ValueError`` for an episode that is not one of this MAS, has failed, or has no ratings.
        """
        debate = asyncio.run(self.debate(trajectory.task, playback(trajectory)))
        return {f"debater_{place}": score for place, score in importance(debate).items()}

    async def _round(self, task: Task, act: Act, active: Sequence[int], before: Mapping[int, str]) -> Round:
        answers = [self._call(task, act, place, "revise" if before else "answer", before) for place in active]
        rates = [self._call(task, act, place, "rate", before) for place in active] if before and self.rate else []
        said = [reply.strip() for reply in await asyncio.gather(*answers, *rates)]
        replies = dict(zip(active, said, strict=False))
        given = (read_ratings(reply, len(before)) for reply in said[len(active) :])
        return Round(replies, dict(zip(active, given, strict=False)))

    async def _rank(self, task: Task, act: Act, before: Mapping[int, str]) -> tuple[int, ...]:
        ranking = await self._call(task, act, len(self.team), "rank", before)
        places = tuple(before)
        return tuple(places[place] for place in read_ranking(ranking, len(before)))[: self.keep]

    def _call(
        self,
        task: Task,
        act: Act,
        place: int,
        template: Literal["answer", "revise", "rate", "rank"],
        before: Mapping[int, str],
    ) -> Awaitable[str]:
        agent = self.agents(task.domain)[place]
        role = load_prompts(task.domain).role(self.name, agent.role)
        notes = [role.fill("note", number=str(number), reply=reply) for number, reply in enumerate(before.values(), 1)]
        said = {"replies": "\n".join(notes)} if notes else {}
        structure = answer_structure(task) if template in ("answer", "revise") else None
        return act(agent, role.messages(template, question=task.question, **said), structure)
