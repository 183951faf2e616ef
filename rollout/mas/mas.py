"""The seam between a multi-agent system and everything that serves it (engine, memory, accounting)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from data.task import Task
from memory.memory import Agent
from rollout.structure import Structure


@dataclass(frozen=True)
class Message:
    """One turn of a chat, as chat templates take it."""

    role: Literal["system", "user", "assistant"]
    content: str


class Act(Protocol):
    """One agent call: who speaks and what it reads, to what it says. Memory and engine are behind it."""

    def __call__(self, agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> Awaitable[str]:
        """The reply, of the form that ``structure`` asks for."""
        ...


class MAS(Protocol):
    """A coroutine over ``act``. It knows nothing of memory or engines, so every memory works with every MAS."""

    name: str

    def agents(self, domain: str) -> tuple[Agent, ...]:
        """Every agent that :meth:`run` may call on a task of ``domain``, names unique, in a fixed order."""
        ...

    async def run(self, task: Task, act: Act) -> str:
        """Work on ``task`` and return the final answer.

        The order in which ``act`` is called depends on the task, on what is drawn and on what is said, never on which
        call comes back first: a runner may number calls as they start and derive seeds from that. What is left to
        chance is drawn from :func:`rollout.seeds.episode_rng`. Independent calls are awaited together. The call whose
        reply is the answer passes :func:`rollout.structure.answer_structure`.
        """
        ...
