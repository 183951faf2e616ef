"""GAIA's leaderboard rule on cases worked by hand, and what must hold for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.scoring.gaia import gaia_match, score_gaia

ANY_TEXT = st.text(max_size=30) | st.text("0123456789.,;-+einfa $%_", max_size=12)


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        # Numbers: units and separators of the answer go, the value counts.
        ("42", "42", True),
        ("42.0", "42", True),
        ("$1,234.50", "1234.5", True),
        ("17 %", "17", True),
        ("1,000", "1000", True),
        (" -3 ", "-3", True),
        ("1e3", "1000", True),
        ("42 km", "42", False),
        ("forty-two", "42", False),
        ("41 or 42", "42", False),
        ("", "0", False),
        # The leaderboard turns what is no number into infinity.
        ("no idea", "inf", False),
        ("nan", "nan", False),
        # Lists: in order, equal in number, element by element; punctuation inside an element counts.
        ("23, 29", "23,29", True),
        ("23; 29", "23, 29", True),
        ("29, 23", "23, 29", False),
        ("23", "23, 29", False),
        ("23, 29, 31", "23, 29", False),
        ("$5, apples", "5, Apples", True),
        ("St. Paul, Oslo", "St Paul, Oslo", False),
        ("1000", "1,000", False),
        ("1,000", "1,000", True),
        # Texts: white space, case and ASCII punctuation do not count; articles and letters do.
        ("Sea Gull", "seagull", True),
        ("right-hand!", "Right Hand", True),
        ("the seagull", "seagull", False),
        ("Cafe", "Café", False),
        ("12 March 2020", "12 march 2020.", True),
        ("March 12 2020", "12 March 2020", False),
        ("", "anything", False),
        ("...", "!", True),
    ],
)
def test_leaderboard_rule(answer: str, gold: str, right: bool) -> None:
    assert gaia_match(answer, gold) is right


def test_the_final_answer_of_a_response_is_scored() -> None:
    assert score_gaia("There are six. FINAL ANSWER: 6", "6") == {"exact_match": 1.0, "answered": 1.0}
    assert score_gaia("<answer>6</answer> FINAL ANSWER: 7", "6") == {"exact_match": 1.0, "answered": 1.0}
    assert score_gaia("I think it is 6", "6") == {"exact_match": 0.0, "answered": 1.0}
    assert score_gaia("FINAL ANSWER: ", "6") == {"exact_match": 0.0, "answered": 0.0}


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_scores_zero_or_one(answer: str, gold: str) -> None:
    assert set(score_gaia(answer, gold).values()) <= {0.0, 1.0}


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=5))
def test_numbers_and_lists_answer_themselves(numbers: list[int]) -> None:
    gold = ", ".join(map(str, numbers))
    assert gaia_match(gold.replace(" ", ""), gold)
    assert gaia_match(f"{numbers[0]:,}", str(numbers[0]))
    assert not gaia_match(f"{gold}, 0", gold)
