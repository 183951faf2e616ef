"""From answers to the table: one row a memory, and paired comparisons between memories on the same items.

The metrics are the benchmark's own, the headline one first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from data.task import Score
from data.trajectory import Trajectory
from eval.statistics import (
    PairedTest,
    bootstrap_interval,
    mcnemar_exact,
    paired_difference_interval,
    paired_permutation,
    wilson_interval,
)
from rollout.failure import broke_off

MEMORIES = ("none", "text", "latentmem_untrained", "latentmem_sft", "latentmem")
"""What is compared, in the order of the table."""

PAIRS = (
    ("none", "text"),
    ("none", "latentmem_untrained"),
    ("none", "latentmem_sft"),
    ("none", "latentmem"),
    ("text", "latentmem"),
    ("latentmem_sft", "latentmem"),
)
"""Which memories are tested against each other. The last one is LMPO's own share."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Outcome:
    """One item answered with one memory.

    Attributes:
        score: of the answer, in every metric of the benchmark.
        accepted: the accepted answers, for reading errors later.
        prompt_tokens: over all agents, without the latent positions.
        latent_tokens: latent positions over all agents.
        failure: why the episode broke off, ``None`` for one with scores of its own.
    """

    task_id: str
    answer: str
    score: Score
    question: str = ""
    accepted: tuple[str, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latent_tokens: int = 0
    failure: str | None = None


@dataclass(frozen=True)
class Row:
    """One memory's line of the table. Scores are means in [0, 1], intervals of 95 %, costs are means over questions.

    Attributes:
        scores: mean of each metric, the headline one first.
        intervals: of each mean: Wilson's where all scores are 0 or 1, a bootstrap over items otherwise.
        tokens: positions a question: prompt, completion and latents together.
        seconds: wall clock a question (``seconds_total / n``), episodes running concurrently.
        seconds_total: wall clock of the whole row.
        failed: episodes that broke off; they are among ``n`` and score 0.
    """

    memory: str
    n: int
    scores: Mapping[str, float]
    intervals: Mapping[str, Interval]
    tokens: float
    prompt_tokens: float
    completion_tokens: float
    latent_tokens: float
    seconds: float
    seconds_total: float
    failed: int = 0

    @property
    def headline(self) -> str:
        """The metric that the row is about."""
        return next(iter(self.scores))


@dataclass(frozen=True)
class Comparison:
    """``second`` against ``first`` in one metric.

    ``difference_ci`` is the 95 % interval of ``test.difference``: Bonett and Price's where all scores are 0 or 1, a
    bootstrap over items for graded ones.
    """

    first: str
    second: str
    metric: str
    method: str
    test: PairedTest
    difference_ci: Interval


def outcome_of(trajectory: Trajectory) -> Outcome:
    """The outcome of one evaluated episode, costs summed over its agent calls."""
    costs = [step.cost for step in trajectory.steps]
    return Outcome(
        task_id=trajectory.task.id,
        answer=trajectory.answer,
        score=dict(trajectory.score),
        question=trajectory.task.question,
        accepted=trajectory.task.answers,
        prompt_tokens=sum(cost.prompt_tokens for cost in costs),
        completion_tokens=sum(cost.completion_tokens for cost in costs),
        latent_tokens=sum(cost.latent_tokens for cost in costs),
        failure=trajectory.failure if broke_off(trajectory) else None,
    )


def rows_from_outcomes(
    outcomes: Mapping[str, Sequence[Outcome]], seconds: Mapping[str, float], metrics: Sequence[str], seed: int = 0
) -> list[Row]:
    """One row a memory, in the order of ``outcomes``.

    Args:
        outcomes: memory name to its answers.
        seconds: memory name to the wall clock of answering all of them.
        metrics: of the benchmark, the headline one first.
        seed: of the bootstrap.

    Raises:
        ValueError: a memory without answers or wall clock, a task answered twice, or a metric that is missing.
    """
    missing = sorted(set(outcomes) - set(seconds))
    if missing:
        raise ValueError(f"no wall clock for {', '.join(missing)}: give seconds for every memory in outcomes")
    empty = [memory for memory, found in outcomes.items() if not found]
    if empty:
        raise ValueError(f"memory {empty[0]} has no answers to report")
    graded = _graded(outcomes, metrics)
    return [_row(memory, found, seconds[memory], metrics, graded, seed) for memory, found in outcomes.items()]


def compare_memories(
    outcomes: Mapping[str, Sequence[Outcome]],
    metrics: Sequence[str],
    pairs: Iterable[tuple[str, str]] = PAIRS,
    seed: int = 0,
) -> list[Comparison]:
    """Paired tests for those ``pairs`` of which both sides were evaluated: in the headline metric and in graded ones.

    p-values are not adjusted for the number of comparisons.

    Raises:
        ValueError: two memories that answered different tasks.
    """
    graded = _graded(outcomes, metrics)
    tested = [metric for metric in metrics if metric == metrics[0] or metric in graded]
    return [
        _compare(outcomes, first, second, metric, metric in graded, seed)
        for first, second in pairs
        if first in outcomes and second in outcomes
        for metric in tested
    ]


def shared_metrics(outcomes: Mapping[str, Sequence[Outcome]], metrics: Sequence[str]) -> tuple[str, ...]:
    """Those of ``metrics`` that every answer was scored in: of a mixture of benchmarks, what they have in common.

    Raises ``ValueError`` when that is nothing.
    """
    scores = [outcome.score for found in outcomes.values() for outcome in found]
    shared = tuple(metric for metric in metrics if all(metric in score for score in scores))
    if not shared:
        raise ValueError(f"no metric of {', '.join(metrics)} scores every item: evaluate one benchmark at a time")
    return shared


def _graded(outcomes: Mapping[str, Sequence[Outcome]], metrics: Sequence[str]) -> frozenset[str]:
    """Metrics in which some answer of some memory scored neither 0 nor 1."""
    scores = [outcome.score for found in outcomes.values() for outcome in found]
    return frozenset(metric for metric in metrics if any(score.get(metric, 0) not in (0, 1) for score in scores))


def _row(
    memory: str,
    outcomes: Sequence[Outcome],
    seconds: float,
    metrics: Sequence[str],
    graded: frozenset[str],
    seed: int,
) -> Row:
    values = {metric: list(_scores(memory, outcomes, metric).values()) for metric in metrics}
    prompt = fmean(outcome.prompt_tokens for outcome in outcomes)
    completion = fmean(outcome.completion_tokens for outcome in outcomes)
    latent = fmean(outcome.latent_tokens for outcome in outcomes)
    return Row(
        memory=memory,
        n=len(outcomes),
        scores={metric: fmean(found) for metric, found in values.items()},
        intervals={
            metric: _mean_interval(found, seed, widest=(0.0, 1.0))
            if metric in graded
            else wilson_interval(int(sum(found)), len(found))
            for metric, found in values.items()
        },
        tokens=prompt + completion + latent,
        prompt_tokens=prompt,
        completion_tokens=completion,
        latent_tokens=latent,
        seconds=seconds / len(outcomes),
        seconds_total=seconds,
        failed=sum(outcome.failure is not None for outcome in outcomes),
    )


def _compare(
    outcomes: Mapping[str, Sequence[Outcome]], first: str, second: str, metric: str, graded: bool, seed: int
) -> Comparison:
    one, two = (_scores(memory, outcomes[memory], metric) for memory in (first, second))
    if one.keys() != two.keys():
        odd = sorted(one.keys() ^ two.keys())[0]
        raise ValueError(f"{first} and {second} answered different tasks ({odd} for one): evaluate both on the same")
    before, after = list(one.values()), [two[task_id] for task_id in one]
    if graded:
        differences = [b - a for a, b in zip(before, after, strict=True)]
        interval = _mean_interval(differences, seed, widest=(-1.0, 1.0))
        return Comparison(
            first, second, metric, "paired permutation", paired_permutation(before, after, seed), interval
        )
    test = mcnemar_exact(before, after)
    interval = paired_difference_interval(test.better, test.worse, test.n)
    return Comparison(first, second, metric, "exact McNemar", test, interval)


def _scores(memory: str, outcomes: Sequence[Outcome], metric: str) -> dict[str, float]:
    scores: dict[str, float] = {}
    for outcome in outcomes:
        if outcome.task_id in scores:
            raise ValueError(f"memory {memory} answered task {outcome.task_id} twice: one answer a task makes a row")
        if metric not in outcome.score:
            known = ", ".join(sorted(outcome.score)) or "nothing"
            raise ValueError(f"memory {memory}, task {outcome.task_id}: no score {metric}, the benchmark gave {known}")
        scores[outcome.task_id] = float(outcome.score[metric])
    return scores


def _mean_interval(values: Sequence[float], seed: int, widest: Interval) -> Interval:
    """A single value says nothing of the spread, so everything that is possible is the honest interval."""
    return bootstrap_interval(values, seed=seed) if len(values) > 1 else widest
