"""The seam every memory is built behind: LatentMem's composer, CoMem's stores, plain text, or several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from data.task import Task
from data.trajectory import Trajectory


@dataclass(frozen=True)
class Agent:
    """a_k of the paper: a name, unique within its MAS, and the role with its profile γ_k."""

    name: str
    role: str
    profile: str


@dataclass(frozen=True)
class Recall:
    """What a memory contributes to one agent call.

    Attributes:
        text: goes into the prompt's memory slot; empty for none.
        latents: ``[latents, hidden]`` input embeddings, or ``None``.
        entry_ids: which entries it was made from, for credit and for the trace.
    """

    text: str = ""
    latents: torch.Tensor | None = None
    entry_ids: tuple[str, ...] = ()


class Memory(Protocol):
    """Read before a call, written after an episode. An absent memory is ``None``, never an empty one."""

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None:
        """Do the batched work (search, composition) for every (task, agent) pair that the next episodes may ask for."""
        ...

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        """The memory of ``agent`` for ``task``; ``context`` is the prompt text of this call."""
        ...

    def end_episode(self, trajectory: Trajectory) -> None:
        """Take in a finished episode. Called in task order, whatever order episodes finished in."""
        ...
