"""A progress bar that says what an iteration is busy with: ``lmpo 3/10 · rollout 37/64``."""

from __future__ import annotations

import sys
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import TQDMProgressBar

from data.datamodule import StageBatch


class PhaseProgress(TQDMProgressBar):
    """Lightning's bar with the stage and phase in front; one plain line an iteration where there is no terminal."""

    def __init__(self) -> None:
        super().__init__(refresh_rate=1 if sys.stderr.isatty() else 0)
        self._stage = ""

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Listen to the module."""
        super().on_train_start(trainer, pl_module)
        pl_module.on_progress = self._show  # type: ignore[assignment]

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: StageBatch, batch_idx: int
    ) -> None:
        """Name the stage."""
        self._stage = f"{batch.stage} {batch.step + 1}/{batch.steps}"

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: StageBatch, batch_idx: int
    ) -> None:
        """Lightning's own update, or one line."""
        super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
        if not self.is_enabled:
            shown = {name: value for name, value in trainer.progress_bar_metrics.items() if name != "v_num"}
            shown |= {
                name: float(trainer.callback_metrics[name]) for name in _PLAIN if name in trainer.callback_metrics
            }
            figures = "  ".join(
                f"{name} {value:.3g}" for name, value in shown.items() if name.startswith(_OWN[batch.stage])
            )
            print(f"[{batch_idx + 1}/{trainer.num_training_batches}] {self._stage}  {figures}", flush=True)

    def _show(self, phase: str, done: int, total: int) -> None:
        if self.is_enabled and self._train_progress_bar is not None:
            self.train_progress_bar.set_description(f"{self._stage} · {phase} {done}/{total}")


_PLAIN = ("collect/score/lax_match", "lmpo/score/exact_match", "seconds/rollout", "seconds/update", "bank/size")
_OWN = {
    "collect": ("collect", "bank", "seconds/rollout"),
    "sft": ("sft", "seconds/update"),
    "lmpo": ("lmpo", "seconds", "bank"),
    "stream": ("stream", "comem", "seconds"),
    "reuse": ("reuse", "seconds/update"),
}
