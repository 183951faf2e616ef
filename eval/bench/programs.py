"""The work of the rollout benches: small programs, so that responses have the length of work, not of a name."""

from __future__ import annotations

from collections.abc import Sequence

from data.task import Score, Task

RESULTS = ("sum", "product", "mean", "median", "largest value", "smallest value", "number of zeros", "range")
INPUTS = ("a list of integers", "the digits of a number", "the lengths of the words of a text", "a dictionary's values")


class Programs:
    """32 problem statements. Nothing is scored: a bench counts tokens."""

    name = "programs"
    metrics = ("unscored",)

    def tasks(self, split: str) -> Sequence[Task]:
        """The statements; ``warm-up`` has four others."""
        if split == "warm-up":
            return [self._task(f"Write program number {number}.") for number in range(4)]
        return [
            self._task(f"Write a Python function `f` that returns the {result} of {given}.")
            for given in INPUTS
            for result in RESULTS
        ]

    def score(self, task: Task, answer: str) -> Score:
        return {"unscored": 0.0}

    def _task(self, statement: str) -> Task:
        return Task(statement, statement, (), self.name, "code")
