"""The seam of worlds that are acted in step by step: ALFWorld, PDDL games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from data.task import Score, Task


@dataclass(frozen=True)
class Observation:
    """What an action led to.

    Attributes:
        text: what the agents read.
        admissible: the actions that are possible now, where the world lists them and was asked to.
        done: the episode is over.
    """

    text: str
    admissible: tuple[str, ...] = ()
    done: bool = False


class Environment(Protocol):
    """One episode of one task. Plain synchronous calls: whoever drives many keeps them off its event loop."""

    def reset(self) -> Observation:
        """Begin anew."""
        ...

    def step(self, action: str) -> Observation:
        """Take one action. One that cannot be read or taken is told why, and costs a step."""
        ...

    def score(self) -> Score:
        """Scores of the episode so far, each in [0, 1]."""
        ...

    def close(self) -> None:
        """Free what ``reset`` took; idempotent."""
        ...


@runtime_checkable
class World(Protocol):
    """A benchmark whose tasks are acted out; its scores come from the environment.

    An episode that is not done after ``max_steps`` actions ends there.
    """

    name: str
    max_steps: int

    @property
    def metrics(self) -> tuple[str, ...]:
        """The keys of every score; a class attribute does."""
        ...

    def environment(self, task: Task) -> Environment:
        """A fresh environment for ``task``."""
        ...


class WorldBenchmark(World, Protocol):
    """A world that brings its tasks."""

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of ``split`` in a fixed order. Raises ``ValueError`` for an unknown split."""
        ...
