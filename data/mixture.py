"""Several benchmarks as one, for training over mixed domains: a batch may hold tasks of any of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from data.leakage import overlap
from data.task import Benchmark, Score, Task


@dataclass(frozen=True)
class Domain:
    """One benchmark of a mixture.

    Attributes:
        benchmark: where tasks and scores come from.
        weight: its share of the training tasks is its weight over the sum of all weights.
    """

    benchmark: Benchmark
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise ValueError(f"weight of {self.benchmark.name} is {self.weight}; it must be above 0 and finite")


class BenchmarkMixture:
    """Training tasks of all ``domains`` by weight; held-out tasks of all, each once.

    A pass over the training split is as long as all domains together. It is interleaved by weight, so that any stretch
    of it has each domain in its share; a small domain of high weight is gone through more than once and a large one of
    low weight in part. It is a plain list in a fixed order: :class:`data.datamodule.StagedLoader` draws from it and
    resumes as with any benchmark. A task's id is ``<benchmark>/<id>``, ``#2`` after it for a second time. A training
    question that the test of any domain asks is left out, with a warning that counts them.

    Every task is scored by its own benchmark. ``accuracy`` is each one's headline score: one reward for all domains.

    Args:
        domains: benchmarks of different names.
    """

    def __init__(self, domains: Sequence[Domain]) -> None:
        self._domains = {domain.benchmark.name: domain for domain in domains}
        if not domains or len(self._domains) != len(domains):
            names = ", ".join(domain.benchmark.name for domain in domains) or "none"
            raise ValueError(f"a mixture takes benchmarks of different names, at least one; got {names}")
        self.name = "+".join(self._domains)
        own = (metric for domain in domains for metric in domain.benchmark.metrics)
        self.metrics = ("accuracy", *dict.fromkeys(metric for metric in own if metric != "accuracy"))
        self.slow_scoring = any(getattr(domain.benchmark, "slow_scoring", False) for domain in domains)

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of ``split``. Raises ``ValueError`` for a split that one of the benchmarks lacks."""
        by_name = {name: _named(name, domain.benchmark.tasks(split)) for name, domain in self._domains.items()}
        if split == "train":
            weights = {name: domain.weight for name, domain in self._domains.items()}
            return interleave(self._without_held_out(by_name), weights)
        return [task for tasks in by_name.values() for task in tasks]

    def _without_held_out(self, train: Mapping[str, Sequence[Task]]) -> Mapping[str, Sequence[Task]]:
        held_out = [task for domain in self._domains.values() for task in _test_of(domain.benchmark)]
        gone = {task.id for tasks in train.values() for task in overlap(tasks, held_out)}
        if gone:
            some = ", ".join(sorted(gone)[:3])
            warnings.warn(
                f"{self.name}: {len(gone)} training items ask a test question of the mixture and are left out ({some})",
                stacklevel=3,
            )
        kept = {name: [task for task in tasks if task.id not in gone] for name, tasks in train.items()}
        if empty := [name for name, tasks in kept.items() if not tasks]:
            raise ValueError(f"{self.name}: every training item of {empty[0]} is a test question of the mixture")
        return kept

    def score(self, task: Task, answer: str) -> Score:
        """The scores of the task's own benchmark, and its headline score as ``accuracy``."""
        benchmark = self._domains[task.benchmark].benchmark
        score = benchmark.score(task, answer)
        headline = benchmark.metrics[0]
        return {**score, "accuracy": score[headline]} if headline in score else score


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


def _test_of(benchmark: Benchmark) -> Sequence[Task]:
    try:
        return benchmark.tasks("test")
    except FileNotFoundError:
        return ()  # a copy without it: nothing of it can be tested on, so nothing leaks


def _named(name: str, tasks: Sequence[Task]) -> list[Task]:
    return [replace(task, id=f"{name}/{task.id}") for task in tasks]
