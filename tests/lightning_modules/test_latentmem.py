"""LatentMem through its three stages on a tiny model with a real engine, a real bank and Lightning's own loop."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from lightning.pytorch.loggers import CSVLogger

from data.datamodule import StageBatch
from data.task import Task
from data.trajectory import Trajectory
from lightning_modules import latentmem
from lightning_modules.latent_gradient import LatentGradient, latent_gradient
from lightning_modules.latentmem import LatentMem
from lightning_modules.token_scores import AgentCall
from tests.lightning_modules.parts import ITEMS, Setting, fit, tiny_data, tiny_module, tiny_trainer

LMPO_ONLY = Setting(steps={"collect": 0, "sft": 0, "lmpo": 1})


class Recorder(L.Callback):
    """What each iteration was and what it logged."""

    def __init__(self) -> None:
        self.batches: list[StageBatch] = []
        self.trajectories: list[list[Trajectory]] = []
        self.metrics: list[dict[str, float]] = []
        self.weights: list[torch.Tensor] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: StageBatch, batch_idx: int) -> None:
        self.batches.append(batch)
        self.trajectories.append(list(pl_module.trajectories))
        self.metrics.append(dict(pl_module._metrics))
        self.weights.append(torch.cat([weight.flatten() for weight in pl_module.state_dict().values()]).clone())


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[AgentCall], LatentGradient]]:
    """Every call of the real ``latent_gradient``: what it was given and what came of it."""
    seen: list[tuple[list[AgentCall], LatentGradient]] = []

    def spy(backbone: Any, calls: Sequence[AgentCall], *rest: Any) -> LatentGradient:
        seen.append((list(calls), latent_gradient(backbone, calls, *rest)))
        return seen[-1][1]

    monkeypatch.setattr(latentmem, "latent_gradient", spy)
    return seen


def outputs(calls: Sequence[AgentCall]) -> list[tuple[int, ...]]:
    return sorted(call.output_ids for call in calls)


def test_collection_fills_the_bank_without_memory(tiny_model_dir: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    module = fit(tiny_model_dir, tmp_path, Setting(steps={"collect": 2, "sft": 0, "lmpo": 0}), recorder)
    assert sorted(module.bank.questions()) == sorted(question for question, _ in ITEMS)
    steps = [step for found in recorder.trajectories for trajectory in found for step in trajectory.steps]
    assert [step.agent for step in steps[:2]] == ["assistant", "user_proxy"]
    assert all(step.cost.latent_tokens == 0 and step.entry_ids == () for step in steps)


@pytest.mark.parametrize(("append", "growth"), [("all", 8), ("one", 2), ("none", 0)])
def test_the_bank_grows_as_set(tiny_model_dir: Path, tmp_path: Path, append: str, growth: int) -> None:
    recorder = Recorder()
    setting = Setting(steps={"collect": 1, "sft": 0, "lmpo": 1}, append=append)
    module = fit(tiny_model_dir, tmp_path, setting, recorder)
    assert len(module.bank) == 4 + growth
    if append == "one":
        assert module.bank.questions()[4:] == tuple(task.question for task in recorder.batches[1].tasks)


def test_lmpo_agents_get_latents_of_another_question(tiny_model_dir: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    module = fit(tiny_model_dir, tmp_path, Setting(steps={"collect": 2, "sft": 0, "lmpo": 1}), recorder)
    for trajectory in recorder.trajectories[-1]:
        for step in trajectory.steps:
            assert step.cost.latent_tokens == 3
            (entry,) = step.entry_ids
            assert module.bank.questions()[int(entry[1:])] != trajectory.task.question


def test_stages_without_steps_are_skipped(tiny_model_dir: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    fit(tiny_model_dir, tmp_path, Setting(steps={"collect": 1, "sft": 0, "lmpo": 1}), recorder)
    assert [batch.stage for batch in recorder.batches] == ["collect", "lmpo"]
    names = {path.name for path in tmp_path.rglob("*.ckpt")}
    assert names == {"untrained.ckpt", "collect.ckpt", "lmpo.ckpt", "last.ckpt"}


def test_collection_learns_nothing_and_the_others_do(tiny_model_dir: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    untrained = tiny_module(tiny_model_dir, Setting())
    fit(tiny_model_dir, tmp_path, Setting(), recorder)
    start = torch.cat([weight.flatten() for weight in untrained.state_dict().values()])
    collected, warmed, reinforced = recorder.weights
    assert torch.equal(start, collected)
    assert not torch.equal(collected, warmed)
    assert not torch.equal(warmed, reinforced)


def test_every_turn_of_trajectories_with_an_advantage_is_trained_on(
    tiny_model_dir: Path, tmp_path: Path, updates: list[tuple[list[AgentCall], LatentGradient]]
) -> None:
    recorder = Recorder()
    fit(tiny_model_dir, tmp_path, LMPO_ONLY, recorder)
    (found,) = recorder.trajectories
    rewards = torch.tensor([t.score["letters"] for t in found]).view(2, 4)
    live = (rewards != rewards.mean(dim=1, keepdim=True)).flatten().tolist()
    expected = [step.output_ids for t, trained in zip(found, live, strict=True) if trained for step in t.steps]
    ((calls, _),) = updates
    assert outputs(calls) == sorted(expected)
    assert len(calls) > 0


def rewarded_by(monkeypatch: pytest.MonkeyPatch, module: LatentMem, rewards: Sequence[float]) -> None:
    """Overwrite what the episodes scored, member by member."""
    original: Callable[..., None] = module._rollout

    def rollout(*args: Any) -> None:
        original(*args)
        module.trajectories = [
            replace(t, score={"letters": rewards[place]}) for place, t in enumerate(module.trajectories)
        ]

    monkeypatch.setattr(module, "_rollout", rollout)


def run_lmpo(folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch, rewards: Sequence[float]) -> Recorder:
    module, recorder = tiny_module(folder, LMPO_ONLY), Recorder()
    rewarded_by(monkeypatch, module, rewards)
    tiny_trainer(root, recorder).fit(module, datamodule=tiny_data(LMPO_ONLY))
    return recorder


def test_a_group_without_variance_and_a_member_at_the_mean_get_no_gradient(
    tiny_model_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    updates: list[tuple[list[AgentCall], LatentGradient]],
) -> None:
    recorder = run_lmpo(tiny_model_dir, tmp_path, monkeypatch, [0.3] * 4 + [1.0, 0.5, 0.5, 0.0])
    ((calls, result),) = updates
    found = recorder.trajectories[0]
    assert outputs(calls) == sorted(step.output_ids for t in (found[4], found[7]) for step in t.steps)
    assert recorder.metrics[0]["lmpo/groups_without_variance"] == 0.5
    # Rows 0 and 1 are the two roles of the first task, which teaches nothing.
    assert result.gradient[:2].count_nonzero() == 0
    assert all(row.count_nonzero() > 0 for row in result.gradient[2:])


def test_the_loss_divides_by_all_tokens_of_the_group(
    tiny_model_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    updates: list[tuple[list[AgentCall], LatentGradient]],
) -> None:
    recorder = run_lmpo(tiny_model_dir, tmp_path, monkeypatch, [0.3] * 4 + [1.0, 0.5, 0.5, 0.0])
    tokens = [sum(len(step.output_ids) for step in t.steps) for t in recorder.trajectories[0][4:]]
    # At ratio 1 every token's loss is -A, and A is +-sqrt(2) for the first and last member (deviation sqrt(1/8)).
    advantage = 0.5 / (0.125**0.5 + 1e-4)
    assert updates[0][1].loss == pytest.approx(-advantage * (tokens[0] - tokens[3]) / sum(tokens), abs=1e-5)


def test_a_batch_without_variance_changes_nothing(
    tiny_model_dir: Path, tmp_path: Path, updates: list[tuple[list[AgentCall], LatentGradient]]
) -> None:
    recorder = Recorder()
    setting = replace(LMPO_ONLY, steps={"collect": 0, "sft": 0, "lmpo": 2}, constant=2 / 3)
    fit(tiny_model_dir, tmp_path, setting, recorder)
    assert updates == []
    assert torch.equal(recorder.weights[0], recorder.weights[1])
    assert recorder.metrics[0]["lmpo/groups_without_variance"] == 1.0
    assert "lmpo/loss" not in recorder.metrics[0]


def test_the_first_pass_has_ratio_one_and_the_second_does_not(tiny_model_dir: Path, tmp_path: Path) -> None:
    once, twice = Recorder(), Recorder()
    fit(tiny_model_dir, tmp_path / "1", LMPO_ONLY, once)
    fit(tiny_model_dir, tmp_path / "2", replace(LMPO_ONLY, prompt_reuse=2), twice)
    assert (once.metrics[0]["lmpo/ratio_min"], once.metrics[0]["lmpo/ratio_max"]) == (1.0, 1.0)
    assert once.metrics[0]["lmpo/clip_fraction"] == 0.0
    assert twice.metrics[0]["lmpo/ratio_min"] < 1.0 < twice.metrics[0]["lmpo/ratio_max"]


def test_the_second_pass_is_measured_against_the_first(
    tiny_model_dir: Path, tmp_path: Path, updates: list[tuple[list[AgentCall], LatentGradient]]
) -> None:
    recorder = Recorder()
    fit(tiny_model_dir, tmp_path, replace(LMPO_ONLY, prompt_reuse=3), recorder)
    (first, old), _, (third, new) = updates
    assert first == third
    ratio = (torch.cat(new.logprobs) - torch.cat(old.logprobs)).exp()
    assert recorder.metrics[0]["lmpo/ratio_max"] == pytest.approx(float(ratio.max()), rel=1e-5)
    assert recorder.metrics[0]["lmpo/ratio_min"] == pytest.approx(float(ratio.min()), rel=1e-5)


def test_the_clip_acts_after_a_huge_step(tiny_model_dir: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    fit(tiny_model_dir, tmp_path, replace(LMPO_ONLY, prompt_reuse=2, lmpo_lr=0.1), recorder)
    assert recorder.metrics[0]["lmpo/clip_fraction"] > 0.05


def test_the_engine_samples_from_the_policy_that_is_trained(tiny_model_dir: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    fit(tiny_model_dir, tmp_path, replace(LMPO_ONLY, old_logprobs="engine"), recorder)
    assert recorder.metrics[0]["lmpo/engine_mismatch_max"] < 1e-3
    assert recorder.metrics[0]["lmpo/ratio_max"] == pytest.approx(1.0, abs=1e-3)


def test_the_warm_start_learns(tiny_model_dir: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    setting = Setting(
        steps={"collect": 0, "sft": 25, "lmpo": 0},
        batch={"collect": 1, "sft": 2, "lmpo": 1},
        sft_lr=0.2,
        items=ITEMS[:2],
    )
    fit(tiny_model_dir, tmp_path, setting, recorder)
    losses = [metrics["sft/loss"] for metrics in recorder.metrics]
    # The frozen model is random, so that latents can steer it only so far: from worse than uniform to well below it.
    uniform = math.log(tiny_module(tiny_model_dir, setting).backbone.model.config.vocab_size)
    assert losses[0] > uniform > max(losses[-5:]) + 0.3


def test_loggers_get_the_figures_of_their_own_stage_only(tiny_model_dir: Path, tmp_path: Path) -> None:
    module = tiny_module(tiny_model_dir, Setting())
    tiny_trainer(tmp_path, logger=CSVLogger(tmp_path)).fit(module, datamodule=tiny_data(Setting()))
    (path,) = tmp_path.rglob("metrics.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    shown = [{name.split("/")[0] for name, value in row.items() if value and "/" in name} for row in rows]
    assert shown == [
        {"collect", "rollout", "seconds", "bank"},
        {"sft", "seconds", "bank"},
        {"lmpo", "rollout", "seconds", "bank"},
    ]
    assert [row["step"] for row in rows] == ["0", "1", "2"]


def test_latents_are_composed_once_for_each_question_and_role(tiny_model_dir: Path) -> None:
    module = tiny_module(tiny_model_dir, Setting())
    tasks = [Task(f"t{place}", f"Question {place}?", ("x",), "tiny") for place in range(3)]
    composed = module.compose(tasks)
    assert composed.latents.shape[:2] == (6, 3)
    assert sorted(composed.rows.values()) == list(range(6))
    assert composed.rows.keys() == {(task.id, role) for task in tasks for role in ("assistant", "user_proxy")}
    assert composed.latents.requires_grad
    memory = module.memory()
    memory.prepare(tasks, module.mas.agents("qa"))
    recalled = memory.recall(tasks[1], module.mas.agents("qa")[1], "whatever it reads")
    assert recalled.latents is not None
    assert not recalled.latents.requires_grad


def test_a_module_is_a_pure_function_of_its_seed(tiny_model_dir: Path) -> None:
    torch.manual_seed(1)
    one = tiny_module(tiny_model_dir, Setting())
    torch.manual_seed(2)
    before = torch.get_rng_state()
    other = tiny_module(tiny_model_dir, Setting())
    assert torch.equal(before, torch.get_rng_state())
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, other.state_dict()[name]), name


def test_an_engine_of_another_model_is_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    module = tiny_module(tiny_model_dir, Setting())
    module.engine.model = "other"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="latents of one model mean nothing to another"):
        tiny_trainer(tmp_path).fit(module, datamodule=tiny_data(Setting()))
