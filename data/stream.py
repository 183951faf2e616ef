"""A stream of tasks, solved one after another: which of them go out together, and where a stopped run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from data.task import Task


@dataclass(frozen=True)
class StreamSettings:
    """T_1 … T_N.

    Attributes:
        split: of the benchmark.
        epochs: passes over its tasks, each in an order of its own.
        tasks: only the first ones; all of them by default.
        shuffle: in an order drawn from the data's seed, else as the benchmark has them.
        tasks_in_flight: tasks that are solved at once. 1 is the paper's strict sequence; with more, the agents of a
            batch read the memory as it was before it. Updates apply in task order either way.
    """

    split: str = "train"
    epochs: int = 1
    tasks: int | None = None
    shuffle: bool = True
    tasks_in_flight: int = 1

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.tasks_in_flight < 1:
            raise ValueError(
                f"data.stream.epochs is {self.epochs} and tasks_in_flight {self.tasks_in_flight}; both are at least 1"
            )


@dataclass(frozen=True)
class StreamBatch:
    """Consecutive tasks of the stream. It has what callbacks read of a :class:`data.datamodule.StageBatch`.

    Attributes:
        first: place in the stream of its first task, from 0.
        epoch: which pass over the tasks.
        step, steps: which batch, of how many.
    """

    first: int
    epoch: int
    step: int
    steps: int
    tasks: tuple[Task, ...]
    stage: str = "stream"


class StreamLoader:
    """Yields :class:`StreamBatch` in order. Lightning saves and restores its position by ``state_dict``.

    The order of the tasks is a pure function of (seed, epoch); ``tasks_in_flight`` only cuts it, never across epochs.
    The position counts tasks and is advanced before a batch is handed out.
    """

    def __init__(self, tasks: Sequence[Task], settings: StreamSettings, seed: int) -> None:
        if not tasks:
            raise ValueError(f"the stream is empty: split {settings.split!r} has no tasks")
        self._tasks = tasks[: settings.tasks]
        self._settings = settings
        self._seed = seed
        self._position = 0

    def __len__(self) -> int:
        return self._settings.epochs * self._batches_an_epoch

    def __iter__(self) -> Iterator[StreamBatch]:
        size = len(self._tasks)
        while self._position < self._settings.epochs * size:
            epoch, place = divmod(self._position, size)
            first = self._position
            taken = self._order(epoch)[place : place + self._settings.tasks_in_flight]
            self._position += len(taken)
            step = epoch * self._batches_an_epoch + place // self._settings.tasks_in_flight
            yield StreamBatch(first, epoch, step, len(self), tuple(self._tasks[index] for index in taken))
        self._position = 0

    def state_dict(self) -> dict[str, int]:
        """The next position."""
        return {"position": self._position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue at a saved position."""
        self._position = state["position"]

    @property
    def _batches_an_epoch(self) -> int:
        return -(-len(self._tasks) // self._settings.tasks_in_flight)

    def _order(self, epoch: int) -> list[int]:
        if not self._settings.shuffle:
            return list(range(len(self._tasks)))
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
        order: list[int] = torch.randperm(len(self._tasks), generator=generator).tolist()
        return order
