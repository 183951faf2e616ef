"""A few full trajectories as text in TensorBoard."""

from __future__ import annotations

from typing import Any

import lightning as L
from lightning.pytorch.loggers import TensorBoardLogger

from data.datamodule import StageBatch
from data.trajectory import Trajectory


class TrajectoryText(L.Callback):
    """Writes the first trajectories of an iteration.

    Args:
        count: how many.
        every_n_steps: of a stage.
    """

    def __init__(self, count: int = 2, every_n_steps: int = 4) -> None:
        self.count = count
        self.every_n_steps = every_n_steps

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: StageBatch, batch_idx: int
    ) -> None:
        """Only iterations that rolled out have something to show."""
        trajectories: list[Trajectory] = getattr(pl_module, "trajectories", [])
        if not isinstance(trainer.logger, TensorBoardLogger) or batch.step % self.every_n_steps:
            return
        for place, trajectory in enumerate(trajectories[: self.count]):
            text = trajectory_markdown(trajectory)
            trainer.logger.experiment.add_text(f"{batch.stage}/trajectory_{place}", text, batch_idx)


def trajectory_markdown(trajectory: Trajectory) -> str:
    """Question, every call with prompt and output, answer and scores."""
    scores = ", ".join(f"{name} {value:.2f}" for name, value in trajectory.score.items())
    lines = [f"**{trajectory.task.question}** ({trajectory.task.id}, accepted: {', '.join(trajectory.task.answers)})"]
    for step in trajectory.steps:
        lines += [f"**{step.agent}** reads", _quoted(step.prompt), "and says", _quoted(step.output)]
    return "\n\n".join([*lines, f"answer: `{trajectory.answer}` ({scores})"])


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines() or [""])
