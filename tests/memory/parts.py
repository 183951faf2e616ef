"""Small real parts for tests of memory: a deterministic encoder and hand-made trajectories."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from data.task import Task
from data.trajectory import Cost, Step, Trajectory
from memory.encoder import Vectors


class BagOfWords:
    """Every word adds 1 to one of ``dim`` places; the last place keeps an empty text from being zero."""

    def __init__(self, name: str = "bag-of-words", dim: int = 32) -> None:
        self.name = name
        self.dim = dim
        self.calls: list[tuple[str, ...]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(tuple(texts))
        counts = np.zeros((len(texts), self.dim), dtype=np.float32)
        counts[:, -1] = 0.5
        for row, text in enumerate(texts):
            for word in text.lower().split():
                counts[row, hashlib.blake2b(word.encode()).digest()[0] % (self.dim - 1)] += 1
        return np.asarray(counts / np.linalg.norm(counts, axis=1, keepdims=True), dtype=np.float32)


def a_task(question: str, task_id: str = "t0") -> Task:
    return Task(id=task_id, question=question, answers=("Paris",), benchmark="sample", metadata={"relation": "capital"})


def a_trajectory(question: str, output: str = "Paris", member: int = 0) -> Trajectory:
    step = Step(
        agent="assistant",
        role="assistant",
        prompt=f"You answer.\n\n{question}",
        output=output,
        prefix_ids=(1, 2, 3),
        suffix_ids=(4,),
        output_ids=(5, 6),
        logprobs=(-0.5, -0.25),
        finish_reason="stop",
        entry_ids=("e0",),
        cost=Cost(4, 2, 0, None, 0.1, None, None),
    )
    return Trajectory(a_task(question), "autogen", member, (step,), output, {"exact_match": 1.0})
