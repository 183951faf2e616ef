"""One training iteration, as loaders hand it to a LightningModule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from data.task import Task

StageName = Literal["collect", "sft", "lmpo", "reuse"]


@dataclass(frozen=True)
class StageBatch:
    """One training iteration.

    Attributes:
        stage: what to do with the tasks.
        step: place within the stage (of its epoch, where stages come round every epoch), from 0.
        steps: iterations of the stage in all.
        tasks: distinct tasks.
        epoch: of a plan whose stages come round.
    """

    stage: StageName
    step: int
    steps: int
    tasks: tuple[Task, ...]
    epoch: int = 0
