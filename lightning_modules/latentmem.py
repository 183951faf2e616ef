"""LatentMem as a LightningModule: collect an experience bank, warm the composer up, train it by LMPO.

    python train.py                                        # configs/quickstart.yaml
    python train.py --config configs/train/latentmem.yaml  # the paper's settings

One ``training_step`` is one iteration of whichever stage its batch belongs to. Optimisation is manual: the gradient
reaches the composer through the latents in one backward pass, after all micro-batches of agent calls.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import lightning as L
import torch
from lightning.pytorch.core.optimizer import LightningOptimizer
from torch import nn

from data.bounds import check_metric
from data.datamodule import StageBatch, StageName, TaskDataModule
from data.environment import World
from data.task import Benchmark, Task
from data.trajectory import Step, Trajectory
from lightning_modules import lmpo_log
from lightning_modules.backbone import Backbone, LoraSettings
from lightning_modules.bank_settings import BankSettings
from lightning_modules.callbacks.comem.mechanism import check_mechanisms
from lightning_modules.composer import Composer, ComposerSettings, ComposerText, composer_text
from lightning_modules.latent_gradient import CallLoss, LatentGradient, latent_gradient
from lightning_modules.latent_memory import Composed, LatentMemory
from lightning_modules.lmpo import LMPOSettings, group_advantages
from lightning_modules.optimisation import OptimiserSettings, build_optimiser
from lightning_modules.surrogate_loss import SurrogateLoss, trained_calls
from lightning_modules.token_scores import AgentCall
from memory.comem.comem import CoMem
from memory.encoder import Encoder
from memory.experience_bank import ExperienceBank
from memory.several import Several
from memory.write_gate import admits
from rollout.engine import Engine
from rollout.failure import broke_off, check_any_finished
from rollout.mas.mas import MAS
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.teacher import teacher_forced_steps
from rollout.trace import TraceWriter
from rollout.transformers_engine import TransformersEngine

OPTIMISED: tuple[StageName, ...] = ("sft", "lmpo")


class LatentMem(L.LightningModule):
    """The composer with its frozen agents, engine and experience bank.

    Args:
        backbone: asset name, local path or hub id of the causal LM; agents and composer share its weights.
        engine: generates; its model must be the backbone.
        mas: which agents act.
        composer: settings of σ_φ.
        lora: settings of the composer's adapters.
        bank: settings of B.
        rollout: limits of an agent call.
        lmpo: settings of the LMPO stage.
        sft_optimiser: of the warm start (ours).
        lmpo_optimiser: of LMPO.
        dtype: of the frozen weights.
        gradient_checkpointing: for the composer (paper: on).
        comem: insights that agents read beside their latents, kept up by CoMem's callbacks (ours); ``None`` for none.
        seed: of initialisation and sampling.
    """

    def __init__(
        self,
        backbone: str,
        engine: Engine,
        mas: MAS,
        composer: ComposerSettings = ComposerSettings(),
        lora: LoraSettings = LoraSettings(),
        bank: BankSettings = BankSettings(),
        rollout: RolloutSettings = RolloutSettings(),
        lmpo: LMPOSettings = LMPOSettings(),
        sft_optimiser: OptimiserSettings = OptimiserSettings(lr=1e-4),
        lmpo_optimiser: OptimiserSettings = OptimiserSettings(),
        dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16",
        gradient_checkpointing: bool = True,
        comem: CoMem | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if engine.text_only:
            raise ValueError(
                f"model.engine: {type(engine).__name__} takes text only: latents cannot be sent to it, and the tokens "
                "that it samples are not known to train on; choose VLLMEngine, VLLMServerEngine or TransformersEngine"
            )
        self.automatic_optimization = False
        self.strict_loading = False
        self.engine, self.mas, self.comem, self.seed = engine, mas, comem, seed
        self.bank_settings, self.rollout_settings, self.lmpo = bank, rollout, lmpo
        self.optimiser_settings = {"sft": sft_optimiser, "lmpo": lmpo_optimiser}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.backbone = Backbone(backbone, getattr(torch, dtype), lora, gradient_checkpointing)
            self.composer = Composer(self.backbone, composer)
        self.bank = ExperienceBank(Encoder(bank.encoder), bank.key)
        self.on_progress: Callable[[str, int, int], None] | None = None
        self.trajectories: list[Trajectory] = []
        self.runner: EpisodeRunner | None = None
        self._seconds: dict[str, float] = {}
        self._metrics: dict[str, float] = {}
        self._first_reward: dict[str, float] = {}
        if isinstance(engine, TransformersEngine):
            engine.share(self.backbone.model, self.backbone.tokenizer)

    # ------------------------------------------------------------------ agents

    def connect(self, benchmark: Benchmark | World, trace: Path | None = None) -> EpisodeRunner:
        """Make the runner that lets the agents act on tasks of ``benchmark``."""
        self.runner = EpisodeRunner(
            self.engine,
            self.mas,
            self.backbone.tokenizer,
            self.backbone.embed,
            benchmark,
            self.rollout_settings,
            TraceWriter(trace) if trace is not None else None,
        )
        return self.runner

    def compose(self, tasks: Sequence[Task]) -> Composed:
        """Latents of every distinct (query, role), with gradient unless the caller turned it off."""
        found = self.bank.search([task.question for task in tasks], self.bank_settings.k)
        rows: dict[tuple[str, str], int] = {}
        texts: list[ComposerText] = []
        entries: list[tuple[str, ...]] = []
        for task, retrieved in zip(tasks, found, strict=True):
            for role, profile in {agent.role: agent.profile for agent in self.mas.agents(task.domain)}.items():
                rows[task.id, role] = len(texts)
                past = [each.trajectory for each in retrieved]
                texts.append(composer_text(profile, past, self.composer.settings.use_role))
                entries.append(tuple(each.entry_id for each in retrieved))
        with self.backbone.adapted():
            latents = self.composer(self.backbone, texts)
        scores = [each.similarity for retrieved in found for each in retrieved]
        return Composed(latents, rows, tuple(entries), sum(scores) / len(scores) if scores else 0.0)

    def memory(self) -> LatentMemory:
        """A fresh memory over this composer and bank."""
        return LatentMemory(self.compose, self.bank)

    # ------------------------------------------------------------------ the three stages

    def training_step(self, batch: StageBatch, batch_idx: int) -> None:
        """One iteration of ``collect``, ``sft`` or ``lmpo``."""
        self._seconds, self._metrics, self.trajectories = {}, {}, []
        {"collect": self._collect, "sft": self._warm_start, "lmpo": self._reinforce}[batch.stage](batch)
        self._log("seconds", self._seconds)
        self._log("bank", {"size": len(self.bank)})
        for logger in self.loggers:
            logger.log_metrics(self._metrics, step=batch_idx)

    def _collect(self, batch: StageBatch) -> None:
        """Episodes without memory fill the bank (App. B.4.2)."""
        self._rollout(batch, 1, self.bank_settings.collect_temperature, None)
        self.remember(self.trajectories)

    def _warm_start(self, batch: StageBatch) -> None:
        """Maximum likelihood of the reference answer in every call (ours; see ``rollout/teacher.py``)."""
        injection = self.rollout_settings.injection
        composed = self._compose_for(batch.tasks)
        calls = [
            _agent_call(step, composed.rows[task.id, step.role])
            for task in batch.tasks
            for said in [self.bank.latest(task.question)]
            for step in teacher_forced_steps(self.mas, task, self.backbone.tokenizer, injection, said)
        ]
        tokens = sum(len(call.output_ids) for call in calls)
        result, norm = self._update("sft", composed, calls, lambda _, logprobs: -logprobs.sum() / tokens, 1.0)
        self._log("sft", {"loss": result.loss, "grad_norm": norm, "latent_norm": _norm(composed.latents)}, bar="loss")
        self._advance_schedule("sft")

    def _reinforce(self, batch: StageBatch) -> None:
        """Sample groups, score them, and follow Eq. 11 on every turn of every agent."""
        memory = self.memory()
        self._rollout(batch, self.lmpo.group_size, self.lmpo.temperature, memory)
        assert memory.composed is not None
        rewards = torch.tensor([self._reward(trajectory) for trajectory in self.trajectories])
        rewards = rewards.view(len(batch.tasks), self.lmpo.group_size)
        self._log("lmpo", lmpo_log.group_metrics(rewards), bar="reward_mean")
        found = zip(batch.tasks, rewards.nanmean(dim=1).tolist(), strict=True)
        means = {task.id: mean for task, mean in found if not math.isnan(mean)}
        self._log("lmpo", lmpo_log.gain_metrics(self._first_reward, means), bar="reward_gain")
        self._first_reward = {**means, **self._first_reward}
        self._log("lmpo", {"latent_norm": _norm(memory.composed.latents)})
        self._log("lmpo", {"retrieval_similarity": memory.composed.similarity})
        advantages = group_advantages(rewards, self.lmpo.advantage_epsilon).flatten().tolist()
        if any(advantages):
            self._follow_surrogate(batch, memory.composed, advantages)
        self._append_experience()
        self._advance_schedule("lmpo")

    def _reward(self, trajectory: Trajectory) -> float:
        """R(τ); NaN for an episode that broke off: an engine's failure says nothing of the memory."""
        return math.nan if broke_off(trajectory) else float(trajectory.score[self.lmpo.reward])

    def _follow_surrogate(self, batch: StageBatch, composed: Composed, advantages: Sequence[float]) -> None:
        """Eq. 12 on the calls of trajectories whose advantage is not zero, ``prompt_reuse`` times."""
        trained = trained_calls(self.trajectories, advantages, self.lmpo)
        calls = [
            _agent_call(call.step, composed.rows[self.trajectories[call.trajectory].task.id, call.step.role])
            for call in trained
        ]
        loss = SurrogateLoss(trained, self.lmpo)
        for reuse in range(self.lmpo.prompt_reuse):
            if reuse > 0:
                composed = self._compose_for(batch.tasks)
            result, norm = self._update("lmpo", composed, calls, loss, self.lmpo.temperature)
            if reuse == 0:
                loss.keep(result.logprobs)
                self._log("lmpo", lmpo_log.mismatch_metrics(torch.cat(result.logprobs).cpu(), loss.sampled()))
        ratio, clipped = loss.last_pass()
        self._log("lmpo", lmpo_log.ratio_metrics(ratio, clipped, torch.cat(result.entropy)))
        self._log("lmpo", {"loss": result.loss, "grad_norm": norm, "trained_tokens": float(len(ratio))})
        self._log("lmpo", {"update_tokens_per_s": len(ratio) * self.lmpo.prompt_reuse / self._seconds["update"]})

    def _append_experience(self) -> None:
        """B ← B ∪ {τ_new} (Eq. 4), in task order."""
        members = {"all": self.lmpo.group_size, "one": 1, "none": 0}[self.bank_settings.append]
        self.remember([trajectory for trajectory in self.trajectories if trajectory.member < members])

    def remember(self, trajectories: Sequence[Trajectory]) -> None:
        """Append what did not break off and passes the write gate."""
        gate, reward = self.bank_settings.write_gate, self.lmpo.reward
        self.bank.append(
            [each for each in trajectories if not broke_off(each) and admits(gate, each.score.get(reward, 0.0))]
        )

    # ------------------------------------------------------------------ shared by the stages

    def _rollout(self, batch: StageBatch, group_size: int, temperature: float, memory: LatentMemory | None) -> None:
        assert self.runner is not None
        phase = Phase(batch.stage, batch.step, self.seed, temperature)
        read = memory if memory is None or self.comem is None else Several((self.comem, memory))
        with self._phase("rollout"):
            self.trajectories = self.runner.run(
                batch.tasks, group_size, phase, read, lambda done, total: self._progress("rollout", done, total)
            )
        check_any_finished(self.trajectories)
        if memory is not None and self.comem is not None:
            for trajectory in self.trajectories:
                if not broke_off(trajectory):
                    self.comem.end_episode(trajectory)
        self._log("rollout", {"failed": sum(map(broke_off, self.trajectories)) / len(self.trajectories)})
        self._log(batch.stage, lmpo_log.rollout_metrics(self.trajectories, self._seconds["rollout"]))

    def _compose_for(self, tasks: Sequence[Task]) -> Composed:
        self._progress("compose", 0, len(tasks))
        with self._phase("compose"):
            return self.compose(tasks)

    def _update(
        self, stage: StageName, composed: Composed, calls: Sequence[AgentCall], call_loss: CallLoss, temperature: float
    ) -> tuple[LatentGradient, float]:
        """One optimiser step: agents' backward to the latents, composer's backward, clip, step."""
        self._progress("update", 0, len(calls))
        optimiser = cast(LightningOptimizer, cast(list[Any], self.optimizers())[OPTIMISED.index(stage)])
        with self._phase("update"):
            result = latent_gradient(
                self.backbone, calls, composed.latents, call_loss, temperature, self.lmpo.micro_batch
            )
            optimiser.zero_grad()
            with self.backbone.adapted():
                self.manual_backward(composed.latents, gradient=result.gradient)
            norm = nn.utils.get_total_norm(w.grad for w in self._trainable().values() if w.grad is not None)
            self.clip_gradients(optimiser.optimizer, self.optimiser_settings[stage].gradient_clip_val, "norm")
            optimiser.step()
        return result, float(norm)

    def _advance_schedule(self, stage: StageName) -> None:
        cast(list[Any], self.lr_schedulers())[OPTIMISED.index(stage)].step()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - started

    def _progress(self, phase: str, done: int, total: int) -> None:
        if self.on_progress is not None:
            self.on_progress(phase, done, total)

    def _log(self, section: str, values: Mapping[str, float], bar: str = "") -> None:
        """Loggers get the figures of this iteration only: Lightning's own path repeats those of earlier stages."""
        for name, value in values.items():
            self._metrics[f"{section}/{name}"] = float(value)
            self.log(f"{section}/{name}", float(value), prog_bar=name == bar, logger=False, on_step=True, batch_size=1)

    # ------------------------------------------------------------------ Lightning

    def setup(self, stage: str) -> None:
        """Refuse what would fail later, and connect the agents to the data."""
        if self.trainer.world_size > 1:
            raise ValueError(
                "LatentMem trains on one device: each process would fill a bank of its own; set devices: 1"
            )
        if getattr(self.engine, "model", self.backbone.name) != self.backbone.name:
            raise ValueError(
                f"model.engine.model is {self.engine.model!r} and model.backbone {self.backbone.name!r}; "  # type: ignore[attr-defined]
                "latents of one model mean nothing to another, give both the same name"
            )
        benchmark = self._data().benchmark
        check_metric("model.lmpo.reward", self.lmpo.reward, benchmark.name, benchmark.metrics)
        if self.comem is not None:
            check_mechanisms(self.trainer, "model.comem")
        log_dir = self.trainer.log_dir
        self.connect(benchmark, Path(log_dir) / "trace.jsonl" if log_dir else None)

    def teardown(self, stage: str) -> None:
        """Stop the engine."""
        if self.runner is not None:
            self.runner.close()

    def configure_optimizers(self) -> Any:
        """One AdamW and schedule for each stage that learns."""
        adapters, offset = self.backbone.adapter_parameters().values(), self.composer.offset
        heads = [weight for weight in self.composer.parameters() if weight is not offset]
        built = [
            build_optimiser(adapters, heads, offset, self.optimiser_settings[stage], self._data().steps(stage))
            for stage in OPTIMISED
        ]
        return [optimiser for optimiser, _ in built], [schedule for _, schedule in built]

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """What learns: adapters, queries, projection, scale, offset. The frozen base is not saved."""
        return {name: weight.detach() for name, weight in self._trainable().items()}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Bank and first rewards belong to the same file as the weights: separate files tear."""
        checkpoint["experience_bank"] = self.bank.state_dict()
        checkpoint["first_reward"] = self._first_reward

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the bank; refuse a checkpoint of other trained weights."""
        saved, here = checkpoint["state_dict"].keys(), self._trainable().keys()
        for names, fault in ((here - saved, "lacks"), (saved - here, "has unknown")):
            if names:
                raise ValueError(
                    f"the checkpoint {fault} {len(names)} trained weights, first {min(names)!r}; "
                    "it was made with other lora or composer settings"
                )
        self.bank.load_state_dict(checkpoint["experience_bank"])
        self._first_reward = dict(checkpoint["first_reward"])

    def _trainable(self) -> dict[str, nn.Parameter]:
        named = dict(self.named_parameters())
        return {name: weight for name, weight in named.items() if weight.requires_grad}

    def _data(self) -> TaskDataModule:
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if not isinstance(data, TaskDataModule):
            raise TypeError(f"LatentMem needs a TaskDataModule, got {type(data).__name__}")
        return data


def _agent_call(step: Step, latent_row: int) -> AgentCall:
    return AgentCall(step.prefix_ids, step.suffix_ids, step.output_ids, latent_row)


def _norm(latents: torch.Tensor) -> float:
    """Mean length of a latent token."""
    return float(latents.detach().norm(dim=-1).mean())
