"""An ``act`` that plays a script and writes down what each agent was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from data.task import Task
from memory.memory import Agent
from rollout.mas.mas import Message
from rollout.structure import Structure

QUESTION = "What is the capital of Peru?"
TASK = Task(id="t0", question=QUESTION, answers=("Lima",), benchmark="sample")


@dataclass
class Script:
    """Replies by agent name; ``delay`` in extra event-loop turns, to let calls come back in another order."""

    reply: Callable[[Agent], str]
    delay: Mapping[str, int] = field(default_factory=dict)
    calls: list[Agent] = field(default_factory=list)
    shown: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    running: int = 0
    most_running: int = 0

    async def act(self, agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> str:
        self.calls.append(agent)
        self.shown[agent.name] = tuple(messages)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        for _ in range(1 + self.delay.get(agent.name, 0)):
            await asyncio.sleep(0)
        self.running -= 1
        return self.reply(agent)

    def names(self) -> list[str]:
        return [agent.name for agent in self.calls]

    def user_text(self, name: str) -> str:
        return self.shown[name][-1].content
