"""Checkpoints by stage, trajectories as text, and a line an iteration where there is no terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from tensorboard.backend.event_processing import event_accumulator

from lightning_modules.callbacks.phase_progress import PhaseProgress
from lightning_modules.callbacks.stage_checkpoint import StageCheckpoint
from lightning_modules.callbacks.trajectory_text import TrajectoryText, trajectory_markdown
from tests.lightning_modules.parts import Setting, fit, tiny_data, tiny_module, tiny_trainer
from tests.memory.parts import a_trajectory

SHORT = Setting(steps={"collect": 1, "sft": 1, "lmpo": 1}, max_tokens=3, group_size=2)


def test_trajectory_as_markdown() -> None:
    plain = a_trajectory("Where?", "In\nParis")
    step = replace(plain.steps[0], prompt="Be brief.\n\nWhere?")
    assert trajectory_markdown(replace(plain, steps=(step,), answer="Paris")) == (
        "**Where?** (t0, accepted: Paris)\n\n"
        "**assistant** reads\n\n> Be brief.\n> \n> Where?\n\nand says\n\n> In\n> Paris\n\n"
        "answer: `Paris` (exact_match 1.00)"
    )


def test_an_empty_output_is_still_a_quotation() -> None:
    assert "and says\n\n> \n\nanswer" in trajectory_markdown(a_trajectory("Where?", ""))


def test_a_line_an_iteration_without_a_terminal(
    tiny_model_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = tiny_trainer(tmp_path, PhaseProgress(), enable_progress_bar=True)
    trainer.fit(tiny_module(tiny_model_dir, SHORT), datamodule=tiny_data(SHORT))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[")]
    heads = ["[1/3] collect 1/1", "[2/3] sft 1/1", "[3/3] lmpo 1/1"]
    assert [line.split("  ")[0] for line in lines] == heads
    assert "bank/size 4" in lines[0]
    assert "sft/loss" in lines[1]
    assert "lmpo/reward_mean" in lines[2]
    assert "collect/" not in lines[2]


def test_phases_of_an_iteration_are_told(tiny_model_dir: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    class Listener(PhaseProgress):
        def _show(self, phase: str, done: int, total: int) -> None:
            told.append((phase, done, total))

    trainer = tiny_trainer(tmp_path, Listener(), enable_progress_bar=True)
    trainer.fit(tiny_module(tiny_model_dir, SHORT), datamodule=tiny_data(SHORT))
    episodes = [(done, total) for phase, done, total in told if phase == "rollout"]
    assert {(4, 4)} <= set(episodes)  # four tasks collected, then two tasks in groups of two
    assert {phase for phase, _, _ in told} >= {"rollout", "compose", "update"}


def test_tensorboard_has_text_and_scalars(tiny_model_dir: Path, tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path, "run", "0")
    trainer = tiny_trainer(tmp_path, TrajectoryText(count=1), logger=logger)
    trainer.fit(tiny_module(tiny_model_dir, SHORT), datamodule=tiny_data(SHORT))
    events = event_accumulator.EventAccumulator(logger.log_dir).Reload()
    tags = events.Tags()
    assert set(tags["tensors"]) == {"collect/trajectory_0/text_summary", "lmpo/trajectory_0/text_summary"}
    assert {"sft/loss", "lmpo/reward_mean", "bank/size", "seconds/rollout"} <= set(tags["scalars"])
    assert [event.step for event in events.Scalars("bank/size")] == [0, 1, 2]
    assert [event.step for event in events.Scalars("sft/loss")] == [1]
    assert (Path(logger.log_dir) / "trace.jsonl").read_text().count("\n") == 2 * 4 * (
        2 + 1
    )  # two calls and the episode


def test_checkpoints_hold_the_weights_of_their_moment(tiny_model_dir: Path, tmp_path: Path) -> None:
    module = fit(tiny_model_dir, tmp_path, SHORT)
    folder = tmp_path / "checkpoints"

    def queries(name: str) -> torch.Tensor:
        weights: torch.Tensor = torch.load(folder / name, weights_only=True)["state_dict"]["composer.queries"]
        return weights

    fresh = tiny_module(tiny_model_dir, SHORT).composer.queries
    assert torch.equal(queries("untrained.ckpt"), fresh)
    assert torch.equal(queries("collect.ckpt"), fresh)
    assert not torch.equal(queries("sft.ckpt"), fresh)
    assert torch.equal(queries("lmpo.ckpt"), module.composer.queries)
    assert torch.equal(queries("last.ckpt"), module.composer.queries)


def test_a_resumed_run_keeps_the_untrained_checkpoint(tiny_model_dir: Path, tmp_path: Path) -> None:
    fit(tiny_model_dir, tmp_path, SHORT)
    untrained = tmp_path / "checkpoints" / "untrained.ckpt"
    before = untrained.read_bytes()
    fit(tiny_model_dir, tmp_path, SHORT, ckpt_path=tmp_path / "checkpoints" / "sft.ckpt")
    assert untrained.read_bytes() == before


def test_last_is_renewed_as_often_as_set(tiny_model_dir: Path, tmp_path: Path) -> None:
    setting = replace(SHORT, steps={"collect": 0, "sft": 5, "lmpo": 0})
    seen: list[int] = []

    class Noted(StageCheckpoint):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:  # type: ignore[no-untyped-def]
            last = tmp_path / "checkpoints" / "last.ckpt"
            last.unlink(missing_ok=True)
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
            if last.exists():
                seen.append(batch_idx)

    trainer = tiny_trainer(tmp_path)
    trainer.callbacks = [Noted(every_n_iterations=2)]  # type: ignore[attr-defined]
    trainer.fit(tiny_module(tiny_model_dir, setting), datamodule=tiny_data(setting))
    assert seen == [1, 3, 4]
