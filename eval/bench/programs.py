"""What the agents of the rollout benches work on: small programs, so that responses have the length of work."""

from __future__ import annotations

from collections.abc import Sequence

from data.task import Score, Task

RESULTS = ("sum", "product", "mean", "median", "largest value", "smallest value", "number of zeros", "range")
INPUTS = ("a list of integers", "the digits of a number", "the lengths of the words of a text", "a dictionary's values")
TASKS = tuple(
    Task(
        f"{result} of {given}",
        f"Write a Python function `f` that returns the {result} of {given}.",
        (),
        "bench",
        "code",
    )
    for given in INPUTS
    for result in RESULTS
)
"""Problem statements for up to 32 episodes."""


class Programs:
    """The benchmark of :data:`TASKS`. Only speed is measured: every answer scores."""

    name = "programs"
    metrics = ("answered",)

    def tasks(self, split: str) -> Sequence[Task]:
        """All of them, whatever the split."""
        return TASKS

    def score(self, task: Task, answer: str) -> Score:
        """1."""
        return {"answered": 1.0}
