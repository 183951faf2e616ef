"""The two nouns of every benchmark: a task, and what an answer to it scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Score = Mapping[str, float]
"""Metric name to value in [0, 1], for example ``{"exact_match": 1.0, "token_f1": 1.0}``."""


@dataclass(frozen=True)
class Task:
    """One item of a benchmark.

    Attributes:
        id: unique within the benchmark and split; seeds are derived from it.
        question: what the agents are asked.
        answers: every accepted form of the answer; the first one is the canonical form.
        benchmark: name of the benchmark it comes from.
        domain: which prompts the agents use (``qa``, ``code``, ``planning``, ``web``).
        choices: the only answers there are, where the answer is to be held to a list (constrained actions).
        metadata: whatever else the source says, JSON values only.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    benchmark: str
    domain: str = "qa"
    choices: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)


class Benchmark(Protocol):
    """A named set of tasks with an official scoring rule.

    One whose scores take long (they run code, say) has an attribute ``slow_scoring = True``: they are then taken on
    threads of their own.
    """

    name: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """The keys of a score, the headline one first; a class attribute does."""
        ...

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of ``split`` in a fixed order. Raises ``ValueError`` for an unknown split."""
        ...

    def score(self, task: Task, answer: str) -> Score:
        """Scores of ``answer``; pure, never raises for a badly formed answer."""
        ...
