"""Which tasks each training iteration gets: three stages in a row, a pure function of the seed, resumable anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import lightning as L
import torch

from data.bounds import check_at_least
from data.environment import WorldBenchmark
from data.epoch_loader import EpochLoader, EpochSettings
from data.stage_batch import StageBatch, StageName
from data.stream import StreamLoader, StreamSettings
from data.task import Benchmark, Task

_Batch = TypeVar("_Batch")


@dataclass(frozen=True)
class StageSettings:
    """Length of a stage.

    Attributes:
        batch_size: tasks an iteration.
        epochs: passes over the training tasks; 0 skips the stage.
        steps: iterations; overrides ``epochs`` when given.
        tasks: only the first tasks of the training split; all of them by default.
    """

    batch_size: int = 32
    epochs: float = 1.0
    steps: int | None = None
    tasks: int | None = None

    def __post_init__(self) -> None:
        check_at_least(1, "data.<stage>", batch_size=self.batch_size)
        check_at_least(0, "data.<stage>", epochs=self.epochs, steps=self.steps or 0, tasks=self.tasks or 0)

    def of(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """The training tasks that the stage uses."""
        return tasks[: self.tasks]

    def count(self, tasks: int) -> int:
        """Iterations when ``tasks`` training tasks are there."""
        used = tasks if self.tasks is None else min(tasks, self.tasks)
        return math.ceil(self.epochs * used / self.batch_size) if self.steps is None else self.steps


class StagedLoader:
    """Yields :class:`StageBatch` in order. Lightning saves and restores its position by ``state_dict``.

    The position is advanced before a batch is handed out: a checkpoint written at the end of a training iteration
    continues with the next one.
    """

    def __init__(self, tasks: Sequence[Task], stages: dict[StageName, StageSettings], seed: int) -> None:
        self._tasks = tasks
        self._seed = seed
        self._plan = [
            (name, step, count)
            for name, settings in stages.items()
            for count in [settings.count(len(tasks))]
            for step in range(count)
        ]
        self._stages = stages
        self._position = 0

    def __len__(self) -> int:
        return len(self._plan)

    def __iter__(self) -> Iterator[StageBatch]:
        while self._position < len(self._plan):
            name, step, steps = self._plan[self._position]
            self._position += 1
            yield StageBatch(name, step, steps, self._draw(name, step))
        self._position = 0

    def state_dict(self) -> dict[str, int]:
        """The next position."""
        return {"position": self._position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue at a saved position."""
        self._position = state["position"]

    def _draw(self, stage: StageName, step: int) -> tuple[Task, ...]:
        """Batch ``step`` of the stage's endless sequence of permutations, no task twice in one batch."""
        tasks = self._stages[stage].of(self._tasks)
        size = min(self._stages[stage].batch_size, len(tasks))
        epoch, place = divmod(step, len(tasks) // size)
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
        order = torch.randperm(len(tasks), generator=generator).tolist()
        return tuple(tasks[index] for index in order[place * size : (place + 1) * size])


class TaskDataModule(L.LightningDataModule):
    """Tasks of one benchmark, in the stages of LatentMem's training (paper, App. B.4.2).

    Args:
        benchmark: where tasks and scores come from.
        collect: the collection pass without memory that first fills the experience bank.
        sft: the supervised warm start (ours; the published code needs one too).
        lmpo: reinforcement learning (paper: 1 epoch, 32 trajectories a batch).
        seed: order of the tasks.
        validation_split: the held-out tasks that ``eval.py`` takes.
        train_limit: use only the first tasks of the training split.
        validation_limit: use only the first tasks of the validation split.
        stream: where given, training is this stream of tasks in place of the three stages.
        epochs: where given, LTS's plan of collection and reuse takes the place of the three stages.
    """

    def __init__(
        self,
        benchmark: Benchmark | WorldBenchmark,
        collect: StageSettings = StageSettings(batch_size=32, epochs=1),
        sft: StageSettings = StageSettings(batch_size=16, epochs=1),
        lmpo: StageSettings = StageSettings(batch_size=4, epochs=1),
        seed: int = 0,
        validation_split: str = "test",
        train_limit: int | None = None,
        validation_limit: int | None = None,
        stream: StreamSettings | None = None,
        epochs: EpochSettings | None = None,
    ) -> None:
        super().__init__()
        self.benchmark = benchmark
        self.stages: dict[StageName, StageSettings] = {"collect": collect, "sft": sft, "lmpo": lmpo}
        self.seed = seed
        self.validation_split = validation_split
        self.train_limit = train_limit
        self.validation_limit = validation_limit
        self.stream = stream
        self.epochs = epochs
        if stream is not None and epochs is not None:
            raise ValueError("data.stream and data.epochs are two plans for one run; give one of them")

    def train_dataloader(self) -> StagedLoader | StreamLoader | EpochLoader:
        """The whole plan: the stream; or collection and reuse, epoch after epoch; or collect, then sft, then lmpo."""
        if self.stream is not None:
            return StreamLoader(self.benchmark.tasks(self.stream.split), self.stream, self.seed)
        tasks = self.benchmark.tasks("train")[: self.train_limit]
        if self.epochs is not None:
            return EpochLoader(tasks, self.epochs, self.seed)
        return StagedLoader(tasks, self.stages, self.seed)

    def test_dataloader(self) -> StreamLoader:
        """The held-out tasks once, as a stream with the stream's settings. Raises ``ValueError`` without any."""
        if self.stream is None:
            raise ValueError("only a stream is evaluated by a Trainer: give data.stream, or use eval.py")
        return StreamLoader(self.held_out(), replace(self.stream, epochs=1, tasks=None), self.seed)

    def transfer_batch_to_device(self, batch: _Batch, device: torch.device, dataloader_idx: int) -> _Batch:
        """Tasks are text: there is nothing to move."""
        return batch

    def steps(self, stage: StageName) -> int:
        """Iterations of a stage."""
        return self.stages[stage].count(len(self.benchmark.tasks("train")[: self.train_limit]))

    def held_out(self) -> Sequence[Task]:
        """The tasks that nothing is trained on."""
        return self.benchmark.tasks(self.validation_split)[: self.validation_limit]
