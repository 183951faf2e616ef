"""From answers to the table: one row a memory, and paired comparisons between memories on the same items."""

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
        score: of the answer; ``exact_match``, ``token_f1`` and ``lax_match`` are what a row needs.
        accepted: the accepted answers, for reading errors later.
        prompt_tokens: over all agents, without the latent positions.
        latent_tokens: latent positions over all agents.
    """

    task_id: str
    answer: str
    score: Score
    question: str = ""
    accepted: tuple[str, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latent_tokens: int = 0


@dataclass(frozen=True)
class Row:
    """One memory's line of the table. Scores are means in [0, 1], intervals of 95 %, costs are means over questions.

    Attributes:
        tokens: positions a question: prompt, completion and latents together.
        seconds: wall clock a question (``seconds_total / n``), episodes running concurrently.
        seconds_total: wall clock of the whole row.
    """

    memory: str
    n: int
    exact_match: float
    exact_match_ci: Interval
    token_f1: float
    token_f1_ci: Interval
    lax_match: float
    tokens: float
    prompt_tokens: float
    completion_tokens: float
    latent_tokens: float
    seconds: float
    seconds_total: float


@dataclass(frozen=True)
class Comparison:
    """``second`` against ``first`` in one metric.

    ``difference_ci`` is the 95 % interval of ``test.difference``: Bonett and Price's for exact match, a bootstrap over
    items for graded scores.
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
    )


def rows_from_outcomes(
    outcomes: Mapping[str, Sequence[Outcome]], seconds: Mapping[str, float], seed: int = 0
) -> list[Row]:
    """One row a memory, in the order of ``outcomes``.

    Args:
        outcomes: memory name to its answers.
        seconds: memory name to the wall clock of answering all of them.
        seed: of the bootstrap.

    Raises:
        ValueError: a memory without answers or wall clock, a task answered twice, or a metric that is missing.
    """
    missing = sorted(set(outcomes) - set(seconds))
    if missing:
        raise ValueError(f"no wall clock for {', '.join(missing)}: give seconds for every memory in outcomes")
    return [_row(memory, found, seconds[memory], seed) for memory, found in outcomes.items()]


def compare_memories(
    outcomes: Mapping[str, Sequence[Outcome]], pairs: Iterable[tuple[str, str]] = PAIRS, seed: int = 0
) -> list[Comparison]:
    """Paired tests for those ``pairs`` of which both sides were evaluated: exact match, then token F1.

    p-values are not adjusted for the number of comparisons.

    Raises:
        ValueError: two memories that answered different tasks.
    """
    found = []
    for first, second in pairs:
        if first in outcomes and second in outcomes:
            found += [_compare(outcomes, first, second, metric, seed) for metric in ("exact_match", "token_f1")]
    return found


def _row(memory: str, outcomes: Sequence[Outcome], seconds: float, seed: int) -> Row:
    if not outcomes:
        raise ValueError(f"memory {memory} has no answers to report")
    exact, f1 = _scores(memory, outcomes, "exact_match"), _scores(memory, outcomes, "token_f1")
    prompt = fmean(outcome.prompt_tokens for outcome in outcomes)
    completion = fmean(outcome.completion_tokens for outcome in outcomes)
    latent = fmean(outcome.latent_tokens for outcome in outcomes)
    return Row(
        memory=memory,
        n=len(outcomes),
        exact_match=fmean(exact.values()),
        exact_match_ci=wilson_interval(sum(value == 1 for value in exact.values()), len(exact)),
        token_f1=fmean(f1.values()),
        token_f1_ci=_mean_interval(list(f1.values()), seed, widest=(0.0, 1.0)),
        lax_match=fmean(_scores(memory, outcomes, "lax_match").values()),
        tokens=prompt + completion + latent,
        prompt_tokens=prompt,
        completion_tokens=completion,
        latent_tokens=latent,
        seconds=seconds / len(outcomes),
        seconds_total=seconds,
    )


def _compare(outcomes: Mapping[str, Sequence[Outcome]], first: str, second: str, metric: str, seed: int) -> Comparison:
    one, two = (_scores(memory, outcomes[memory], metric) for memory in (first, second))
    if one.keys() != two.keys():
        odd = sorted(one.keys() ^ two.keys())[0]
        raise ValueError(f"{first} and {second} answered different tasks ({odd} for one): evaluate both on the same")
    before, after = list(one.values()), [two[task_id] for task_id in one]
    test, method, interval = _paired_test(before, after, binary=metric == "exact_match", seed=seed)
    return Comparison(first, second, metric, method, test, interval)


def _paired_test(
    before: Sequence[float], after: Sequence[float], binary: bool, seed: int
) -> tuple[PairedTest, str, Interval]:
    if binary:
        test = mcnemar_exact(before, after)
        return test, "exact McNemar", paired_difference_interval(test.better, test.worse, test.n)
    differences = [b - a for a, b in zip(before, after, strict=True)]
    interval = _mean_interval(differences, seed, widest=(-1.0, 1.0))
    return paired_permutation(before, after, seed), "paired permutation", interval


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
