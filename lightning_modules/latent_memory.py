"""LatentMem behind the memory seam: retrieved trajectories become latents, once for each distinct (query, role)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from data.task import Task
from data.trajectory import Trajectory
from memory.experience_bank import ExperienceBank
from memory.memory import Agent, Recall


@dataclass(frozen=True)
class Composed:
    """The latents of a batch of episodes.

    Attributes:
        latents: ``[pairs, latents, hidden]``.
        rows: which row belongs to a (task id, role).
        entry_ids: the bank entries behind each row.
        similarity: mean cosine similarity of what was retrieved, for the log.
    """

    latents: torch.Tensor
    rows: dict[tuple[str, str], int]
    entry_ids: tuple[tuple[str, ...], ...]
    similarity: float


class LatentMemory:
    """:class:`memory.memory.Memory` over a compose function. ``composed`` keeps the autograd graph for the trainer."""

    def __init__(self, compose: Callable[[Sequence[Task]], Composed], bank: ExperienceBank) -> None:
        self._compose = compose
        self._bank = bank
        self.composed: Composed | None = None

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None:
        """Compose every (task, role) in one batch; the MAS says which roles a task's domain has."""
        self.composed = self._compose(tasks)

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        """Look up the composed latents; the agent's prompt does not change them (Eq. 5)."""
        assert self.composed is not None, "prepare() comes first"
        row = self.composed.rows[task.id, agent.role]
        return Recall(latents=self.composed.latents[row].detach(), entry_ids=self.composed.entry_ids[row])

    def end_episode(self, trajectory: Trajectory) -> None:
        """B ← B ∪ {τ_new} (Eq. 4)."""
        self._bank.append([trajectory])
