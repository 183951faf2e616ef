"""Training over episodes that fail: they score zero, what they did is trained on, and they are not remembered."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lightning_modules.latentmem import LatentMem
from lightning_modules.lmpo import group_advantages
from lightning_modules.surrogate_loss import trained_calls
from rollout.engine import CallKey, Completion, EngineError, Request
from rollout.transformers_engine import TransformersEngine
from tests.lightning_modules.parts import Setting, tiny_data, tiny_module, tiny_trainer

Fails = Callable[[CallKey], bool]


class Unreliable(TransformersEngine):
    """Fails the calls of ``fails``."""

    def __init__(self, folder: Path, fails: Fails) -> None:
        super().__init__(str(folder), max_model_len=1024)
        self.fails = fails

    async def generate(self, request: Request) -> Completion:
        assert request.key is not None
        if self.fails(request.key):
            raise EngineError(f"{request.label}: out of order")
        return await super().generate(request)


def fit(folder: Path, root: Path, fails: Fails) -> LatentMem:
    setting = Setting(steps={"collect": 1, "sft": 0, "lmpo": 1})
    module = tiny_module(folder, setting)
    module.engine = Unreliable(folder, fails)
    module.engine.share(module.backbone.model, module.backbone.tokenizer)
    tiny_trainer(root).fit(module, datamodule=tiny_data(setting))
    return module


def second_call_of_two(key: CallKey) -> bool:
    """Members 0 and 1 of every group get through their first call only."""
    return key.phase == "lmpo" and key.member < 2 and key.call == 1


def test_a_failed_episode_scores_zero_and_teaches_nothing(tiny_model_dir: Path, tmp_path: Path) -> None:
    module = fit(tiny_model_dir, tmp_path, second_call_of_two)
    failed = [index for index, made in enumerate(module.trajectories) if made.failure is not None]
    assert failed == [0, 1, 4, 5]
    assert module._metrics["rollout/failed"] == 0.5
    assert {module.trajectories[index].score["letters"] for index in failed} == {0.0}
    rewards = [module._reward(made) for made in module.trajectories]
    assert [index for index, reward in enumerate(rewards) if math.isnan(reward)] == failed
    advantages = group_advantages(torch.tensor(rewards).view(2, 4), module.lmpo.advantage_epsilon).flatten().tolist()
    calls = trained_calls(module.trajectories, advantages, module.lmpo)
    assert {call.trajectory for call in calls} == {index for index, value in enumerate(advantages) if value}
    assert not {call.trajectory for call in calls} & set(failed)
    assert sum(call.weight * len(call.step.output_ids) for call in calls) == pytest.approx(1.0)
    assert module._metrics["lmpo/trained_tokens"] == sum(len(call.step.output_ids) for call in calls)


def test_a_failed_episode_is_not_remembered(tiny_model_dir: Path, tmp_path: Path) -> None:
    """``append: one`` takes member 0 of each group, which failed here."""
    module = fit(tiny_model_dir, tmp_path / "failing", second_call_of_two)
    healthy = fit(tiny_model_dir, tmp_path / "healthy", lambda key: False)
    assert (len(module.bank), len(healthy.bank)) == (4, 6)


def test_an_episode_that_failed_before_its_first_reply_is_borne(tiny_model_dir: Path, tmp_path: Path) -> None:
    collected: list[str] = []

    def first_of_collect(key: CallKey) -> bool:
        if key.phase == "collect":
            collected.append(key.task)
        return key.phase == "collect" and key.task == collected[0]

    module = fit(tiny_model_dir, tmp_path, first_of_collect)
    assert len(set(collected)) == 4
    assert len(module.bank) == 3 + 2
    assert module._metrics["rollout/failed"] == 0.0  # of the last iteration


@pytest.mark.parametrize("phase", ["collect", "lmpo"])
def test_a_batch_in_which_every_episode_failed_ends_training(tiny_model_dir: Path, tmp_path: Path, phase: str) -> None:
    with pytest.raises(RuntimeError, match=r"all \d+ episodes failed; the first reasons:\n  task t\d: engine: task t"):
        fit(tiny_model_dir, tmp_path, lambda key: key.phase == phase)
