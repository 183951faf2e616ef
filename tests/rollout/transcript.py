"""An ``act`` that numbers calls as they are made, as the runner does, and lets them come back in any order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from data.task import Task
from data.trajectory import Cost, Step, Trajectory
from memory.memory import Agent
from rollout.mas.mas import MAS, Message
from rollout.structure import Structure


@dataclass(frozen=True)
class Call:
    """What was asked; ``text`` is the user message."""

    agent: Agent
    text: str
    messages: tuple[Message, ...]
    structure: Structure | None


Reply = Callable[[int, Call], str]


class Transcript:
    """``reply`` speaks for every agent; ``seed`` shuffles who comes back first (``None``: nobody waits)."""

    def __init__(self, reply: Reply, seed: int | None = None) -> None:
        self.reply = reply
        self.rng = random.Random(seed) if seed is not None else None
        self.calls: list[Call] = []
        self.replies: dict[int, str] = {}
        self.running = 0
        self.most_running = 0

    def act(self, agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> Awaitable[str]:
        self.calls.append(Call(agent, messages[-1].content, tuple(messages), structure))
        return self._speak(len(self.calls) - 1)

    async def _speak(self, number: int) -> str:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        for _ in range(1 if self.rng is None else self.rng.randrange(1, 9)):
            await asyncio.sleep(0)
        self.running -= 1
        self.replies[number] = self.reply(number, self.calls[number])
        return self.replies[number]

    def names(self) -> list[str]:
        return [call.agent.name for call in self.calls]

    def said(self) -> list[tuple[Call, str]]:
        """Calls with their replies, in the order of the calls."""
        return [(call, self.replies[number]) for number, call in enumerate(self.calls)]


def play(mas: MAS, task: Task, reply: Reply, seed: int | None = None) -> tuple[str, Transcript]:
    """The answer of one episode, and how it came about."""
    transcript = Transcript(reply, seed)
    return asyncio.run(mas.run(task, transcript.act)), transcript


def trajectory_of(mas: MAS, task: Task, answer: str, transcript: Transcript) -> Trajectory:
    """The episode as a runner would have recorded it, without token ids."""
    cost = Cost(1, 1, 0, None, 0.0, None, None)
    steps = tuple(
        Step(call.agent.name, call.agent.role, call.text, reply, (), (), (), (), "stop", (), cost)
        for call, reply in transcript.said()
    )
    return Trajectory(task, mas.name, 0, steps, answer, {})
