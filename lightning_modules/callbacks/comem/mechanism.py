"""What the mechanisms have in common: when they run, in what order, on which module."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import lightning as L

from data.trajectory import Trajectory
from lightning_modules.callbacks.stage_checkpoint import StageCheckpoint
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.event import Event
from rollout.ask import Asker
from rollout.runner import EpisodeRunner


class CarriesCoMem(Protocol):
    """All that the callbacks need of a module. Finished episodes reach them through ``comem.end_episode``.

    Attributes:
        comem: the memory; the module hands it every finished episode in task order, and no more.
        runner: through whose engine agents are asked.
        seed: of the run.
    """

    comem: CoMem
    runner: EpisodeRunner | None
    seed: int


@dataclass(frozen=True)
class Ended:
    """An episode that every mechanism is through with.

    Attributes:
        events: of all mechanisms, in order.
        in_flight: episodes that ended together with it; 1 is the paper's strict sequence.
    """

    events: tuple[Event, ...]
    in_flight: int


class Mechanism(L.Callback):
    """One step of the lifecycle.

    Whichever mechanism a trainer lists first drives them all at the end of a batch: every agent is asked about every
    finished episode at once, then each episode in task order goes through the mechanisms in the order of :attr:`place`.
    The driver also keeps CoMem's stores in the checkpoint.
    """

    place: ClassVar[int]
    learns: ClassVar[bool] = True
    """Whether it changes the memory; one that does not also looks on where the memory is frozen."""

    def __init__(self) -> None:
        self.count = 0

    async def consult(self, asker: Asker, runner: EpisodeRunner, memory: CoMem, each: Finished) -> Finished:
        """``each`` with what agents say about it; nothing is asked by default."""
        return each

    def apply(self, memory: CoMem, episode: Episode) -> Sequence[Event]:
        """Change the stores; say what happened."""
        raise NotImplementedError

    def observe(self, trainer: L.Trainer, memory: CoMem, ended: Ended) -> None:
        """Look at one episode once every mechanism is through with it."""

    def batch_ended(self, asker: Asker) -> None:
        """Look at what the questions of a batch cost."""

    # ------------------------------------------------------------------ Lightning

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Refuse a list in which a checkpoint would be written before the episode is in the memory."""
        kinds = [type(each) for each in trainer.callbacks]  # type: ignore[attr-defined]
        if any(issubclass(kind, StageCheckpoint) for kind in kinds[: kinds.index(type(self))]):
            raise ValueError(
                f"trainer.callbacks lists StageCheckpoint before {type(self).__name__}: a resumed run would lose "
                "an episode; put CoMem's callbacks first"
            )
        if not isinstance(getattr(pl_module, "comem", None), CoMem):
            raise ValueError(f"{type(self).__name__} needs a module with a CoMem; set model.memory to one")

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: Any, *_: Any) -> None:
        """End the batch's episodes, if this is the driver."""
        if self is _mechanisms(trainer)[0]:
            end_batch(trainer, pl_module)

    def on_test_batch_end(self, trainer: L.Trainer, pl_module: Any, *_: Any) -> None:
        """The same where a stream is an evaluation; of a frozen memory only by those that do not :attr:`learns`."""
        if self is _mechanisms(trainer)[0]:
            end_batch(trainer, pl_module, learning=pl_module.learns_in_test)

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """The stores, once."""
        if self is _mechanisms(trainer)[0]:
            checkpoint["comem"] = pl_module.comem.state_dict()

    def on_load_checkpoint(self, trainer: L.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """The stores, once."""
        if self is _mechanisms(trainer)[0]:
            pl_module.comem.load_state_dict(checkpoint["comem"])

    def state_dict(self) -> dict[str, Any]:
        """How many events this mechanism has made so far."""
        return {"count": self.count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue counting."""
        self.count = int(state_dict["count"])


Finished = tuple[Trajectory, Episode]
"""An episode with the trajectory that it is the record of."""


def end_batch(trainer: L.Trainer, module: CarriesCoMem, learning: bool = True) -> None:
    """The whole lifecycle of every finished episode that the memory was handed since the last batch."""
    mechanisms = sorted(_mechanisms(trainer), key=lambda each: each.place)
    if not learning:
        mechanisms = [each for each in mechanisms if not each.learns]
    memory, runner = module.comem, module.runner
    finished = memory.open_episodes()
    if not finished:
        return
    assert runner is not None
    asker = Asker(runner.engine, runner.tokenizer, module.seed)
    for _, episode in runner.loop.run(_consult_all(mechanisms, asker, runner, memory, finished)):
        events: list[Event] = []
        for mechanism in mechanisms:
            made = mechanism.apply(memory, episode)
            mechanism.count += len(made)
            events += made
        for mechanism in mechanisms:
            mechanism.observe(trainer, memory, Ended(tuple(events), len(finished)))
    for mechanism in mechanisms:
        mechanism.batch_ended(asker)


async def _consult_all(
    mechanisms: Sequence[Mechanism], asker: Asker, runner: EpisodeRunner, memory: CoMem, finished: Sequence[Finished]
) -> list[Finished]:
    """Neither question depends on what another episode changes, so all are asked at once."""

    async def consult(each: Finished) -> Finished:
        for mechanism in mechanisms:
            each = await mechanism.consult(asker, runner, memory, each)
        return each

    return list(await asyncio.gather(*map(consult, finished)))


def check_mechanisms(trainer: L.Trainer, key: str) -> None:
    """Raise ``ValueError`` when the module's ``key`` is a CoMem and no callback ends its episodes."""
    if not _mechanisms(trainer):
        raise ValueError(
            f"{key} is CoMem, but trainer.callbacks has none of its mechanisms: it would learn nothing; "
            "list them as configs/train/comem.yaml does"
        )


def _mechanisms(trainer: L.Trainer) -> list[Mechanism]:
    return [each for each in trainer.callbacks if isinstance(each, Mechanism)]  # type: ignore[attr-defined]
