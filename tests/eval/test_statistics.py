"""Values worked by hand, and what must hold for any scores."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.statistics import (
    bootstrap_interval,
    mcnemar_exact,
    paired_difference_interval,
    paired_permutation,
    wilson_interval,
)

scores = st.floats(0, 1, allow_nan=False)
pairs = st.lists(st.tuples(scores, scores), min_size=1, max_size=12)
outcome_pairs = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=60)
few = settings(max_examples=25, deadline=None)


def outcomes(better: int, worse: int, ties: int = 0) -> tuple[list[int], list[int]]:
    first = [0] * better + [1] * worse + [1] * ties
    second = [1] * better + [0] * worse + [1] * ties
    return first, second


def test_wilson_of_8_in_10() -> None:
    low, high = wilson_interval(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)


def test_wilson_without_a_success_has_the_closed_form() -> None:
    z2 = 1.959963985**2
    low, high = wilson_interval(0, 150)
    assert low == pytest.approx(0.0, abs=1e-12)
    assert high == pytest.approx(z2 / (150 + z2))


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_proportion_and_mirrors(counts: tuple[int, int]) -> None:
    successes, n = counts
    low, high = wilson_interval(successes, n)
    assert 0 <= low <= successes / n + 1e-12
    assert successes / n - 1e-12 <= high <= 1
    assert wilson_interval(n - successes, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_wilson_narrows_with_items_and_widens_with_confidence() -> None:
    def width(successes: int, n: int, confidence: float) -> float:
        low, high = wilson_interval(successes, n, confidence)
        return high - low

    assert width(40, 100, 0.95) < width(4, 10, 0.95) < width(4, 10, 0.99)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 5)])
def test_wilson_refuses_impossible_counts(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes} of {n}"):
        wilson_interval(successes, n)


def test_bootstrap_agrees_with_the_normal_interval_of_many_values() -> None:
    values = [index / 999 for index in range(1000)]
    half = 1.96 * math.sqrt(1 / 12) / math.sqrt(1000)
    assert bootstrap_interval(values) == pytest.approx((0.5 - half, 0.5 + half), abs=0.002)


@few
@given(st.lists(scores, min_size=2, max_size=30), st.integers(0, 5))
def test_bootstrap_lies_within_the_values_and_repeats(values: list[float], seed: int) -> None:
    low, high = bootstrap_interval(values, seed=seed, resamples=200)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert bootstrap_interval(values, seed=seed, resamples=200) == (low, high)


def test_bootstrap_of_equal_values_has_no_width() -> None:
    assert bootstrap_interval([0.25] * 10, resamples=100) == (0.25, 0.25)


def test_bootstrap_of_one_value_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 values, got 1"):
        bootstrap_interval([0.5])


def test_bootstrap_names_a_value_that_is_no_number() -> None:
    with pytest.raises(ValueError, match=r"values\[1\] is nan"):
        bootstrap_interval([0.5, math.nan])


def test_mcnemar_of_10_against_2() -> None:
    # 2 * P(X >= 10), X ~ Binomial(12, 1/2) = 2 * (66 + 12 + 1) / 4096
    result = mcnemar_exact(*outcomes(better=10, worse=2, ties=88))
    assert (result.better, result.worse, result.n) == (10, 2, 100)
    assert result.difference == pytest.approx(0.08)
    assert result.p_value == pytest.approx(158 / 4096)


@pytest.mark.parametrize(("better", "worse", "p_value"), [(5, 0, 2 / 32), (0, 5, 2 / 32), (3, 3, 1.0), (0, 0, 1.0)])
def test_mcnemar_by_hand(better: int, worse: int, p_value: float) -> None:
    assert mcnemar_exact(*outcomes(better, worse, ties=3)).p_value == pytest.approx(p_value)


@given(outcome_pairs)
def test_mcnemar_is_symmetric_and_blind_to_ties(found: list[tuple[float, float]]) -> None:
    first, second = [pair[0] for pair in found], [pair[1] for pair in found]
    forth, back = mcnemar_exact(first, second), mcnemar_exact(second, first)
    assert forth.p_value == pytest.approx(back.p_value)
    assert (forth.better, forth.worse) == (back.worse, back.better)
    assert forth.difference == pytest.approx(-back.difference)
    assert mcnemar_exact([*first, 1], [*second, 1]).p_value == pytest.approx(forth.p_value)


def test_mcnemar_points_to_the_other_test_for_graded_scores() -> None:
    with pytest.raises(ValueError, match=r"second\[1\] is 0.5, not 0 or 1.*paired_permutation"):
        mcnemar_exact([0, 1], [1, 0.5])


@pytest.mark.parametrize("test", [mcnemar_exact, paired_permutation])
@pytest.mark.parametrize(("first", "second"), [([1, 0], [1]), ([], [])])
def test_paired_tests_need_the_same_items(test: type, first: list[float], second: list[float]) -> None:
    with pytest.raises(ValueError, match="the same items on both sides"):
        test(first, second)


def test_permutation_enumerates_few_pairs() -> None:
    # Differences 1, 2, 3, 4 tenths: of the 16 sign patterns only the observed one reaches 1.0, so 2 * 1/16.
    result = paired_permutation([0.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4])
    assert result.p_value == pytest.approx(2 / 16)
    assert result.difference == pytest.approx(0.25)
    assert (result.better, result.worse, result.n) == (4, 0, 4)


@few
@given(outcome_pairs.filter(lambda found: len(found) <= 12))
def test_permutation_of_few_binary_outcomes_is_mcnemar(found: list[tuple[float, float]]) -> None:
    first, second = [pair[0] for pair in found], [pair[1] for pair in found]
    assert paired_permutation(first, second).p_value == pytest.approx(mcnemar_exact(first, second).p_value)


@few
@given(pairs)
def test_permutation_p_is_symmetric_and_blind_to_ties(found: list[tuple[float, float]]) -> None:
    first, second = [pair[0] for pair in found], [pair[1] for pair in found]
    result = paired_permutation(first, second)
    assert 0 < result.p_value <= 1
    assert paired_permutation(second, first).p_value == pytest.approx(result.p_value)
    assert paired_permutation([*first, 0.5], [*second, 0.5]).p_value == pytest.approx(result.p_value)


def test_permutation_of_many_pairs_is_sampled_and_never_zero() -> None:
    result = paired_permutation([0.1] * 100, [0.6] * 100, resamples=999)
    assert result.p_value == pytest.approx(2 / 1000)
    assert paired_permutation([0.1] * 100, [0.6] * 100, resamples=999) == result


def test_permutation_of_equal_scores_is_1() -> None:
    assert paired_permutation([0.3, 0.7], [0.3, 0.7]).p_value == 1.0


def test_difference_interval_keeps_a_width_when_nothing_differs() -> None:
    # p = q = 1/152, so the half width is 1.96 * sqrt(2 / 152 / 152).
    half = 1.959964 * math.sqrt(2) / 152
    assert paired_difference_interval(0, 0, 150) == pytest.approx((-half, half), rel=1e-6)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))))
def test_difference_interval_is_antisymmetric_around_the_difference(counts: tuple[int, int, int]) -> None:
    n, better, spare = counts
    worse = min(spare, n - better)
    low, high = paired_difference_interval(better, worse, n)
    assert -1 <= low < high <= 1
    assert low - 1e-9 <= (better - worse) / n <= high + 1e-9
    assert paired_difference_interval(worse, better, n) == pytest.approx((-high, -low))


def test_difference_interval_refuses_more_differences_than_items() -> None:
    with pytest.raises(ValueError, match="3 better and 2 worse items do not fit into n = 4"):
        paired_difference_interval(3, 2, 4)
