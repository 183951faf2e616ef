"""The orchestrator's own calls: facts, plan, shared results, ledger, replanning, final answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from data.task import Task
from memory.memory import Agent
from rollout.mas.magentic_one.ledger import (
    Ledger,
    Lengths,
    ledger_schema,
    read_ledger,
    read_selection,
    selection_schema,
)
from rollout.mas.magentic_one.reply import structured_reply
from rollout.mas.magentic_one.thread import Thread
from rollout.mas.mas import Act
from rollout.prompt import RolePrompts
from rollout.structure import Structure, answer_structure
from rollout.teams import Seat
from rollout.validate_structure import Mismatch


@dataclass(frozen=True)
class Orchestrator:
    """O_k on one task.

    Attributes:
        role: its prompts.
        speakers: names of the agents that it may call on.
        team: who they are, a line each, for the prompts.
        attempts: at a structured reply.
        most_selected: values that it takes from the bank before one step (ours).
    """

    task: Task
    act: Act
    agent: Agent
    role: RolePrompts
    thread: Thread
    speakers: Sequence[str]
    team: str
    attempts: int
    most_selected: int
    lengths: Lengths

    async def begin(self) -> None:
        """Facts, then the plan."""
        thread = self.thread
        thread.facts = await self._say("facts", question=thread.question)
        thread.plan = await self._say("plan", question=thread.question, facts=thread.facts, team=self.team)

    async def replan(self) -> None:
        """Update the facts by what was learnt, plan anew, reset the agents."""
        thread = self.thread
        thread.facts = await self._say("update_facts", context=self.context())
        thread.plan = await self._say("update_plan", context=self.context(), team=self.team)
        thread.reset()

    async def read_bank(self, seat: Seat) -> None:
        """See the keys of what is shared, and take the values of those that are wanted into the thread."""
        keys = seat.keys()
        offered = [place for place in range(len(keys)) if place not in self.thread.taken]
        if not offered:
            return
        listed = "\n".join(f"{number}. {keys[place]}" for number, place in enumerate(offered, 1))
        schema = selection_schema(len(offered), self.most_selected, self.lengths)
        reply = await self._structured("select", schema, context=self.context(), keys=listed)
        wanted = [offered[number] for number in read_selection(reply)]
        for place, value in zip(wanted, seat.select(wanted), strict=True):
            self.thread.said.append(self.role.fill("shared", key=keys[place], value=value))
        self.thread.taken.update(wanted)

    async def ledger(self) -> Ledger:
        """The progress ledger. Raises ``ValueError`` when no attempt gives one."""
        schema = ledger_schema(self.speakers, self.lengths)
        names = ", ".join(self.speakers)
        return read_ledger(
            await self._structured("ledger", schema, context=self.context(), team=self.team, names=names)
        )

    async def answer(self) -> str:
        """The final answer, from what the team has."""
        messages = self.role.messages("answer", context=self.context(), question=self.thread.question)
        return (await self.act(self.agent, messages, answer_structure(self.task))).strip()

    def context(self) -> str:
        """Task, facts, plan, and what was said: what every prompt of the team begins with."""
        thread = self.thread
        said = thread.shown() or self.role.fill("nothing_said")
        return self.role.fill("context", question=thread.question, facts=thread.facts, plan=thread.plan, said=said)

    async def _say(self, template: str, **values: str) -> str:
        return (await self.act(self.agent, self.role.messages(template, **values))).strip()

    async def _structured(self, template: str, structure: Structure, **values: str) -> str:
        messages = self.role.messages(template, **values)
        reply = await structured_reply(self.act, self.agent, self.role, messages, structure, self.attempts)
        if isinstance(reply, Mismatch):
            raise ValueError(
                f"task {self.task.id}: the orchestrator gave no valid {template} in {self.attempts} attempt(s): "
                f"{reply.reason}; use an engine that constrains decoding, or raise attempts"
            )
        return reply
