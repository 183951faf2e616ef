"""CAMEL: role-play between a user who instructs and an assistant who acts (Li et al., 2023).

LatentMem's App. B.3 has four agents, three in the debate and one that summarises. Read so here (ours): the task
specifier opens the debate by making the task concrete, user and assistant take turns on it, the summariser reads all
and answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from data.task import Task
from memory.memory import Agent
from rollout.mas.mas import MAS, Act
from rollout.prompt import check_roles, load_prompts
from rollout.structure import answer_structure

ROLES = ("task_specifier", "user", "assistant", "summariser")
DONE = "TASK_DONE"
"""What the user says in place of a further instruction; the prompts ask for it."""


class CAMEL(MAS):
    """At most ``2 + 2 * turns`` calls a task, one after the other.

    Args:
        turns: instructions that the user may give (ours: 2).
    """

    name = "camel"

    def __init__(self, turns: int = 2) -> None:
        check_roles(self.name, ROLES)
        if turns < 1:
            raise ValueError(f"mas.init_args.turns is {turns}; the user gives at least one instruction")
        self.turns = turns

    def agents(self, domain: str) -> tuple[Agent, ...]:
        """Task specifier, user, assistant, summariser."""
        prompts = load_prompts(domain)
        return tuple(prompts.agent(self.name, role) for role in ROLES)

    async def run(self, task: Task, act: Act) -> str:
        """The summariser's reply is the answer. The user may end the debate early, but not before the first turn."""
        specifier, user, assistant, summariser = self.agents(task.domain)
        specified = await self._ask(task, act, specifier, "specify")
        dialogue = [self._note(task, specifier, task=specified)]
        for turn in range(self.turns):
            instruction = await self._ask(task, act, user, "continue" if turn else "begin", dialogue)
            if turn and DONE in instruction:
                break
            dialogue.append(self._note(task, user, instruction=instruction))
            reply = await self._ask(task, act, assistant, "respond", dialogue)
            dialogue.append(self._note(task, assistant, reply=reply))
        return await self._ask(task, act, summariser, "summarise", dialogue)

    async def _ask(self, task: Task, act: Act, agent: Agent, template: str, dialogue: Sequence[str] = ()) -> str:
        role = load_prompts(task.domain).role(self.name, agent.role)
        said = {"dialogue": "\n".join(dialogue)} if dialogue else {}
        structure = answer_structure(task) if template == "summarise" else None
        return (await act(agent, role.messages(template, question=task.question, **said), structure)).strip()

    def _note(self, task: Task, agent: Agent, /, **said: str) -> str:
        return load_prompts(task.domain).role(self.name, agent.role).fill("note", **said)
