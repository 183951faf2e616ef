"""Answer the held-out items with each memory, greedily, with one set of agents and one bank."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from data.task import Task
from data.trajectory import Trajectory
from eval.rows import Outcome, outcome_of
from lightning_modules.latentmem import LatentMem
from memory.memory import Memory
from memory.text import TextMemory
from rollout.failure import check_any_finished
from rollout.runner import EpisodeRunner, Phase

CHECKPOINTS: Mapping[str, tuple[str, ...]] = {
    "latentmem_untrained": ("untrained.ckpt",),
    "latentmem_sft": ("sft.ckpt",),
    "latentmem": ("lmpo.ckpt", "last.ckpt"),
}
"""The checkpoint behind each row, the first that exists."""


@dataclass(frozen=True)
class Answers:
    """All outcomes by memory, and the seconds of wall clock that each took (retrieval and composition included)."""

    outcomes: dict[str, list[Outcome]]
    seconds: dict[str, float]


def load_bank(module: LatentMem, run: Path) -> None:
    """The bank as training left it, for every row alike."""
    module.bank.load_state_dict(_read(run / "checkpoints" / "last.ckpt")["experience_bank"])


def checkpoint_of(memory: str, run: Path) -> Path | None:
    """The weights behind a row, or ``None`` for a memory without any.

    Raises ``ValueError`` for an unknown memory and ``FileNotFoundError`` for a checkpoint that is not there.
    """
    if memory in ("none", "text"):
        return None
    if memory not in CHECKPOINTS:
        raise ValueError(f"unknown memory {memory!r}; there are none, text, {', '.join(CHECKPOINTS)}")
    for name in CHECKPOINTS[memory]:
        if (run / "checkpoints" / name).is_file():
            return run / "checkpoints" / name
    names = " or ".join(CHECKPOINTS[memory])
    raise FileNotFoundError(f"{run / 'checkpoints'} has no {names}: the run did not get there; leave {memory!r} out")


def answer_all(
    module: LatentMem,
    runner: EpisodeRunner,
    tasks: Sequence[Task],
    memories: Sequence[str],
    run: Path,
    update_every: int = 0,
) -> Answers:
    """One greedy episode a task and memory.

    Args:
        update_every: 0 freezes the bank: nothing that is answered here enters it. Else the answers of every so many
            tasks enter it before the next are asked, under the run's write gate; each row begins with the run's bank.
    """
    outcomes: dict[str, list[Outcome]] = {}
    seconds: dict[str, float] = {}
    runner.run(tasks[:1], 1, Phase("eval/warm-up", 0, 0, temperature=0.0), None)  # the engine's start is not a row's
    for name in memories:
        memory = memory_of(name, module, run)
        started = time.perf_counter()
        if update_every:
            load_bank(module, run)
        trajectories: list[Trajectory] = []
        for at in range(0, len(tasks), update_every or len(tasks)):
            batch = tasks[at : at + (update_every or len(tasks))]
            with torch.no_grad():
                trajectories += runner.run(batch, 1, Phase(f"eval/{name}", 0, 0, temperature=0.0), memory)
            if update_every:
                module.remember(trajectories[at:])
        seconds[name] = time.perf_counter() - started
        check_any_finished(trajectories)  # else a table of zeros would say that the memory is bad
        outcomes[name] = [outcome_of(trajectory) for trajectory in trajectories]
        print(f"{name}: {len(tasks)} items in {seconds[name]:.1f} s", flush=True)
        failures = [outcome.failure for outcome in outcomes[name] if outcome.failure]
        if failures:
            print(f"warning: {len(failures)} of them broke off and score 0, the first: {failures[0]}", flush=True)
    return Answers(outcomes, seconds)


def memory_of(name: str, module: LatentMem, run: Path) -> Memory | None:
    """Build the memory of a row; for LatentMem's rows this puts that row's weights into ``module``."""
    if name == "none":
        return None
    if name == "text":
        return TextMemory(module.bank, k=module.bank_settings.k)
    path = checkpoint_of(name, run)
    assert path is not None
    module.load_state_dict(_read(path)["state_dict"], strict=False)
    module.eval()
    return module.memory()


def _read(path: Path) -> dict[str, dict[str, object]]:
    checkpoint: dict[str, dict[str, object]] = torch.load(path, map_location="cpu", weights_only=True)
    return checkpoint
