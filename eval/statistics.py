"""How sure a number is, and whether two systems differ on the same items. Pure functions over scores.

Everything here is a thin layer over ``scipy.stats``: it fixes the choices (Wilson, percentile bootstrap, exact McNemar,
sign-flipping permutation), checks the input, and answers the degenerate cases that scipy leaves undefined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
_BATCH_VALUES = 2_000_000
"""How many floats a resampling step may hold at once (16 MB)."""


@dataclass(frozen=True)
class PairedTest:
    """The comparison of a ``second`` system with a ``first`` one on the same items.

    Attributes:
        better: items on which the second scores higher.
        worse: items on which the second scores lower.
        n: all items, ties included.
        difference: mean(second) - mean(first); positive when the second is better.
        p_value: two-sided, of the hypothesis that the two are interchangeable.
    """

    better: int
    worse: int
    n: int
    difference: float
    p_value: float


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion; stays inside [0, 1] and keeps a width at 0 and at n successes.

    Raises:
        ValueError: ``n`` is not positive or ``successes`` is outside ``0..n``.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"a proportion needs 0 <= successes <= n and n >= 1, got {successes} of {n}")
    interval = stats.binomtest(successes, n).proportion_ci(confidence_level=confidence, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_interval(
    values: Sequence[float], confidence: float = 0.95, seed: int = 0, resamples: int = 10_000
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of ``values``; a function of its arguments only.

    Values that are all equal give an interval without width: resampling cannot show a spread that the sample lacks.

    Raises:
        ValueError: fewer than two values, of which nothing can be resampled, or a value that is not finite.
    """
    sample = _finite(values, "values")
    if sample.size < 2:
        raise ValueError(f"an interval of a mean needs at least 2 values, got {sample.size}")
    result = stats.bootstrap(
        (sample,),
        np.mean,
        n_resamples=resamples,
        batch=_batch(sample.size),
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def paired_difference_interval(better: int, worse: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Bonett and Price's adjusted Wald interval of the difference of two paired proportions, cut to [-1, 1].

    With ``p = (better + 1) / (n + 2)`` and ``q = (worse + 1) / (n + 2)``:
    ``p - q ± z sqrt((p + q - (p - q)²) / (n + 2))``. Unlike a bootstrap it keeps a width when no item differs.

    Raises:
        ValueError: ``n`` is not positive, or more items differ than there are.
    """
    if n < 1 or min(better, worse) < 0 or better + worse > n:
        raise ValueError(f"{better} better and {worse} worse items do not fit into n = {n}")
    p, q = (better + 1) / (n + 2), (worse + 1) / (n + 2)
    half = float(stats.norm.ppf((1 + confidence) / 2)) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    return max(-1.0, p - q - half), min(1.0, p - q + half)


def mcnemar_exact(first: Sequence[float], second: Sequence[float]) -> PairedTest:
    """Exact McNemar test on paired 0/1 outcomes: given ``b + w`` items that differ, ``b ~ Binomial(b + w, 1/2)``.

    Raises:
        ValueError: different lengths, no items, or an outcome that is neither 0 nor 1.
    """
    before, after = _paired(first, second)
    for name, side in (("first", before), ("second", after)):
        odd = np.flatnonzero((side != 0) & (side != 1))
        if odd.size:
            raise ValueError(f"{name}[{odd[0]}] is {side[odd[0]]:g}, not 0 or 1: graded scores need paired_permutation")
    better, worse = int(np.sum(after > before)), int(np.sum(after < before))
    p_value = float(stats.binomtest(better, better + worse).pvalue) if better + worse else 1.0
    return PairedTest(better, worse, before.size, float(np.mean(after - before)), p_value)


def paired_permutation(
    first: Sequence[float], second: Sequence[float], seed: int = 0, resamples: int = 9_999
) -> PairedTest:
    """Permutation test of the mean difference of paired graded scores, swapping the two sides of each pair.

    Exact when all ``2 ** n`` swaps are at most ``resamples``, else sampled, with the observed assignment counted in,
    so that no p-value is 0.

    Raises:
        ValueError: different lengths, no items, or a score that is not finite.
    """
    before, after = _paired(first, second)
    better, worse = int(np.sum(after > before)), int(np.sum(after < before))
    # With one pair that differs both swaps are equally extreme; scipy refuses fewer than two.
    p_value = _permutation_p(before, after, seed, resamples) if better + worse > 1 else 1.0
    return PairedTest(better, worse, before.size, float(np.mean(after - before)), p_value)


def _permutation_p(before: Floats, after: Floats, seed: int, resamples: int) -> float:
    differs = before != after  # a tied pair is the same either way round: dropping it changes no permutation's sum
    result = stats.permutation_test(
        (after[differs], before[differs]),
        _sum_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=_batch(2 * int(differs.sum())),
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def _sum_difference(x: Floats, y: Floats, axis: int = -1) -> Floats:
    return np.asarray(np.sum(x - y, axis=axis))


def _paired(first: Sequence[float], second: Sequence[float]) -> tuple[Floats, Floats]:
    before, after = _finite(first, "first"), _finite(second, "second")
    if before.size != after.size or not before.size:
        raise ValueError(f"a paired test needs the same items on both sides, got {before.size} and {after.size} scores")
    return before, after


def _finite(values: Sequence[float], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {array[bad[0]]}, not a finite score")
    return array


def _batch(values_each: int) -> int:
    return max(1, _BATCH_VALUES // values_each)
