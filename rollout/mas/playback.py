"""A finished episode played back: its MAS walks through it once more, and no engine is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence

from data.trajectory import Step, Trajectory
from memory.memory import Agent
from rollout.mas.mas import Act, Message
from rollout.structure import Structure


def playback(trajectory: Trajectory) -> Act:
    """An ``act`` that gives the recorded replies in the order of the calls.

    It raises ``ValueError`` where the MAS that runs over it asks otherwise than the one that was recorded.
    """
    steps: Iterator[Step] = iter(trajectory.steps)

    def next_step(agent: Agent) -> Step:
        step = next(steps, None)
        if step is None or step.agent != agent.name:
            found = "ends there" if step is None else f"has {step.agent}"
            raise ValueError(
                f"task {trajectory.task.id}, member {trajectory.member}: {agent.name} should speak next, the episode "
                f"of {trajectory.mas} {found}; play it back with the MAS and the settings it was made with"
            )
        return step

    async def reply(text: str) -> str:
        return text

    def act(agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> Awaitable[str]:
        return reply(next_step(agent).output)

    return act
