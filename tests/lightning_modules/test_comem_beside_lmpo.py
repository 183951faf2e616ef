"""CoMem's callbacks on an LMPO run: agents read insights and latents in one call, and every episode is kept up with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import lightning as L
import pytest

from data.trajectory import Trajectory
from lightning_modules.callbacks.comem.collective_curation import CollectiveCuration
from lightning_modules.callbacks.comem.lifecycle_log import LifecycleLog
from lightning_modules.callbacks.comem.promotion import Promotion
from lightning_modules.callbacks.comem.rolling_pruning import RollingPruning
from lightning_modules.callbacks.comem.sedimentation import Sedimentation
from lightning_modules.callbacks.comem.usage import UsageCounting
from lightning_modules.callbacks.rng_state import RNGState
from lightning_modules.callbacks.stage_checkpoint import StageCheckpoint
from lightning_modules.latentmem import LatentMem
from memory.comem.comem import OWN, CoMem
from memory.comem.settings import CoMemSettings
from memory.memory import Agent
from rollout.ask import Asker
from tests.lightning_modules.parts import Setting, tiny_data, tiny_module, tiny_trainer
from tests.memory.parts import BagOfWords

SETTING = Setting(steps={"collect": 1, "sft": 0, "lmpo": 3}, group_size=3)


class Notes:
    """Distils one lesson of every episode; the tiny model could write none."""

    async def distil(self, asker: Asker, agent: Agent, trajectory: Trajectory, label: str) -> tuple[str, ...]:
        return (f"{trajectory.task.question} lesson of {trajectory.member}",)


class Keep(L.Callback):
    def __init__(self) -> None:
        self.trajectories: list[list[Trajectory]] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.trajectories.append(list(pl_module.trajectories))
        root = Path(trainer.default_root_dir)
        shutil.copy(root / "checkpoints" / "last.ckpt", root / f"after{batch_idx}.ckpt")


def run(model: Path, root: Path, *callbacks: L.Callback, ckpt_path: Path | None = None) -> LatentMem:
    module = tiny_module(model, SETTING)
    module.comem = CoMem(BagOfWords(dim=64), CoMemSettings(reward="letters", n_min=1, k_max=2))
    mechanisms = [
        UsageCounting(), CollectiveCuration(judge=None), Promotion(), RollingPruning(), Sedimentation(Notes()),
        LifecycleLog(),
    ]  # fmt: skip
    trainer = tiny_trainer(root)
    trainer.callbacks = [*mechanisms, RNGState(), StageCheckpoint(), *callbacks]  # type: ignore[attr-defined]
    trainer.fit(
        module, datamodule=tiny_data(SETTING), ckpt_path=str(ckpt_path) if ckpt_path else None, weights_only=True
    )
    return module


@pytest.fixture(scope="module")
def whole(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[LatentMem, Keep, Path]:
    root, keep = tmp_path_factory.mktemp("whole"), Keep()
    L.seed_everything(4, verbose=False)
    return run(tiny_model_dir, root, keep), keep, root


def test_agents_read_insights_and_latents_in_one_call(whole: tuple[LatentMem, Keep, Path]) -> None:
    _, keep, _ = whole
    collected, first, *later = keep.trajectories
    assert not any(OWN in step.prompt for made in (*collected, *first) for step in made.steps)
    for step in (step for batch in later for made in batch for step in made.steps):
        assert OWN in step.prompt
        assert "lesson of" in step.prompt
        assert step.cost.latent_tokens == 3
        assert any(each.startswith("m") for each in step.entry_ids)


def test_every_lmpo_episode_goes_through_the_lifecycle_once_in_order(whole: tuple[LatentMem, Keep, Path]) -> None:
    module, keep, root = whole
    told = [json.loads(line) for line in (root / "comem_events.jsonl").read_text(encoding="utf-8").splitlines()]
    played = [made for batch in keep.trajectories[1:] for made in batch]
    rewards = [event["values"]["reward"] for event in told if event["kind"] == "episode"]
    assert rewards == [made.score["letters"] for made in played]
    assert {"born", "used", "promoted"} <= {event["kind"] for event in told}
    assert module.comem is not None
    assert len(module.comem.collective) > 0


def test_a_resumed_run_has_the_same_stores(
    tiny_model_dir: Path, tmp_path: Path, whole: tuple[LatentMem, Keep, Path]
) -> None:
    module, _, root = whole
    shutil.copy(root / "comem_events.jsonl", tmp_path)
    L.seed_everything(5, verbose=False)
    resumed = run(tiny_model_dir, tmp_path, ckpt_path=root / "after2.ckpt")
    assert module.comem is not None
    assert resumed.comem is not None
    assert [s.entries() for s in resumed.comem.stores()] == [s.entries() for s in module.comem.stores()]
    assert (tmp_path / "comem_events.jsonl").read_bytes() == (root / "comem_events.jsonl").read_bytes()


def test_a_comem_that_would_learn_nothing_is_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    module = tiny_module(tiny_model_dir, SETTING)
    module.comem = CoMem(BagOfWords())
    with pytest.raises(ValueError, match=r"^model\.comem is CoMem, but trainer\.callbacks has none of its mechanisms"):
        tiny_trainer(tmp_path).fit(module, datamodule=tiny_data(SETTING))
