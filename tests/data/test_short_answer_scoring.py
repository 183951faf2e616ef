"""The short-answer rules on cases worked by hand, and what must hold for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.scoring.short_answer import (
    exact_match,
    extract_answer,
    lax_match,
    normalise_answer,
    normalise_question,
    score_short_answer,
    token_f1,
)

ANY_TEXT = st.text(max_size=40) | st.text("aT .,<>/'é\u0301answer", max_size=40)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  The   Cat\n", "cat"),
        ("An apple, a day", "apple day"),
        ("theatre", "theatre"),
        ("U.S.A.", "usa"),
        ("Jean-Paul O'Neil", "jeanpaul oneil"),
        ("T.H.E.", ""),
        ("$100", "100"),
        ("¿Qué?", "qué"),
        ("“The Prince”…", "prince"),
        ("L’Aquila", "laquila"),
        ("Brasi\u0301lia", "bras\u00edlia"),
        ("32 °F", "32 °f"),
        ("?!", ""),
        ("", ""),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    assert normalise_answer(text) == normal


def test_a_question_keeps_its_articles() -> None:
    assert normalise_question("Who  wrote “The Trial”?") == "who wrote the trial"
    assert normalise_question("who wrote the trial") == normalise_question("Who wrote The Trial ?!")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("  Paris \n", "Paris"),
        ("It is <answer> Paris </answer>.", "Paris"),
        ("<answer>Rome</answer> no, <answer>Paris</answer>", "Paris"),
        ("<answer>one <answer>two</answer></answer>", "two"),
        ("<answer>Paris</answer> and <answer>then", "Paris"),
        ("<answer>Paris", "<answer>Paris"),
        ("<ANSWER>Paris</Answer>", "Paris"),
        ("<answer>New\nYork</answer>", "New\nYork"),
        ("I give up <answer></answer>", ""),
        ("", ""),
    ],
)
def test_answer_is_taken_from_the_last_pair_of_tags(text: str, answer: str) -> None:
    assert extract_answer(text) == answer


@pytest.mark.parametrize(
    ("answer", "aliases", "exact", "f1", "lax"),
    [
        ("Paris", ["Paris"], 1, 1, 1),
        ("the paris!", ["Paris"], 1, 1, 1),
        ("usa", ["United States", "U.S.A."], 1, 1, 1),
        # 6 words, articles gone: "capital of france is paris" has 5, one of them shared: 2·1/(5+1).
        ("The capital of France is Paris.", ["Paris"], 0, 1 / 3, 1),
        # Best alias: "william shakespeare" shares 2 of 3 and 2: 4/5; "shakespeare" only 2/4.
        ("by William Shakespeare", ["Shakespeare", "William Shakespeare"], 0, 0.8, 1),
        ("York", ["New York"], 0, 2 / 3, 0),
        # Words count with multiplicity: "paris paris" against "paris" shares one: 2·1/(2+1).
        ("Paris Paris", ["Paris"], 0, 2 / 3, 1),
        ("Australia", ["Au"], 0, 0, 1),
        ("São Paulo", ["Sao Paulo"], 0, 0.5, 0),
        ("Rome", ["Paris"], 0, 0, 0),
        ("", ["Paris"], 0, 0, 0),
        ("...", ["Paris"], 0, 0, 0),
        ("", [""], 0, 0, 0),
        ("the", ["The", "!"], 0, 0, 0),
        ("Paris", [], 0, 0, 0),
    ],
)
def test_scores_worked_by_hand(answer: str, aliases: list[str], exact: float, f1: float, lax: float) -> None:
    assert exact_match(answer, aliases) == exact
    assert token_f1(answer, aliases) == pytest.approx(f1)
    assert lax_match(answer, aliases) == lax


def test_scoring_reads_the_tagged_answer() -> None:
    text = "Paris, or maybe <answer>Lyon</answer>"
    assert score_short_answer(text, ["Paris"]) == {"exact_match": 0.0, "token_f1": 0.0, "lax_match": 0.0}
    assert score_short_answer(text, ["Lyon"]) == {"exact_match": 1.0, "token_f1": 1.0, "lax_match": 1.0}


@given(ANY_TEXT)
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise_answer(normalise_answer(text)) == normalise_answer(text)
    assert normalise_question(normalise_question(text)) == normalise_question(text)


@given(ANY_TEXT, st.lists(ANY_TEXT, max_size=4))
def test_scores_lie_in_the_unit_interval_and_exact_is_the_strictest(answer: str, aliases: list[str]) -> None:
    scores = score_short_answer(answer, aliases)
    assert set(scores) == {"exact_match", "token_f1", "lax_match"}
    assert all(0.0 <= score <= 1.0 for score in scores.values())
    if scores["exact_match"] == 1.0:
        assert scores["token_f1"] == scores["lax_match"] == 1.0


@given(ANY_TEXT.filter(normalise_answer), st.lists(ANY_TEXT, max_size=3))
def test_an_alias_answers_itself_and_more_aliases_never_hurt(alias: str, others: list[str]) -> None:
    assert exact_match(alias, [*others, alias]) == 1.0
    assert token_f1(alias, [*others, alias]) == 1.0
    assert token_f1(alias, others) <= 1.0


@given(st.text("ab <>/answer", max_size=60))
def test_extracting_twice_changes_nothing_without_stray_tags(text: str) -> None:
    once = extract_answer(f"<answer>{text.replace('<', '').replace('>', '')}</answer>")
    assert extract_answer(once) == once
