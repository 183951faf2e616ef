"""The JSONL trace: one line for every agent call, appended as batches finish."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from data.trajectory import Trajectory


class TraceWriter:
    """Appends to one file. Token ids stay out: they are the trainer's, and would be most of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, phase: str, step: int, trajectories: Sequence[Trajectory]) -> None:
        """One line a call, in episode order; each batch is written at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            json.dumps(record, ensure_ascii=False) for t in trajectories for record in call_records(phase, step, t)
        ]
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))


def call_records(phase: str, step: int, trajectory: Trajectory) -> Iterator[dict[str, object]]:
    """The trace records of one trajectory; ``score`` stands on its last call."""
    for call, taken in enumerate(trajectory.steps):
        last = call == len(trajectory.steps) - 1
        yield {
            "phase": phase,
            "step": step,
            "task": trajectory.task.id,
            "mas": trajectory.mas,
            "member": trajectory.member,
            "call": call,
            "agent": taken.agent,
            "role": taken.role,
            "prompt": taken.prompt,
            "output": taken.output,
            "finish_reason": taken.finish_reason,
            "entry_ids": list(taken.entry_ids),
            **asdict(taken.cost),
            "score": dict(trajectory.score) if last else None,
        }
