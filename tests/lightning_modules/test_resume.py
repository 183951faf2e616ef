"""A run that was cut and resumed is the uninterrupted run, bit for bit, whatever stage the cut is in."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import pytest
import torch

from data.datamodule import StageBatch
from lightning_modules.latentmem import LatentMem
from tests.lightning_modules.parts import Setting, fit, tiny_data, tiny_module, tiny_trainer

# Dropout makes the random number stream matter; a warm-up and two passes make schedule and optimiser state matter.
SETTING = Setting(
    steps={"collect": 2, "sft": 2, "lmpo": 2}, dropout=0.3, prompt_reuse=2, warmup_ratio=0.5, max_tokens=4, group_size=3
)


class Snapshots(L.Callback):
    """Draws from every stream as other parts of a run might, notes what happened, and keeps each ``last.ckpt``."""

    def __init__(self, keep: Path | None = None) -> None:
        self.keep = keep
        self.seen: list[tuple[int, StageBatch]] = []
        self.draws: list[tuple[float, float, float]] = []
        self.optimisers: list[Any] = []

    def on_train_batch_start(self, trainer: L.Trainer, pl_module: Any, batch: StageBatch, batch_idx: int) -> None:
        self.draws.append((random.random(), float(np.random.rand()), float(torch.rand(()))))  # noqa: NPY002

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: StageBatch, batch_idx: int) -> None:
        self.seen.append((batch_idx, batch))
        if self.keep is not None:
            self.keep.mkdir(exist_ok=True)
            shutil.copy(next(Path(trainer.default_root_dir).rglob("last.ckpt")), self.keep / f"{batch_idx}.ckpt")

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.optimisers = [optimiser.state_dict() for optimiser in trainer.optimizers]
        self.optimisers += [config.scheduler.state_dict() for config in trainer.lr_scheduler_configs]


@dataclass(frozen=True)
class Run:
    module: LatentMem
    snapshots: Snapshots
    rng: tuple[Any, ...]
    folder: Path


def run(model: Path, root: Path, seed: int, ckpt_path: Path | None = None) -> Run:
    L.seed_everything(seed, verbose=False)
    snapshots = Snapshots(None if ckpt_path else root / "kept")
    module = fit(model, root, SETTING, snapshots, ckpt_path=ckpt_path)
    rng = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # type: ignore[index]  # noqa: NPY002
    return Run(module, snapshots, rng, root)


@pytest.fixture(scope="module")
def whole(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tiny_model_dir, tmp_path_factory.mktemp("whole"), seed=11)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def without_times(state: dict[str, Any]) -> dict[str, Any]:
    """The bank's state without what a clock measured."""
    for trajectory in state["trajectories"]:
        del trajectory["wall_s"]
        for step in trajectory["steps"]:
            step["cost"] = {name: value for name, value in step["cost"].items() if not name.endswith("_s")}
    return state


@pytest.mark.parametrize("cut", range(6), ids=["collect", "collect-end", "sft", "sft-end", "lmpo", "lmpo-end"])
def test_resumed_equals_uninterrupted(tiny_model_dir: Path, tmp_path: Path, whole: Run, cut: int) -> None:
    resumed = run(tiny_model_dir, tmp_path, seed=999, ckpt_path=whole.folder / "kept" / f"{cut}.ckpt")
    assert resumed.snapshots.seen == whole.snapshots.seen[cut + 1 :]
    assert resumed.snapshots.draws[1:] == whole.snapshots.draws[cut + 2 :]
    assert same(resumed.module.state_dict(), whole.module.state_dict())
    assert same(resumed.snapshots.optimisers, whole.snapshots.optimisers)
    assert same(without_times(resumed.module.bank.state_dict()), without_times(whole.module.bank.state_dict()))
    if cut < 5:  # after the last iteration there is none at whose start the streams could be restored
        assert same(resumed.rng, whole.rng)


def test_another_seed_gives_another_run(tiny_model_dir: Path, tmp_path: Path, whole: Run) -> None:
    other = run(tiny_model_dir, tmp_path, seed=12)
    assert not same(other.module.state_dict(), whole.module.state_dict())


def test_a_checkpoint_is_plain_and_holds_what_learns(tiny_model_dir: Path, whole: Run) -> None:
    checkpoint = torch.load(whole.folder / "kept" / "5.ckpt", weights_only=True)
    module = tiny_module(tiny_model_dir, SETTING)
    assert checkpoint["state_dict"].keys() == {
        *(f"backbone.{name}" for name in module.backbone.adapter_parameters()),
        *(f"composer.{name}" for name, _ in module.composer.named_parameters()),
    }
    assert len(checkpoint["experience_bank"]["trajectories"]) == len(whole.module.bank)


def test_the_run_directory_has_a_checkpoint_for_each_stage(whole: Run) -> None:
    names = {path.name for path in whole.folder.rglob("checkpoints/*.ckpt")}
    assert names == {"untrained.ckpt", "collect.ckpt", "sft.ckpt", "lmpo.ckpt", "last.ckpt"}


def edited(whole: Run, path: Path, edit: Any) -> str:
    checkpoint = torch.load(whole.folder / "kept" / "3.ckpt", weights_only=True)
    edit(checkpoint["state_dict"])
    torch.save(checkpoint, path)
    return str(path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda state: state.pop("composer.queries"), "lacks 1 trained weights, first 'composer.queries'"),
        (lambda state: state.update(other=torch.zeros(1)), "has unknown 1 trained weights, first 'other'"),
    ],
    ids=["missing", "unknown"],
)
def test_a_checkpoint_of_other_weights_is_refused(
    tiny_model_dir: Path, tmp_path: Path, whole: Run, edit: Any, message: str
) -> None:
    path = edited(whole, tmp_path / "edited.ckpt", edit)
    with pytest.raises(ValueError, match=message):
        tiny_trainer(tmp_path).fit(
            tiny_module(tiny_model_dir, SETTING), datamodule=tiny_data(SETTING), ckpt_path=path, weights_only=True
        )
