"""StrategyQA's rule on cases worked by hand, where an answer is marked, and what must hold for any text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.scoring.final_answer import final_answer, marked_answer
from data.scoring.yes_no import last_yes_no, score_yes_no

ANY_TEXT = st.text(max_size=60) | st.lists(
    st.sampled_from(
        ["yes", "No", "<answer>", "</answer>", "\\boxed{", "}", "{", "FINAL ANSWER:", " ", "\n", "é", "1,000"]
    )
).map("".join)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes", True),
        ("NO.", False),
        ("Yes, but on reflection no", False),
        ("no no no yes", True),
        ("<answer>yes</answer> although some say no", True),
        ("No wonder. <answer> Yes! </answer>", True),
        ("<answer>no</answer> <answer>yes</answer>", True),
        ("<answer>first <answer>no</answer></answer>", False),
        ("<ANSWER>No</ANSWER> yes", False),
        ("the answer is \\boxed{no}, not yes", False),
        ("\\boxed{\\text{yes}} no", True),
        ("\\boxed{no} then \\boxed{yes}", True),
        ("<answer>no</answer> \\boxed{yes}", False),
        ("\\boxed{no", False),
        ("yes <answer>it depends</answer>", True),
        ("<answer></answer>", None),
        ("I know nothing of yesterday's noon", None),
        ("Non, oui, true", None),
        ("yes/no", False),
        ("", None),
    ],
)
def test_the_last_yes_or_no(text: str, answer: bool | None) -> None:
    assert last_yes_no(text) is answer


@pytest.mark.parametrize(
    ("text", "gold", "exact", "lax"),
    [
        ("Yes", True, 1, 1),
        ("Yes", False, 0, 0),
        ("No", False, 1, 1),
        ("I do not know", False, 0, 1),
        ("It is so", True, 0, 0),
        ("yes, or rather no", True, 0, 1),
        ("", False, 0, 0),
    ],
)
def test_strict_and_lax_scores(text: str, gold: bool, exact: float, lax: float) -> None:
    assert score_yes_no(text, gold) == {"exact_match": exact, "lax_match": lax}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("thinking… FINAL ANSWER: 42", "42"),
        ("FINAL ANSWER: 1\nno wait\nFinal answer : two words ", "two words"),
        ("FINAL ANSWER: 1 <answer>2</answer>", "2"),
        ("so \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("  bare  ", "bare"),
        ("FINAL ANSWER:", ""),
        ("", ""),
    ],
)
def test_where_the_answer_stands(text: str, answer: str) -> None:
    assert final_answer(text) == answer


def test_a_mark_that_is_repeated_without_end_costs_no_time() -> None:
    start = time.process_time()
    assert marked_answer("\\boxed{" * 50_000) is None
    assert marked_answer("\\boxed{" * 50_000 + "}") == ""
    assert marked_answer("<answer>" * 50_000) is None
    assert time.process_time() - start < 5


@given(ANY_TEXT, st.booleans())
def test_any_text_scores_in_the_unit_interval(text: str, gold: bool) -> None:
    scores = score_yes_no(text, gold)
    assert set(scores.values()) <= {0.0, 1.0}
    assert scores["exact_match"] <= scores["lax_match"]
    assert score_yes_no(text, True)["exact_match"] + score_yes_no(text, False)["exact_match"] <= 1


@given(ANY_TEXT)
def test_a_marked_answer_is_part_of_the_text(text: str) -> None:
    marked = marked_answer(text)
    assert marked is None or marked in text
    assert final_answer(text) in text
