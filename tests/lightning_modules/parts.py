"""Small real parts for tests of what learns: the tiny model as backbone, a benchmark in memory, a whole trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightning as L
import torch

from data.datamodule import StageName, StageSettings, TaskDataModule
from data.task import Score, Task
from lightning_modules.backbone import Backbone, LoraSettings
from lightning_modules.bank_settings import BankSettings
from lightning_modules.callbacks.rng_state import RNGState
from lightning_modules.callbacks.stage_checkpoint import StageCheckpoint
from lightning_modules.composer import ComposerSettings
from lightning_modules.latentmem import LatentMem
from lightning_modules.lmpo import LMPOSettings
from lightning_modules.optimisation import OptimiserSettings
from memory.experience_bank import ExperienceBank
from rollout.mas.autogen import AutoGen
from rollout.runner import RolloutSettings
from rollout.transformers_engine import TransformersEngine
from tests.memory.parts import BagOfWords

ITEMS = (
    ("What is the capital of France?", "Paris"),
    ("What is the capital of Italy?", "Rome"),
    ("What is the symbol of iron?", "Fe"),
    ("What is the symbol of gold?", "Au"),
    ("Who wrote Hamlet?", "Shakespeare"),
    ("Who wrote Faust?", "Goethe"),
    ("In which year did the war end?", "1945"),
    ("How many legs has a spider?", "eight"),
)


def tiny_backbone(folder: Path, dropout: float = 0.0, gradient_checkpointing: bool = False) -> Backbone:
    """With adapters that are not zero, as they are after some training."""
    torch.manual_seed(1)
    backbone = Backbone(str(folder), torch.float32, LoraSettings(r=4, alpha=8, dropout=dropout), gradient_checkpointing)
    with torch.no_grad():
        for name, weight in sorted(backbone.adapter_parameters().items()):
            if "lora_B" in name:
                weight.normal_(std=0.3)
    return backbone


class TinyBenchmark:
    """Eight questions. ``letters`` is a graded reward that even a random model gets now and then."""

    name = "tiny"
    metrics = ("exact_match", "letters")

    def __init__(self, items: Sequence[tuple[str, str]] = ITEMS, constant: float | None = None) -> None:
        self._tasks = [Task(f"t{place}", ask, (answer,), self.name) for place, (ask, answer) in enumerate(items)]
        self._constant = constant

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks

    def score(self, task: Task, answer: str) -> Score:
        letters = len(set(answer)) / (1 + len(answer)) if self._constant is None else self._constant
        return {"exact_match": float(answer == task.answers[0]), "letters": letters}


@dataclass(frozen=True)
class Setting:
    """What tests vary of a run."""

    steps: dict[StageName, int] = field(default_factory=lambda: {"collect": 1, "sft": 1, "lmpo": 1})
    batch: dict[StageName, int] = field(default_factory=lambda: {"collect": 4, "sft": 4, "lmpo": 2})
    dropout: float = 0.0
    group_size: int = 4
    prompt_reuse: int = 1
    old_logprobs: str = "recompute"
    append: Any = "one"
    sft_lr: float = 1e-3
    lmpo_lr: float = 1e-3
    warmup_ratio: float = 0.0
    constant: float | None = None
    max_tokens: int = 5
    items: tuple[tuple[str, str], ...] = ITEMS


def tiny_module(folder: Path, setting: Setting) -> LatentMem:
    """LatentMem on the tiny model, generating with transformers and retrieving by bags of words."""
    module = LatentMem(
        backbone=str(folder),
        engine=TransformersEngine(str(folder), max_model_len=1024),
        mas=AutoGen(),
        composer=ComposerSettings(latents=3, max_length=64),
        lora=LoraSettings(r=4, alpha=8, dropout=setting.dropout),
        bank=BankSettings(append=setting.append),
        rollout=RolloutSettings(max_tokens=setting.max_tokens),
        lmpo=LMPOSettings(
            group_size=setting.group_size,
            reward="letters",
            prompt_reuse=setting.prompt_reuse,
            old_logprobs=setting.old_logprobs,
        ),
        sft_optimiser=OptimiserSettings(lr=setting.sft_lr, warmup_ratio=setting.warmup_ratio),
        lmpo_optimiser=OptimiserSettings(lr=setting.lmpo_lr, warmup_ratio=setting.warmup_ratio),
        dtype="float32",
        gradient_checkpointing=False,
    )
    module.bank = ExperienceBank(BagOfWords(), "trajectory")
    return module


def tiny_data(setting: Setting) -> TaskDataModule:
    stages = {name: StageSettings(setting.batch[name], steps=setting.steps[name]) for name in setting.steps}
    return TaskDataModule(
        TinyBenchmark(setting.items, setting.constant), stages["collect"], stages["sft"], stages["lmpo"], seed=3
    )


def tiny_trainer(root: Path, *callbacks: L.Callback, **options: Any) -> L.Trainer:
    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return L.Trainer(
        accelerator="cpu",
        max_epochs=1,
        default_root_dir=root,
        enable_checkpointing=False,
        log_every_n_steps=1,
        callbacks=[RNGState(), StageCheckpoint(), *callbacks],
        **{**quiet, **options},
    )


def fit(folder: Path, root: Path, setting: Setting, *callbacks: L.Callback, ckpt_path: Path | None = None) -> LatentMem:
    """A whole run, or what is left of one after ``ckpt_path``."""
    module = tiny_module(folder, setting)
    trainer = tiny_trainer(root, *callbacks)
    resume = str(ckpt_path) if ckpt_path else None
    trainer.fit(module, datamodule=tiny_data(setting), ckpt_path=resume, weights_only=True)
    return module


def relative_difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """||found - expected|| / ||expected||."""
    return float((found - expected).norm() / expected.norm())
