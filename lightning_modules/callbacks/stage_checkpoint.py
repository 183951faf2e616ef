"""A checkpoint at the end of every stage, and ``last.ckpt`` on the way.

Lightning's ``ModelCheckpoint`` counts optimiser steps, so that it never saves during collection, which has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning as L

from data.datamodule import StageBatch


class StageCheckpoint(L.Callback):
    """Writes ``checkpoints/untrained.ckpt``, ``<stage>.ckpt`` at each stage's end, and ``last.ckpt``.

    Args:
        every_n_iterations: how often ``last.ckpt`` is renewed.
    """

    def __init__(self, every_n_iterations: int = 1) -> None:
        self.every_n_iterations = every_n_iterations

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """The composer as it was initialised, for the comparison that ``eval.py`` makes."""
        if trainer.global_step == 0 and not (self._folder(trainer) / "last.ckpt").exists():
            self._save(trainer, "untrained")

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: StageBatch, batch_idx: int
    ) -> None:
        """Save after the iteration that the setting names, and after a stage's last."""
        ends = batch.step == batch.steps - 1
        if ends:
            self._save(trainer, batch.stage)
        if ends or (batch_idx + 1) % self.every_n_iterations == 0:
            self._save(trainer, "last")

    def _save(self, trainer: L.Trainer, name: str) -> None:
        trainer.save_checkpoint(self._folder(trainer) / f"{name}.ckpt", weights_only=False)  # optimisers too

    @staticmethod
    def _folder(trainer: L.Trainer) -> Path:
        return Path(trainer.log_dir or trainer.default_root_dir) / "checkpoints"
