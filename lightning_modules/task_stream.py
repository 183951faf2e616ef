"""A stream of tasks, solved online by agents that remember: nothing is optimised, only the memory changes (CoMem).

    python train.py --config configs/train/comem.yaml
    python train.py --config configs/train/comem.yaml --ckpt_path last      # go on where it stopped

One ``training_step`` solves the next ``data.stream.tasks_in_flight`` tasks and hands their episodes to the memory in
task order. With CoMem, its callbacks then end them (``lightning_modules/callbacks/comem``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import lightning as L
import torch
from transformers import AutoTokenizer

from data.assets import resolve_model
from data.bounds import check_metric
from data.datamodule import TaskDataModule
from data.stream import StreamBatch
from data.trajectory import Trajectory
from lightning_modules.callbacks.comem.mechanism import check_mechanisms
from lightning_modules.stream_results import Row, mean_scores, row_of, summary
from memory.comem.comem import CoMem
from memory.memory import Memory
from rollout.engine import Engine, check_temperature
from rollout.failure import broke_off
from rollout.mas.mas import MAS
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.trace import TraceWriter

RESULTS, TEST_RESULTS = "stream_results.json", "test_results.json"


@runtime_checkable
class Stateful(Protocol):
    """A memory that a checkpoint can hold."""

    def state_dict(self) -> dict[str, Any]:
        """Plain values and tensors."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace everything by ``state``."""
        ...


class TaskStream(L.LightningModule):
    """Agents, engine and memory over a stream; a LightningModule without an optimiser.

    Args:
        backbone: asset name, local path or hub id of the agents' model, whose tokenizer is used here; with an engine
            that takes text only, the model's name there.
        engine: runs it.
        mas: which agents act.
        memory: what they remember; ``None`` for nothing.
        rollout: limits of an agent call.
        temperature: of the agents (ours: greedy).
        seed: of sampling.
        learns_in_test: whether the memory goes on learning where a Trainer tests; it is frozen by default.

    Raises:
        ValueError: a temperature that means nothing.
    """

    def __init__(
        self,
        backbone: str,
        engine: Engine,
        mas: MAS,
        memory: Memory | None = None,
        rollout: RolloutSettings = RolloutSettings(),
        temperature: float = 0.0,
        seed: int = 0,
        learns_in_test: bool = False,
    ) -> None:
        super().__init__()
        check_temperature("model.temperature", temperature)
        self.automatic_optimization = False
        self.backbone, self.engine, self.mas, self.memory = backbone, engine, mas, memory
        self.rollout_settings, self.temperature, self.seed = rollout, temperature, seed
        self.learns_in_test = learns_in_test
        self.on_progress: Callable[[str, int, int], None] | None = None
        self.trajectories: list[Trajectory] = []
        self.runner: EpisodeRunner | None = None
        self.rows: list[Row] = []

    @property
    def comem(self) -> CoMem | None:
        """The memory, if it is CoMem: what its callbacks look for."""
        return self.memory if isinstance(self.memory, CoMem) else None

    def training_step(self, batch: StreamBatch, batch_idx: int) -> None:
        """Solve the batch's tasks at once; seeds depend on the pass over the tasks, not on how it is cut."""
        assert self.runner is not None
        phase = Phase("stream", batch.epoch, self.seed, self.temperature)
        started = time.perf_counter()
        self.trajectories = self.runner.run(batch.tasks, 1, phase, self.memory, self._progress)
        self._log(time.perf_counter() - started)
        if self.memory is not None and (self.comem is not None or not self._frozen):  # CoMem's callbacks hold it still
            for trajectory in self.trajectories:
                if not broke_off(trajectory):  # one that did says nothing of the memory; one out of steps failed
                    self.memory.end_episode(trajectory)

    def test_step(self, batch: StreamBatch, batch_idx: int) -> None:
        """The same over the held-out tasks, where a Trainer evaluates."""
        self.training_step(batch, batch_idx)

    @property
    def _frozen(self) -> bool:
        return bool(self.trainer.testing) and not self.learns_in_test

    def _log(self, seconds: float) -> None:
        self.rows += map(row_of, self.trajectories)
        self.log("seconds/rollout", seconds, logger=False, batch_size=1)
        for name, value in mean_scores(self.rows).items():
            self.log(f"stream/{name}_so_far", value, prog_bar=True, batch_size=1, logger=False)

    def _progress(self, done: int, total: int) -> None:
        if self.on_progress is not None:
            self.on_progress("rollout", done, total)

    # ------------------------------------------------------------------ Lightning

    def on_train_batch_end(self, outputs: Any, batch: StreamBatch, batch_idx: int) -> None:
        """The batch's scores to the loggers, on disk at once: what a killed run did not show, a resumed one would not.

        After the callbacks, and so after the checkpoint: a run killed while agents reflect shows no episode twice.
        """
        first = len(self.rows) - len(self.trajectories)
        for logger in self.loggers:
            for place, trajectory in enumerate(self.trajectories):
                scores = {f"stream/{name}": value for name, value in trajectory.score.items()}
                logger.log_metrics(scores, step=first + place)
            logger.save()

    def on_test_start(self) -> None:
        """An evaluation has rows of its own."""
        self.rows = []

    def on_test_batch_end(self, outputs: Any, batch: StreamBatch, batch_idx: int, dataloader_idx: int = 0) -> None:
        """As in training."""
        self.on_train_batch_end(outputs, batch, batch_idx)

    def setup(self, stage: str) -> None:
        """Refuse what would fail later, and connect the agents to the data."""
        data = self._data()
        if self.trainer.world_size > 1:
            raise ValueError("a stream has one memory, and so one process: set trainer.devices: 1")
        if getattr(self.engine, "model", self.backbone) != self.backbone:
            raise ValueError(
                f"model.engine.model is {self.engine.model!r} and model.backbone {self.backbone!r}; "  # type: ignore[attr-defined]
                "prompts would be made for another tokenizer, give both the same name"
            )
        if self.comem is not None:
            check_mechanisms(self.trainer, "model.memory")
            reward = self.comem.settings.reward
            check_metric("model.memory.settings.reward", reward, data.benchmark.name, data.benchmark.metrics)
        folder = self.trainer.log_dir
        self.runner = EpisodeRunner(
            self.engine,
            self.mas,
            None if self.engine.text_only else AutoTokenizer.from_pretrained(resolve_model(self.backbone)),
            _no_latents,
            data.benchmark,
            self.rollout_settings,
            TraceWriter(Path(folder) / "trace.jsonl") if folder else None,
        )

    def teardown(self, stage: str) -> None:
        """Stop the engine."""
        if self.runner is not None:
            self.runner.close()

    def configure_optimizers(self) -> None:
        """None: agents are frozen, and the memory learns without gradients."""

    def on_train_end(self) -> None:
        """The stream's scores, with the setting that they depend on."""
        stream = self._data().stream
        assert stream is not None
        self._write_results(RESULTS, stream.split)

    def on_test_end(self) -> None:
        """The same of an evaluation."""
        self._write_results(TEST_RESULTS, self._data().validation_split)

    def _write_results(self, name: str, split: str) -> None:
        data = self._data()
        assert data.stream is not None
        result = {
            "benchmark": data.benchmark.name,
            "split": split,
            "versions": data.benchmark.tasks(split)[0].metadata.get("engine"),  # of a world's own engine
            "tasks_in_flight": data.stream.tasks_in_flight,
            "memory_is": "frozen" if self._frozen else "learning",
            "write_gate": "none" if self.comem is None else self.comem.settings.write_gate,
            "memory": None if self.memory is None else type(self.memory).__name__,
            "mas": self.mas.name,
            "temperature": self.temperature,
            "seed": self.seed,
            **summary(self.rows),
        }
        folder = Path(self.trainer.log_dir or self.trainer.default_root_dir)
        (folder / name).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """What happened so far, and the memory, unless it is CoMem, whose callbacks keep it."""
        checkpoint["stream_rows"] = self.rows
        if (memory := self._kept_here()) is not None:
            checkpoint["memory"] = memory.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The inverse."""
        self.rows = list(checkpoint["stream_rows"])
        if (memory := self._kept_here()) is not None:
            memory.load_state_dict(checkpoint["memory"])

    def _kept_here(self) -> Stateful | None:
        memory: object = self.memory
        return memory if isinstance(memory, Stateful) and self.comem is None else None

    def _data(self) -> TaskDataModule:
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if not isinstance(data, TaskDataModule) or data.stream is None:
            raise ValueError("TaskStream needs a TaskDataModule with data.stream; see configs/train/comem.yaml")
        return data


def _no_latents(ids: torch.Tensor) -> torch.Tensor:
    raise ValueError("a memory gave latents, but a stream of frozen agents has no model to embed a prompt with")
