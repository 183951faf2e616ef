"""Answers become rows and comparisons, and nothing that does not belong together is compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from data.task import Task
from data.trajectory import Cost, Step, Trajectory
from eval.rows import MEMORIES, PAIRS, Outcome, compare_memories, outcome_of, rows_from_outcomes, shared_metrics

METRICS = ("exact_match", "token_f1", "lax_match")


def outcome(task_id: str, exact: float, f1: float = 0.5, lax: float = 1.0, tokens: int = 0) -> Outcome:
    score = {"exact_match": exact, "token_f1": f1, "lax_match": lax}
    return Outcome(task_id, "Paris", score, prompt_tokens=tokens, completion_tokens=5, latent_tokens=16)


def answers(exact: list[int], f1: float = 0.5) -> list[Outcome]:
    return [outcome(f"t{index}", value, f1) for index, value in enumerate(exact)]


def step(prompt: int, completion: int, latent: int) -> Step:
    cost = Cost(prompt, completion, latent, None, 0.1, None, None)
    return Step("assistant", "solver", "p", "o", (1,), (), (2,), (0.0,), "stop", (), cost)


def test_row_by_hand() -> None:
    found = [outcome("a", 1, f1=1.0, lax=1, tokens=100), outcome("b", 0, f1=0.5, lax=0, tokens=110)]
    (row,) = rows_from_outcomes({"latentmem": found}, {"latentmem": 3.0}, METRICS)
    assert (row.memory, row.n, row.headline) == ("latentmem", 2, "exact_match")
    assert row.scores == {"exact_match": 0.5, "token_f1": 0.75, "lax_match": 0.5}
    assert (row.prompt_tokens, row.completion_tokens, row.latent_tokens, row.tokens) == (105, 5, 16, 126)
    assert (row.seconds, row.seconds_total) == (1.5, 3.0)
    assert row.intervals["exact_match"] == pytest.approx((0.0945, 0.9055), abs=1e-4)  # Wilson of 1 in 2


def test_rows_keep_the_order_of_the_outcomes() -> None:
    rows = rows_from_outcomes({"text": answers([1, 0]), "none": answers([0, 0])}, {"none": 1, "text": 2}, METRICS)
    assert [(row.memory, row.seconds_total) for row in rows] == [("text", 2), ("none", 1)]


def test_one_answer_leaves_everything_possible() -> None:
    (row,) = rows_from_outcomes({"none": answers([1])}, {"none": 1.0}, METRICS)
    assert row.intervals["token_f1"] == (0.0, 1.0)
    comparison = compare_memories({"none": answers([0], f1=0.1), "text": answers([1], f1=0.9)}, METRICS)[1]
    assert (comparison.metric, comparison.difference_ci) == ("token_f1", (-1.0, 1.0))


@pytest.mark.parametrize(
    ("found", "seconds", "message"),
    [
        ({"none": []}, {"none": 1.0}, "memory none has no answers"),
        ({"none": answers([1])}, {}, "no wall clock for none"),
        ({"none": [outcome("a", 1), outcome("a", 0)]}, {"none": 1.0}, "memory none answered task a twice"),
        ({"none": [Outcome("a", "", {"f": 1})]}, {"none": 1.0}, "memory none, task a: no score exact_match.* gave f"),
    ],
)
def test_bad_outcomes_are_named(found: dict[str, list[Outcome]], seconds: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows_from_outcomes(found, seconds, METRICS)


def test_comparison_pairs_by_task_not_by_place() -> None:
    before = {"none": answers([0] * 10 + [1] * 2), "latentmem": answers([1] * 10 + [0] * 2)}
    shuffled = {**before, "latentmem": before["latentmem"][::-1]}
    exact, f1 = compare_memories(before, METRICS)
    assert (exact.first, exact.second, exact.metric, exact.method) == (
        "none",
        "latentmem",
        "exact_match",
        "exact McNemar",
    )
    assert (exact.test.better, exact.test.worse) == (10, 2)
    assert exact.test.p_value == pytest.approx(158 / 4096)
    assert (f1.metric, f1.method, f1.test.p_value) == ("token_f1", "paired permutation", 1.0)
    assert compare_memories(shuffled, METRICS)[0] == exact


def test_only_pairs_with_both_sides_are_compared() -> None:
    found = {"latentmem_sft": answers([0, 1]), "latentmem": answers([1, 1]), "mine": answers([1, 0])}
    assert {(item.first, item.second) for item in compare_memories(found, METRICS)} == {("latentmem_sft", "latentmem")}
    assert {(item.first, item.second) for item in compare_memories(found, METRICS, [("latentmem", "mine")])} == {
        ("latentmem", "mine")
    }


def test_different_tasks_are_not_compared() -> None:
    with pytest.raises(ValueError, match=r"none and text answered different tasks \(t2 for one\)"):
        compare_memories({"none": answers([0, 1]), "text": answers([0, 1, 1])}, METRICS)


def test_pairs_name_known_memories_and_show_what_lmpo_adds() -> None:
    assert {name for pair in PAIRS for name in pair} == set(MEMORIES)
    assert PAIRS[-1] == ("latentmem_sft", "latentmem")


def test_outcome_of_an_episode_sums_its_calls() -> None:
    task = Task("q1", "Capital of France?", ("Paris", "paris"), "sample")
    episode = Trajectory(task, "autogen", 0, (step(100, 7, 16), step(50, 3, 16)), "Paris", {"exact_match": 1.0})
    assert outcome_of(episode) == Outcome(
        "q1", "Paris", {"exact_match": 1.0}, "Capital of France?", ("Paris", "paris"), 150, 10, 32
    )


def passed(*values: float) -> list[Outcome]:
    return [Outcome(f"t{index}", "code", {"passed": value}) for index, value in enumerate(values)]


def test_a_benchmark_of_one_metric_has_rows_and_tests_in_it() -> None:
    found = {"none": passed(0, 0, 1), "latentmem": passed(1, 1, 1)}
    none, trained = rows_from_outcomes(found, {"none": 1.0, "latentmem": 1.0}, ("passed",))
    assert (dict(none.scores), dict(trained.scores)) == ({"passed": 1 / 3}, {"passed": 1.0})
    (comparison,) = compare_memories(found, ("passed",))
    assert (comparison.metric, comparison.method, comparison.test.better) == ("passed", "exact McNemar", 2)


def test_one_graded_answer_makes_a_metric_graded_for_every_memory() -> None:
    """AssistantBench's accuracy may be anything in between: Wilson's interval and McNemar's test are not for it."""
    found = {"none": passed(0, 1), "latentmem": passed(0.25, 1)}
    rows = rows_from_outcomes(found, {"none": 1.0, "latentmem": 1.0}, ("passed",))
    assert rows[0].intervals["passed"] == (0.0, 1.0)
    assert compare_memories(found, ("passed",))[0].method == "paired permutation"


def test_a_mixture_is_reported_in_what_its_benchmarks_share() -> None:
    found = {
        "none": [
            Outcome("a", "", {"accuracy": 1.0, "exact_match": 1.0}),
            Outcome("b", "", {"accuracy": 0.0, "passed": 0.0}),
        ]
    }
    assert shared_metrics(found, ("accuracy", "exact_match", "passed")) == ("accuracy",)


def test_metrics_that_no_item_shares_are_refused() -> None:
    found = {"none": [Outcome("a", "", {"exact_match": 1.0}), Outcome("b", "", {"passed": 0.0})]}
    with pytest.raises(ValueError, match="no metric of exact_match, passed scores every item"):
        shared_metrics(found, ("exact_match", "passed"))


def test_a_row_counts_the_episodes_that_broke_off_but_not_those_that_ran_out_of_steps() -> None:
    task, zero = Task("q1", "Capital of France?", ("Paris",), "sample"), {"passed": 0.0}
    reasons = (None, "engine: the prompt is too long", "step limit: not done after 30 actions")
    found = [
        outcome_of(Trajectory(replace(task, id=str(place)), "autogen", 0, (), "", zero, failure))
        for place, failure in enumerate(reasons)
    ]
    assert [outcome.failure for outcome in found] == [None, reasons[1], None]
    (row,) = rows_from_outcomes({"none": found}, {"none": 1.0}, ("passed",))
    assert (row.n, row.failed) == (3, 1)
