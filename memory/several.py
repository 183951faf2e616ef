"""Several memories as one, such as CoMem's insights as text and LatentMem's latents in the same agent call."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from data.task import Task
from data.trajectory import Trajectory
from memory.memory import Agent, Memory, Recall


class Several:
    """Implements :class:`memory.memory.Memory`: texts one below the other, latents ``[sum of latents, hidden]``.

    Args:
        memories: in the order in which an agent reads them.
    """

    def __init__(self, memories: Sequence[Memory]) -> None:
        self.memories = tuple(memories)

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None:
        """Each memory's own."""
        for memory in self.memories:
            memory.prepare(tasks, agents)

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        """What every memory has to say; entries keep their memory's order."""
        found = [memory.recall(task, agent, context) for memory in self.memories]
        latents = [each.latents for each in found if each.latents is not None]
        return Recall(
            text="\n\n".join(each.text for each in found if each.text),
            latents=torch.cat(latents) if latents else None,
            entry_ids=tuple(entry for each in found for entry in each.entry_ids),
        )

    def end_episode(self, trajectory: Trajectory) -> None:
        """Each memory takes it in."""
        for memory in self.memories:
            memory.end_episode(trajectory)
