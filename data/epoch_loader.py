"""Training by epochs of collection and reuse (LTS §4.1): sample episodes of every task, then pass over them often."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from data.stage_batch import StageBatch, StageName
from data.task import Task


@dataclass(frozen=True)
class EpochSettings:
    """How long, and in which pieces.

    Attributes:
        epochs: (paper: 5).
        passes: over an epoch's episodes (paper: 10).
        collect_batch: tasks a collecting iteration (ours).
        reuse_batch: tasks an optimiser step, with all G episodes of each (ours).
        tasks: only the first tasks of the training split; all of them by default.
    """

    epochs: int = 5
    passes: int = 10
    collect_batch: int = 8
    reuse_batch: int = 4
    tasks: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "passes", "collect_batch", "reuse_batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"data.epochs.{name} is {getattr(self, name)}; give 1 or more")

    def optimiser_steps(self, tasks: int) -> int:
        """In the whole run, when ``tasks`` training tasks are there."""
        used = tasks if self.tasks is None else min(tasks, self.tasks)
        return self.epochs * self.passes * math.ceil(used / self.reuse_batch)


class EpochLoader:
    """Yields ``collect`` batches over all tasks, then ``reuse`` batches, epoch after epoch.

    The position is advanced before a batch is handed out, and saved and restored by Lightning through ``state_dict``.
    The order of tasks within a pass is a pure function of (seed, epoch, pass).
    """

    def __init__(self, tasks: Sequence[Task], settings: EpochSettings, seed: int) -> None:
        self._tasks = tasks[: settings.tasks]
        self._seed = seed
        self._plan: list[tuple[StageName, int, int, tuple[int, ...]]] = []
        for epoch in range(settings.epochs):
            collect = _cut(list(range(len(self._tasks))), settings.collect_batch)
            reuse = [
                batch
                for each in range(settings.passes)
                for batch in _cut(self._order(epoch, each), settings.reuse_batch)
            ]
            self._plan += [("collect", epoch, settings.epochs, batch) for batch in collect]
            self._plan += [("reuse", epoch, settings.epochs, batch) for batch in reuse]
        self._counts = {"collect": len(collect), "reuse": len(reuse)}
        self._position = 0

    def __len__(self) -> int:
        return len(self._plan)

    def __iter__(self) -> Iterator[StageBatch]:
        while self._position < len(self._plan):
            at = self._position
            stage, epoch, _, places = self._plan[at]
            self._position += 1
            count = self._counts[stage]
            step = at % (self._counts["collect"] + self._counts["reuse"])
            step -= self._counts["collect"] if stage == "reuse" else 0
            yield StageBatch(stage, step, count, tuple(self._tasks[place] for place in places), epoch)
        self._position = 0

    def state_dict(self) -> dict[str, int]:
        """The next position."""
        return {"position": self._position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue at a saved position."""
        self._position = state["position"]

    def _order(self, epoch: int, each: int) -> list[int]:
        generator = torch.Generator().manual_seed((self._seed * 1_000_003 + epoch) * 1_009 + each)
        order: list[int] = torch.randperm(len(self._tasks), generator=generator).tolist()
        return order


def _cut(places: list[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(places[at : at + size]) for at in range(0, len(places), size)]
