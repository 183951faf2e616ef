"""Several benchmarks as one, for training over mixed domains: a batch may hold tasks of any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from data.task import Benchmark, Score, Task


class Measured(Benchmark, Protocol):
    """A benchmark that says which of its scores is the headline: its reward in a mixture."""

    metric: str


@dataclass(frozen=True)
class Domain:
    """One benchmark of a mixture.

    Attributes:
        benchmark: where tasks and scores come from.
        weight: its share of the training tasks is its weight over the sum of all weights.
    """

    benchmark: Measured
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise ValueError(f"weight of {self.benchmark.name} is {self.weight}; it must be above 0 and finite")


class BenchmarkMixture:
    """Training tasks of all ``domains`` by weight; held-out tasks of all, each once.

    A pass over the training split is as long as all domains together. It is interleaved by weight, so that any stretch
    of it has each domain in its share; a small domain of high weight is gone through more than once and a large one of
    low weight in part. It is a plain list in a fixed order: :class:`data.datamodule.StagedLoader` draws from it and
    resumes as with any benchmark. A task's id is ``<benchmark>/<id>``, ``#2`` after it for a second time.

    Every task is scored by its own benchmark. ``accuracy`` is each one's headline score: one reward for all domains.

    Args:
        domains: benchmarks of different names.
    """

    metric = "accuracy"

    def __init__(self, domains: Sequence[Domain]) -> None:
        self._domains = {domain.benchmark.name: domain for domain in domains}
        if not domains or len(self._domains) != len(domains):
            names = ", ".join(domain.benchmark.name for domain in domains) or "none"
            raise ValueError(f"a mixture takes benchmarks of different names, at least one; got {names}")
        self.name = "+".join(self._domains)
        self.slow_scoring = any(getattr(domain.benchmark, "slow_scoring", False) for domain in domains)

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of ``split``. Raises ``ValueError`` for a split that one of the benchmarks lacks."""
        by_name = {name: _named(name, domain.benchmark.tasks(split)) for name, domain in self._domains.items()}
        if split == "train":
            return interleave(by_name, {name: domain.weight for name, domain in self._domains.items()})
        return [task for tasks in by_name.values() for task in tasks]

    def score(self, task: Task, answer: str) -> Score:
        """The scores of the task's own benchmark, and its headline score as ``accuracy``."""
        benchmark = self._domains[task.benchmark].benchmark
        score = benchmark.score(task, answer)
        return {**score, "accuracy": score[benchmark.metric]} if benchmark.metric in score else score


def interleave(tasks: Mapping[str, Sequence[Task]], weights: Mapping[str, float]) -> list[Task]:
    """As many tasks as there are in all, each domain in its share of ``weights``, its tasks round and round.

    Smooth weighted round robin: after n tasks a domain of share p has had p·n of them, give or take one.
    """
    total = sum(weights[name] for name in tasks)
    credit = dict.fromkeys(tasks, 0.0)
    taken = dict.fromkeys(tasks, 0)
    mixed = []
    for _ in range(sum(map(len, tasks.values()))):
        for name in credit:
            credit[name] += weights[name] / total
        name = max(credit, key=credit.__getitem__)
        credit[name] -= 1.0
        again, place = divmod(taken[name], len(tasks[name]))
        taken[name] += 1
        task = tasks[name][place]
        mixed.append(replace(task, id=f"{task.id}#{again + 1}") if again else task)
    return mixed


def _named(name: str, tasks: Sequence[Task]) -> list[Task]:
    return [replace(task, id=f"{name}/{task.id}") for task in tasks]
