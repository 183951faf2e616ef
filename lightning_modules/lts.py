"""LTS as a LightningModule: sample episodes of parallel teams, train the admission controller on them (§3.3, §4.1).

    python train.py --config configs/train/lts_gym.yaml    # the gym (simulation), minutes on two cores
    python train.py --config configs/train/lts.yaml        # the paper's settings

One ``training_step`` is one iteration of :class:`data.epoch_loader.EpochLoader`: ``collect`` plays G episodes of each
of its tasks with sampled decisions, ``reuse`` takes one optimiser step on the episodes of its tasks. The episodes of
an epoch belong to the checkpoint, so a run goes on in the middle of either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

import lightning as L
import torch
from lightning.pytorch.core.optimizer import LightningOptimizer
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from data.bounds import check_at_least, check_metric
from data.datamodule import TaskDataModule
from data.stage_batch import StageBatch
from data.task import Task
from lightning_modules.backbone import Backbone, LoraSettings
from lightning_modules.controller import STEP_TOKENS, Controller, ControllerSettings
from lightning_modules.controller_admission import ControllerAdmission, decision_rng
from lightning_modules.credit import decision_advantages
from lightning_modules.optimisation import rate_factor
from lightning_modules.packed_decisions import EmbeddedEpisode, score_packed
from lightning_modules.phi import Phi
from lightning_modules.reinforce import ReinforceSettings, admission_loss
from rollout.admission import Admission, Variant
from rollout.event_loop import EventLoopThread
from rollout.play_teams import play_teams
from rollout.seeds import call_seed
from rollout.team_calls import teams_phase
from rollout.team_measures import measure
from rollout.teams import MakeAdmission, ParallelTeams
from rollout.teams_episode import TeamsEpisode, episode_from_dict, episode_to_dict, traced
from rollout.trace import TraceWriter

LORA = LoraSettings(r=16, alpha=16, dropout=0.0, target_modules=("q_proj", "k_proj", "v_proj", "o_proj"))
"""Paper: r 16, α 16. Ours: the four attention projections, no dropout."""


@dataclass(frozen=True)
class ControllerOptimiser:
    """AdamW (paper).

    Attributes:
        lr: of the adapters (ours).
        projection_lr: of W_q, W_m, W_s; ``None`` takes ``lr`` (ours).
        warmup_ratio: share of the optimiser steps with a rising rate; a cosine follows (ours).
        gradient_clip_val: (ours).
    """

    lr: float = 1e-4
    projection_lr: float | None = None
    weight_decay: float = 0.0
    warmup_ratio: float = 0.0
    gradient_clip_val: float = 1.0


class LTS(L.LightningModule):
    """The controller over its frozen base, and the teams whose steps it admits.

    Args:
        backbone: asset name, local path or hub id of the causal LM (paper: Qwen3-0.6B).
        teams: plays episodes.
        controller: settings of C_θ beside its base.
        lora: settings of its adapters.
        reinforce: settings of the objective.
        optimiser: AdamW and its schedule.
        layers: only the first so many layers of the base; all of them by default.
        dtype: of the frozen weights.
        max_concurrent: episodes played at once.
        seed: of initialisation and sampling.
    """

    def __init__(
        self,
        teams: ParallelTeams,
        backbone: str = "Qwen/Qwen3-0.6B",
        controller: ControllerSettings = ControllerSettings(),
        lora: LoraSettings = LORA,
        reinforce: ReinforceSettings = ReinforceSettings(),
        optimiser: ControllerOptimiser = ControllerOptimiser(),
        layers: int | None = None,
        dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16",
        max_concurrent: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_at_least(1, "model.init_args", max_concurrent=max_concurrent)  # with 0, nothing would ever start
        self.automatic_optimization = False
        self.strict_loading = False
        self.teams, self.reinforce, self.optimiser_settings = teams, reinforce, optimiser
        self.max_concurrent, self.seed = max_concurrent, seed
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.backbone = Backbone(backbone, getattr(torch, dtype), lora, layers=layers)
            self.controller = Controller(self.backbone, controller)
        self.phi = Phi(self.backbone, controller.pooling, controller.max_tokens)
        self.episodes: dict[str, list[TeamsEpisode]] = {}
        self.on_progress: Callable[[str, int, int], None] | None = None
        self.trace: TraceWriter | None = None
        self._loop: EventLoopThread | None = None
        self._metrics: dict[str, float] = {}

    # ------------------------------------------------------------------ episodes

    def admission(self, epoch: int, temperature: float) -> MakeAdmission:
        """Makes the learned admission of each episode; ``epoch`` goes into its random stream."""

        def make(task: Task, member: int) -> Admission:
            rng = decision_rng(self.seed, epoch, task, member)
            return ControllerAdmission(self.backbone, self.controller, self.phi, task, temperature, rng)

        return make

    def play(
        self, tasks: Sequence[Task], group_size: int, seed: int, variant: Variant, controller: MakeAdmission | None
    ) -> list[TeamsEpisode]:
        """``group_size`` episodes of every task; see :func:`rollout.play_teams.play_teams`."""
        self._loop = self._loop or EventLoopThread()
        return self._loop.run(
            play_teams(
                self.teams,
                tasks,
                group_size,
                seed,
                variant,
                controller,
                self.max_concurrent,
                lambda episode, done, total: self._played(episode, variant, seed, done, total),
            )
        )

    def _played(self, episode: TeamsEpisode, variant: Variant, seed: int, done: int, total: int) -> None:
        if self.trace is not None and not episode.simulated:
            self.trace.write(teams_phase(variant), seed, [traced(episode)])
        if self.on_progress is not None:
            self.on_progress("rollout", done, total)

    def embed(self, episode: TeamsEpisode) -> EmbeddedEpisode:
        """φ of all that the decisions of ``episode`` read."""
        steps = [text for step in episode.admissions for text in (step.instruction, step.summary, step.output)]
        keys = [entry.key for entry in episode.entries]
        vectors = self.phi([episode.task.question, *keys, *steps])
        return EmbeddedEpisode(
            query=vectors[0],
            keys=vectors[1 : 1 + len(keys)],
            steps=vectors[1 + len(keys) :].reshape(len(episode.admissions), STEP_TOKENS, vectors.shape[-1]),
            seen=tuple(step.seen for step in episode.admissions),
        )

    # ------------------------------------------------------------------ training

    def training_step(self, batch: StageBatch, batch_idx: int) -> None:
        """One iteration of ``collect`` or ``reuse``."""
        self._metrics = {}
        started = time.perf_counter()
        if batch.stage == "collect":
            self._collect(batch)
        elif batch.stage == "reuse":
            self._reuse(batch)
        else:
            raise ValueError(f"LTS has no stage {batch.stage!r}; set data.epochs, not the stages of LatentMem")
        name = "update" if batch.stage == "reuse" else "rollout"
        self._log("seconds", {name: time.perf_counter() - started})
        for logger in self.loggers:
            logger.log_metrics(self._metrics, step=batch_idx)

    def _collect(self, batch: StageBatch) -> None:
        """G episodes a task under the present policy; the first iteration of an epoch forgets the last epoch's."""
        if batch.step == 0:
            self.episodes = {}
            if batch.epoch == 0:
                self._set_offset(batch.tasks)
        seed = call_seed(self.seed, batch.epoch, "collect", 0, 0)
        size = self.reinforce.group_size
        played = self.play(batch.tasks, size, seed, "lts", self.admission(batch.epoch, self.reinforce.temperature))
        for place, task in enumerate(batch.tasks):
            self.episodes[task.id] = played[place * size : (place + 1) * size]
        figures = asdict(measure(played, self.reinforce.reward))
        self._log("collect", {name: float(value) for name, value in figures.items() if value is not None}, "score")
        self._log("collect", {"phi_truncated": self.phi.truncated})

    def _set_offset(self, tasks: Sequence[Task]) -> None:
        """Put the untrained controller at ``initial_admission`` on the steps of episodes that share everything."""
        rate = self.controller.settings.initial_admission
        if rate is None:
            return
        played = self.play(tasks, 1, call_seed(self.seed, 0, "offset", 0, 0), "add_all", None)
        embedded = [self.embed(episode) for episode in played]
        with torch.no_grad(), self.backbone.adapted():
            logits = score_packed(self.backbone, self.controller, embedded)
        wanted = self.reinforce.temperature * torch.logit(torch.tensor(rate))
        self.controller.offset.copy_(wanted - (logits[:, 0] - logits[:, 1]).mean())

    def _reuse(self, batch: StageBatch) -> None:
        """One optimiser step on Eq. 10 over all episodes of the batch's tasks."""
        settings = self.reinforce
        groups = [self.episodes[task.id] for task in batch.tasks]
        flat = [episode for group in groups for episode in group]
        advantages = decision_advantages(groups, settings)
        optimiser = cast(LightningOptimizer, self.optimizers())
        optimiser.zero_grad()
        policy = sparsity = 0.0
        chances: list[torch.Tensor] = []
        for at in range(0, len(flat), settings.micro_batch):
            episodes = flat[at : at + settings.micro_batch]
            steps = [step for episode in episodes for step in episode.admissions]
            embedded = [self.embed(episode) for episode in episodes]
            with self.backbone.adapted():
                logits = score_packed(self.backbone, self.controller, embedded)
                loss = admission_loss(
                    logits,
                    torch.tensor([step.admitted for step in steps], device=logits.device),
                    torch.cat(advantages[at : at + settings.micro_batch]).to(logits.device),
                    torch.tensor([float(step.probability or 0.0) for step in steps], device=logits.device),
                    len(flat),
                    settings,
                )
                self.manual_backward(loss.total)
            policy, sparsity = policy + float(loss.policy.detach()), sparsity + float(loss.sparsity.detach())
            chances.append(torch.softmax(logits.detach() / settings.temperature, dim=-1)[:, 0])
        norm = nn.utils.get_total_norm(w.grad for w in self._trainable().values() if w.grad is not None)
        self.clip_gradients(optimiser.optimizer, self.optimiser_settings.gradient_clip_val, "norm")
        optimiser.step()
        cast(Any, self.lr_schedulers()).step()
        figures = {"policy_loss": policy, "sparsity_loss": sparsity, "grad_norm": float(norm)}
        self._log("reuse", {**figures, "yes": float(torch.cat(chances).mean())}, bar="yes")

    def _log(self, section: str, values: Mapping[str, float], bar: str = "") -> None:
        for name, value in values.items():
            self._metrics[f"{section}/{name}"] = float(value)
            self.log(f"{section}/{name}", float(value), prog_bar=name == bar, logger=False, on_step=True, batch_size=1)

    # ------------------------------------------------------------------ Lightning

    def configure_optimizers(self) -> Any:
        """One AdamW with two rates, warm-up and cosine over the optimiser steps of the run."""
        settings = self.optimiser_settings
        head_lr = settings.lr if settings.projection_lr is None else settings.projection_lr
        groups = [
            {"params": list(self.backbone.adapter_parameters().values()), "lr": settings.lr},
            {"params": list(self.controller.parameters()), "lr": head_lr},
        ]
        optimiser = torch.optim.AdamW(groups, weight_decay=settings.weight_decay)
        steps = self._optimiser_steps()
        warmup = round(settings.warmup_ratio * steps)
        return [optimiser], [LambdaLR(optimiser, lambda step: rate_factor(step, warmup, steps))]

    def setup(self, stage: str) -> None:
        """Refuse what would fail later."""
        if self.trainer.world_size > 1:
            raise ValueError("LTS trains on one device: each process would play episodes of its own; set devices: 1")
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if isinstance(data, TaskDataModule):
            benchmark = data.benchmark
            check_metric("model.reinforce.reward", self.reinforce.reward, benchmark.name, benchmark.metrics)
        if self.trainer.precision in ("16-true", "bf16-true"):
            raise ValueError(
                f"trainer.precision is {self.trainer.precision}: what learns would lose its small updates; set 32-true "
                "and the precision of the frozen base with model.init_args.dtype"
            )
        log_dir = self.trainer.log_dir
        self.trace = TraceWriter(Path(log_dir) / "trace.jsonl") if log_dir else None

    def teardown(self, stage: str) -> None:
        """Close the teams and stop the event loop."""
        if self._loop is not None:
            self._loop.run(self.teams.close())
            self._loop.close()
            self._loop = None

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """Adapters, projections and the offset. The frozen base is not saved."""
        learnt = {name: weight.detach() for name, weight in self._trainable().items()}
        return {**learnt, "controller.offset": self.controller.offset}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The epoch's episodes, which later passes train on."""
        checkpoint["episodes"] = {
            task: [episode_to_dict(episode) for episode in group] for task, group in self.episodes.items()
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the episodes; refuse a checkpoint of other trained weights."""
        odd = sorted(checkpoint["state_dict"].keys() ^ self.state_dict().keys())
        if odd:
            raise ValueError(
                f"the checkpoint has other trained weights, first {odd[0]!r}: same backbone, layers, lora?"
            )
        self.episodes = {
            task: [episode_from_dict(state) for state in group] for task, group in checkpoint["episodes"].items()
        }

    def _trainable(self) -> dict[str, nn.Parameter]:
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    def _optimiser_steps(self) -> int:
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if not isinstance(data, TaskDataModule) or data.epochs is None:
            raise TypeError("LTS needs a TaskDataModule with data.epochs: its plan is collection and reuse by epochs")
        return data.epochs.optimiser_steps(len(data.benchmark.tasks("train")[: data.train_limit]))
