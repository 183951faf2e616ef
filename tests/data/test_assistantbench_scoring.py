"""AssistantBench's rule on cases worked by hand, type by type, and what must hold for any text."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.scoring.assistantbench import assistantbench_accuracy, number_score, parse_number, score_assistantbench

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
).map(json.dumps)
ANY_TEXT = (
    st.text(max_size=30)
    | st.text("0123456789.,-$%{}[]'\": anthe\n", max_size=20)
    | JSON
    | st.lists(JSON, max_size=3).map("\n".join)
    | JSON.map(lambda text: text.replace('"', "'"))
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12.0),
        ("-0.5", -0.5),
        ("$1,200", 1200.0),
        ("1,010,000.5", 1010000.5),
        ("3,5", 3.5),
        ("45%", 45.0),
        ("900 sqft", 900.0),
        ("12 square kilometers", 12.0),
        ("12 km", None),
        ("1,2,3", None),
        ("", None),
        ("two", None),
    ],
)
def test_what_reads_as_a_number(text: str, number: float | None) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        (10, 10, 1),
        (0, 0, 1),
        (11, 10, 1 - math.log(1.1)),
        (10, 11, 1 - math.log(1.1)),
        (20, 10, 1 - math.log(2)),
        (30, 10, 0),  # ln 3 > 1
        (-10, -10, 1),
        (-10, 10, 0),
        (0, 5, 0),  # 1e-4 against 5
        (0, 2e-4, 1 - math.log(2)),
        (math.inf, 10, 0),
        (math.nan, 10, 0),
    ],
)
def test_number_rule(answer: float, gold: float, score: float) -> None:
    assert number_score(answer, gold) == pytest.approx(score)


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        # Numbers.
        ("55", "55", 1),
        ("$55.00", "55", 1),
        ("1,200", "1200", 1),
        ("about 55", "55", 0),
        ("55\n56", "55", 0),
        ("[55]", "55", 1),
        # Texts: sets of words, best is 1. {crumb, co} against {crumb}: 2·1/(2+1).
        ("Crumb & Co", "Crumb & Co", 1),
        ("the crumb co.", "Crumb & Co", 1),
        ("Crumb", "Crumb & Co", 2 / 3),
        ("Holm", "Crumb & Co", 0),
        ("left-hand side", "left hand side", 1),
        ("Zürich", "Zurich", 0),
        # The number gate: 7 of 8 words shared do not help without the number.
        ("the ferry leaves the harbour pier at 7", "the ferry leaves the harbour pier at 8", 0),
        ("gym 9", "Gym 9.0", 1),
        ("9 gyms", "gyms", 2 / 3),
        # Lists: best alignment over the longer list.
        ("The Yard\nRiverside Gym", "Riverside Gym\nThe Yard", 1),
        ('["The Yard", "Riverside Gym"]', "Riverside Gym\nThe Yard", 1),
        ("Riverside Gym", "Riverside Gym\nThe Yard", 1 / 2),
        ("Riverside Gym\nThe Yard\nHilltop", "Riverside Gym\nThe Yard", 2 / 3),
        ("\n Riverside Gym \n\n", "Riverside Gym\nThe Yard", 1 / 2),
        ("[]", "Riverside Gym", 0),
        # Objects: F1 of precision and recall over keys.
        ('{"name": "Forest Round", "km": 5}', '{"name": "Forest Round", "km": 5.0}', 1),
        ('{"name": "Forest Round", "km": "5 "}', "{'name': 'Forest Round', 'km': 5}", 1),
        ('{"name": "Forest Round"}', '{"name": "Forest Round", "km": 5}', 2 / 3),  # precision 1, recall 1/2
        ('{"name": "Forest", "km": 5}', '{"name": "Forest Round", "km": 5}', (2 / 3 + 1) / 2),
        ('{"name": 5}', '{"name": "Forest Round"}', 0),
        ('{"km": 10}', '{"km": 5}', 1 - math.log(2)),
        ("Forest Round, 5 km", '{"name": "Forest Round", "km": 5}', 0),
        ('{"a": 2}\n{"a": 1}', '{"a": 1}\n{"a": 2}', 1),
        ('[{"a": 2}, {"a": 1}]', '{"a": 1}\n{"a": 2}', 1),
        ('{"a": 1}', '{"a": 1}\n{"b": "x"}', 1 / 2),
        ("{}", "{}", 0),
        # Nothing.
        ("", "55", 0),
        (" \n ", "55", 0),
        ("55", "", 0),
    ],
)
def test_rule_by_type(answer: str, gold: str, score: float) -> None:
    assert assistantbench_accuracy(answer, gold) == pytest.approx(score)


def test_scores_of_a_response() -> None:
    right = {"accuracy": 1.0, "exact_match": 1.0, "answered": 1.0}
    assert score_assistantbench("It is <answer>13</answer> dollars", "13") == right
    half = score_assistantbench("FINAL ANSWER: Riverside Gym", "Riverside Gym\nThe Yard")
    assert half == {"accuracy": 0.5, "exact_match": 0.0, "answered": 1.0}
    assert score_assistantbench("FINAL ANSWER: ", "13") == {"accuracy": 0.0, "exact_match": 0.0, "answered": 0.0}


@pytest.mark.parametrize("gold", ["55", "Crumb & Co", "a\nb", '{"a": ["b"]}', "{'a': 'b'}"])
@pytest.mark.parametrize("form", ["%s", '{"a": %s}', '[{"a": %s}]'])
def test_an_answer_of_any_depth_is_wrong_and_no_exception(form: str, gold: str) -> None:
    for depth in (*range(900, 1000, 3), 100_000):
        assert assistantbench_accuracy(form % ("[" * depth + "]" * depth), gold) == 0.0


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_scores_in_the_unit_interval(answer: str, gold: str) -> None:
    scores = score_assistantbench(answer, gold)
    assert all(0.0 <= score <= 1.0 for score in scores.values())
    assert scores["answered"] >= scores["accuracy"] >= scores["exact_match"]


@given(st.lists(st.sampled_from(["Riverside Gym", "The Yard", "Hilltop", "9 gyms"]), min_size=1, unique=True))
def test_the_order_of_a_list_does_not_count(names: list[str]) -> None:
    gold = "\n".join(names)
    assert assistantbench_accuracy("\n".join(reversed(names)), gold) == pytest.approx(1.0)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_the_number_rule_is_symmetric(answer: float, gold: float) -> None:
    assert number_score(answer, gold) == pytest.approx(number_score(gold, answer))
    assert number_score(gold, gold) == 1.0
