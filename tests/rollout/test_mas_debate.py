from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.mas.debate import (
    NEUTRAL,
    Debate,
    Round,
    consensus,
    importance,
    most_frequent,
    read_ranking,
    read_ratings,
    same_answer,
)

# ------------------------------------------------------------------ agreement


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Lima", " lima.\n", True),
        ("New  York", "new york", True),
        ("'Emma'", '"Emma"', True),
        ("Lima", "Lima, Peru", False),
        ("go to desk 1", "go to desk 2", False),
        ("def f():\n    return 1", "def f():\n  return 1\n", True),
        ("def f():\n    return 1", "def f():\n    return 2", False),
    ],
)
def test_what_counts_as_the_same_answer(one: str, other: str, same: bool) -> None:
    assert (same_answer(one) == same_answer(other)) is same


@pytest.mark.parametrize(
    ("n", "needed"),
    [(2, 2), (3, 3), (4, 3), (5, 4), (6, 5), (7, 5), (8, 6), (9, 7)],
)
def test_consensus_needs_more_than_two_thirds(n: int, needed: int) -> None:
    """floor(2n/3) + 1: of four debaters three, of three all."""
    assert consensus(["yes"] * needed + [f"no {place}" for place in range(n - needed)])
    assert not consensus(["yes"] * (needed - 1) + [f"no {place}" for place in range(n - needed + 1)])


def test_the_most_frequent_reply_keeps_its_first_wording() -> None:
    assert most_frequent(["Cusco", "lima.", "Lima"]) == ("lima.", 2)
    assert most_frequent(["Cusco", "Lima"]) == ("Cusco", 1)


@given(st.permutations(["a", "a", "a", "b", "c"]))
@settings(deadline=None)
def test_a_majority_does_not_depend_on_who_said_it(replies: list[str]) -> None:
    assert most_frequent(replies) == ("a", 3)


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("reply", "ratings"),
    [
        ("5, 1, 3", (5, 1, 3)),
        ("[4 2 2]", (4, 2, 2)),
        ("9, 0, 3, 1", (5, 1, 3)),
        ("Answer 1: 5, Answer 2: 2, Answer 3: 4", (5, 2, 4)),
        ("1. 5\n2. 2\n3. 4.", (5, 2, 4)),
        ("4/5, 2/5, 3/5", (4, 2, 3)),
        ("1" * 5000, (NEUTRAL,) * 3),
        ("4", (4, NEUTRAL, NEUTRAL)),
        ("All are good.", (NEUTRAL,) * 3),
        ("", (NEUTRAL,) * 3),
    ],
)
def test_ratings_are_read_leniently(reply: str, ratings: tuple[int, ...]) -> None:
    assert read_ratings(reply, 3) == ratings


@pytest.mark.parametrize(
    ("reply", "ranking"),
    [
        ("3, 1", (2, 0, 1, 3)),
        ("Best is 2.", (1, 0, 2, 3)),
        ("4 4 1 1", (3, 0, 1, 2)),
        ("0, 7, 2", (1, 0, 2, 3)),
        ("9" * 5000, (0, 1, 2, 3)),
        ("none", (0, 1, 2, 3)),
    ],
)
def test_a_ranking_is_read_leniently(reply: str, ranking: tuple[int, ...]) -> None:
    assert read_ranking(reply, 4) == ranking


@given(st.text(), st.integers(1, 6))
@settings(deadline=None)
def test_any_text_is_ratings_and_a_ranking(reply: str, count: int) -> None:
    assert all(1 <= rating <= 5 for rating in read_ratings(reply, count))
    assert len(read_ratings(reply, count)) == count
    assert sorted(read_ranking(reply, count)) == list(range(count))


# ------------------------------------------------------------------ importance


def test_importance_worked_by_hand() -> None:
    """Three debaters, two rounds. In the second, 0 and 2 give the answer and 1 does not: I_1 = (1/2, 0, 1/2).

    0 rates (1, 1, 2), 2 rates (0.2, 0.2, 0.6) after division by 5; 1 contributes nothing, so its ratings do not count:
    I_0 = 1/2 (1/4, 1/4, 1/2) + 1/2 (1/5, 1/5, 3/5) = (0.225, 0.225, 0.55).
    """
    debate = Debate(
        (
            Round({0: "a", 1: "b", 2: "c"}),
            Round({0: "c", 1: "b", 2: "C."}, {0: (1, 1, 2), 1: (5, 5, 5), 2: (1, 1, 3)}),
        ),
        "c",
    )
    assert importance(debate) == pytest.approx({0: 0.725, 1: 0.225, 2: 1.05})


def test_importance_after_the_ranker_let_two_go_on() -> None:
    """Debaters 2 and 1 speak in the last round; the ratings they give are in the order of the round before."""
    debate = Debate(
        (
            Round({0: "a", 1: "b", 2: "c"}),
            Round({0: "a", 1: "b", 2: "c"}, {0: (1, 1, 1), 1: (1, 1, 2), 2: (1, 3, 1)}),
            Round({2: "b", 1: "b"}, {2: (1, 2, 1), 1: (1, 3, 1)}),
        ),
        "b",
    )
    # I_2 = {2: 1/2, 1: 1/2}; I_1 = 1/2 (1/4, 2/4, 1/4) + 1/2 (1/5, 3/5, 1/5) = (9/40, 22/40, 9/40)
    # I_0 = 9/40 (1/3, 1/3, 1/3) + 22/40 (1/4, 1/4, 2/4) + 9/40 (1/5, 3/5, 1/5) = (103, 139, 158)/400
    first, second, third = (103 / 400, 139 / 400, 158 / 400), (9 / 40, 22 / 40, 9 / 40), (0, 0.5, 0.5)
    expected = {place: first[place] + second[place] + third[place] for place in range(3)}
    assert importance(debate) == pytest.approx(expected)


def test_a_debate_of_one_round_is_shared_by_those_who_gave_the_answer() -> None:
    debate = Debate((Round({0: "a", 1: "b", 2: "A", 3: "a."}),), "a")
    assert importance(debate) == pytest.approx({0: 1 / 3, 1: 0.0, 2: 1 / 3, 3: 1 / 3})


def test_without_ratings_there_is_no_importance() -> None:
    with pytest.raises(ValueError, match=r"rounds without ratings.*mas\.init_args\.rate: true"):
        importance(Debate((Round({0: "a"}), Round({0: "a"})), "a"))


RATED = st.lists(st.tuples(*[st.integers(1, 5)] * 3), min_size=3, max_size=3)


@given(st.lists(RATED, max_size=4), st.lists(st.sampled_from("ab"), min_size=3, max_size=3))
@settings(deadline=None)
def test_every_round_has_one_to_give(ratings: list[list[tuple[int, ...]]], last: list[str]) -> None:
    said = dict(enumerate(last))
    rounds = [Round(said), *(Round(said, dict(enumerate(given))) for given in ratings)]
    scores = importance(Debate(tuple(rounds), last[0]))
    assert sum(scores.values()) == pytest.approx(len(rounds))
    assert all(score >= 0 for score in scores.values())


@given(RATED, st.integers(2, 5))
@settings(deadline=None)
def test_only_proportions_of_ratings_count(ratings: list[tuple[int, ...]], factor: int) -> None:
    said = {0: "a", 1: "a", 2: "b"}
    scaled = {rater: tuple(factor * rating for rating in given) for rater, given in enumerate(ratings)}
    one = importance(Debate((Round(said), Round(said, dict(enumerate(ratings)))), "a"))
    assert one == pytest.approx(importance(Debate((Round(said), Round(said, scaled)), "a")))
