"""LTS on the tiny Qwen3 and the gym, small enough that a whole run takes a second or two."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import lightning as L

from data.datamodule import TaskDataModule
from data.epoch_loader import EpochSettings
from lightning_modules.controller import ControllerSettings
from lightning_modules.lts import LTS, ControllerOptimiser
from lightning_modules.reinforce import ReinforceSettings
from rollout.gym.gym import Gym, GymBenchmark
from tests.lightning_modules.parts import tiny_trainer

SMALL = ReinforceSettings(group_size=3, reward="partial", micro_batch=4)


@dataclass(frozen=True)
class GymRun:
    """What tests vary."""

    epochs: int = 2
    passes: int = 2
    tasks: int = 3
    max_steps: int = 5
    lr: float = 1e-3
    reinforce: ReinforceSettings = SMALL
    initial_admission: float | None = 0.6
    dtype: Literal["float32", "bfloat16"] = "float32"


def lts_module(folder: Path, setting: GymRun) -> LTS:
    return LTS(
        Gym(max_steps=setting.max_steps),
        str(folder),
        controller=ControllerSettings(initial_admission=setting.initial_admission),
        reinforce=setting.reinforce,
        optimiser=ControllerOptimiser(lr=setting.lr, warmup_ratio=0.3),
        dtype=setting.dtype,
    )


def lts_data(setting: GymRun) -> TaskDataModule:
    epochs = EpochSettings(setting.epochs, setting.passes, collect_batch=2, reuse_batch=2)
    return TaskDataModule(GymBenchmark(train=setting.tasks, test=2), seed=3, epochs=epochs)


def fit_lts(folder: Path, root: Path, setting: GymRun, *callbacks: L.Callback, ckpt_path: Path | None = None) -> LTS:
    """A whole run, or what is left of one after ``ckpt_path``."""
    module = lts_module(folder, setting)
    resume = str(ckpt_path) if ckpt_path else None
    trainer = tiny_trainer(root, *callbacks)
    trainer.fit(module, datamodule=lts_data(setting), ckpt_path=resume, weights_only=True)
    return module
