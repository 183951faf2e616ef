"""What a training iteration of LTS does, on the tiny Qwen3 and the gym."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import lightning as L
import pytest
import torch

from data.datamodule import TaskDataModule
from data.stage_batch import StageBatch
from data.task import Task
from lightning_modules.lts import LTS
from lightning_modules.packed_decisions import score_packed
from lightning_modules.reinforce import ReinforceSettings
from rollout.engine import EngineError
from rollout.gym.gym import Gym, GymBenchmark
from rollout.teams_episode import TeamsEpisode
from tests.lightning_modules.controller_parts import save_tiny_qwen3
from tests.lightning_modules.lts_parts import SMALL, GymRun, fit_lts, lts_data, lts_module
from tests.lightning_modules.parts import tiny_trainer

TASKS = GymBenchmark(train=6, test=2).tasks("train")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_qwen3(tmp_path_factory.mktemp("qwen3"))


@pytest.fixture
def module(folder: Path) -> Any:
    made = lts_module(folder, GymRun())
    yield made
    made.teardown("fit")


class Watch(L.Callback):
    """The figures of every iteration."""

    def __init__(self) -> None:
        self.figures: list[tuple[str, int, dict[str, float]]] = []

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: Any, outputs: Any, batch: StageBatch, _: int) -> None:
        self.figures.append((batch.stage, batch.epoch, dict(pl_module._metrics)))


def test_the_policy_that_sampled_is_the_policy_that_is_trained(module: LTS) -> None:
    """π(YES) of the cached decisions of a rollout is what the packed forward gives for it, before any update."""
    played = module.play(TASKS[:2], 2, 5, "lts", module.admission(0, temperature=1.2))
    embedded = [module.embed(episode) for episode in played]
    with torch.no_grad(), module.backbone.adapted():
        logits = score_packed(module.backbone, module.controller, embedded)
    trained = torch.softmax(logits / 1.2, dim=-1)[:, 0]
    sampled = torch.tensor([step.probability or 0.0 for episode in played for step in episode.admissions])
    torch.testing.assert_close(trained, sampled, atol=1e-3, rtol=0)


def test_the_offset_puts_an_untrained_controller_where_it_is_asked(folder: Path) -> None:
    module = lts_module(folder, GymRun(initial_admission=0.8))
    module._set_offset(TASKS)
    played = module.play(TASKS, 1, 3, "add_all", None)
    embedded = [module.embed(episode) for episode in played]
    with torch.no_grad(), module.backbone.adapted():
        logits = score_packed(module.backbone, module.controller, embedded)
    margin = float(logits.diff(dim=-1).mean()) / -1.2
    assert torch.sigmoid(torch.tensor(margin)) == pytest.approx(0.8, abs=0.1)
    module.teardown("fit")


def test_a_group_differs_by_member_and_is_the_same_again(module: LTS) -> None:
    once, again = (module.play(TASKS[:1], 3, 5, "lts", module.admission(0, 1.2)) for _ in range(2))
    outputs = [[step.output for step in episode.admissions] for episode in once]
    assert outputs == [[step.output for step in episode.admissions] for episode in again]
    assert len({tuple(each) for each in outputs}) == 3


def test_an_epoch_logs_what_the_paper_reports(folder: Path, tmp_path: Path) -> None:
    watch = Watch()
    fit_lts(folder, tmp_path, GymRun(epochs=1), watch)
    collect = [figures for stage, _, figures in watch.figures if stage == "collect"]
    reuse = [figures for stage, _, figures in watch.figures if stage == "reuse"]
    assert (len(collect), len(reuse)) == (2, 4)
    reported = {"score", "score_first", "saved", "runtime_s", "steps", "tokens", "decision_share", "simulated"}
    assert {f"collect/{name}" for name in reported} <= set(collect[0])
    assert {"reuse/policy_loss", "reuse/sparsity_loss", "reuse/grad_norm", "reuse/yes"} <= set(reuse[0])
    assert all(0 < figures["reuse/yes"] < 1 for figures in reuse)


@pytest.mark.parametrize(("lambda_sparse", "rises"), [(5.0, False), (-5.0, True)])
def test_the_sparsity_term_moves_the_chance_of_admission(
    folder: Path, tmp_path: Path, lambda_sparse: float, rises: bool
) -> None:
    watch = Watch()
    settings = replace(SMALL, beta=0.0, lambda_sparse=lambda_sparse)
    fit_lts(folder, tmp_path, GymRun(epochs=1, passes=8, reinforce=settings, lr=3e-3), watch)
    yes = [figures["reuse/yes"] for stage, _, figures in watch.figures if stage == "reuse"]
    assert (yes[-1] > yes[0]) == rises


def test_micro_batches_add_up_to_the_whole(folder: Path, tmp_path: Path) -> None:
    weights = []
    for size in (1, 100):
        settings = replace(SMALL, micro_batch=size)
        module = fit_lts(folder, tmp_path / str(size), GymRun(epochs=1, passes=1, reinforce=settings))
        weights.append(module.state_dict())
    for name, weight in weights[0].items():
        torch.testing.assert_close(weight, weights[1][name], atol=2e-4, rtol=1e-3)


def test_nothing_of_the_frozen_base_learns_or_is_saved(folder: Path, tmp_path: Path) -> None:
    fresh = lts_module(folder, GymRun())
    module = fit_lts(folder, tmp_path, GymRun(epochs=1))
    base = {name: weight for name, weight in module.backbone.named_parameters() if "lora_" not in name}
    for name, weight in base.items():
        assert torch.equal(weight, fresh.backbone.get_parameter(name)), name
    assert all("lora_" in name or name.startswith("controller.") for name in module.state_dict())


def test_a_checkpoint_of_other_weights_is_refused(module: LTS) -> None:
    state = {name: weight for name, weight in module.state_dict().items() if name != "controller.query.weight"}
    with pytest.raises(ValueError, match=r"other trained weights, first 'controller\.query\.weight'"):
        module.on_load_checkpoint({"state_dict": state, "episodes": {}})


def test_data_without_epochs_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"data\.epochs"):
        tiny_trainer(tmp_path).fit(lts_module(folder, GymRun()), datamodule=TaskDataModule(GymBenchmark(train=2)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_half_precision_base_trains_adapters_and_projections_in_fp32(
    folder: Path, tmp_path: Path, dtype: Literal["float32", "bfloat16"]
) -> None:
    """As on a GPU: trainer.precision 32-true over a bfloat16 base."""
    module = fit_lts(folder, tmp_path, GymRun(epochs=1, passes=1, dtype=dtype))
    assert {weight.dtype for weight in module.state_dict().values()} == {torch.float32}
    assert str(module.backbone.model.get_input_embeddings().weight.dtype) == f"torch.{dtype}"


def test_a_precision_that_would_learn_in_bfloat16_is_refused(folder: Path, tmp_path: Path) -> None:
    trainer = L.Trainer(accelerator="cpu", precision="bf16-true", logger=False, default_root_dir=tmp_path)
    with pytest.raises(ValueError, match=r"precision is bf16-true.*set 32-true"):
        trainer.fit(lts_module(folder, GymRun()), datamodule=lts_data(GymRun()))


def test_an_episode_without_a_single_step_can_be_learnt_from(module: LTS) -> None:
    """A team may call its task done at its first ledger."""
    (played,) = module.play(TASKS[:1], 1, 5, "lts", module.admission(0, temperature=1.2))
    silent = replace(played, admissions=(), entries=(), uses=())
    with module.backbone.adapted():
        logits = score_packed(module.backbone, module.controller, [module.embed(each) for each in (silent, played)])
        assert logits.shape == (len(played.admissions), 2)
        nothing = score_packed(module.backbone, module.controller, [module.embed(silent)])
        (logits.sum() + nothing.sum()).backward()
    assert nothing.shape == (0, 2)


def test_defaults_are_the_papers() -> None:
    settings = ReinforceSettings()
    assert (settings.group_size, settings.temperature, settings.lambda_first) == (5, 1.2, 1.0)
    assert settings.importance_correction == "none"
    epochs = lts_data(GymRun()).epochs
    assert epochs is not None
    assert (type(epochs)().epochs, type(epochs)().passes) == (5, 10)


class OneFails:
    """The first episode fails once the others play; they would play for a minute."""

    def __init__(self) -> None:
        self.playing = 0
        self.ended: list[str] = []

    async def episode(self, task: Task, member: int, *_: Any) -> TeamsEpisode:
        self.playing += 1
        if member == 0:
            while self.playing < 3:
                await asyncio.sleep(0)
            raise EngineError("out of order")
        try:
            await asyncio.sleep(60)
        finally:
            self.ended.append(f"{task.id} {member}")
        raise AssertionError("nobody stopped it")

    async def close(self) -> None: ...


def test_a_failed_episode_ends_the_others_before_it_is_raised(module: LTS) -> None:
    failing = OneFails()
    module.teams, module.max_concurrent = failing, 3
    with pytest.raises(EngineError, match="out of order"):
        module.play(TASKS[:1], 3, 5, "none", None)
    assert sorted(failing.ended) == [f"{TASKS[0].id} {member}" for member in (1, 2)]


def test_no_place_for_an_episode_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^model\.init_args\.max_concurrent is 0; it must be at least 1"):
        LTS(Gym(), "never loaded", max_concurrent=0)


def test_a_reward_that_the_benchmark_does_not_score_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^model\.reinforce\.reward is 'accuracy', .* it has exact_match, partial$"):
        fit_lts(folder, tmp_path, GymRun(reinforce=replace(SMALL, reward="accuracy")))
