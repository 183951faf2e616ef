"""A run of LTS that was cut and resumed is the uninterrupted run, bit for bit, in collection or between passes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
import pytest

from lightning_modules.lts import LTS
from rollout.teams_episode import episode_to_dict
from tests.lightning_modules.controller_parts import save_tiny_qwen3
from tests.lightning_modules.lts_parts import GymRun, fit_lts
from tests.lightning_modules.test_resume import Snapshots, same

SETTING = GymRun()
"""An epoch is 2 iterations of collection (3 tasks by 2) and 2 passes of 2 iterations: 6, twice."""


@dataclass(frozen=True)
class Run:
    module: LTS
    snapshots: Snapshots
    folder: Path


def run(model: Path, root: Path, seed: int, ckpt_path: Path | None = None) -> Run:
    L.seed_everything(seed, verbose=False)
    snapshots = Snapshots(None if ckpt_path else root / "kept")
    return Run(fit_lts(model, root, SETTING, snapshots, ckpt_path=ckpt_path), snapshots, root)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_qwen3(tmp_path_factory.mktemp("qwen3"))


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(model, tmp_path_factory.mktemp("whole"), seed=11)


def without_times(module: LTS) -> dict[str, Any]:
    """The episodes without what a clock measured."""
    plain: dict[str, Any] = {task: [episode_to_dict(each) for each in group] for task, group in module.episodes.items()}
    for group in plain.values():
        for episode in group:
            episode["wall_s"] = 0
            for step in episode["admissions"]:
                step["wall_s"] = 0
    return plain


@pytest.mark.parametrize("cut", [0, 1, 3, 5, 6, 9], ids=["collect", "collect-end", "pass", "epoch", "second", "reuse"])
def test_resumed_equals_uninterrupted(model: Path, tmp_path: Path, whole: Run, cut: int) -> None:
    resumed = run(model, tmp_path, seed=999, ckpt_path=whole.folder / "kept" / f"{cut}.ckpt")
    assert resumed.snapshots.seen == whole.snapshots.seen[cut + 1 :]
    assert same(resumed.module.state_dict(), whole.module.state_dict())
    assert same(resumed.snapshots.optimisers, whole.snapshots.optimisers)
    assert same(without_times(resumed.module), without_times(whole.module))


def test_every_weight_that_learns_has_moved(model: Path, whole: Run) -> None:
    from tests.lightning_modules.lts_parts import lts_module

    fresh = lts_module(model, SETTING).state_dict()
    moved = {name for name, weight in whole.module.state_dict().items() if not weight.equal(fresh[name])}
    assert moved == set(fresh)
