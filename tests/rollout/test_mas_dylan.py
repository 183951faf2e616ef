from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.mas.autogen import AutoGen
from rollout.mas.dylan import DyLAN
from rollout.mas.mas import MAS
from rollout.mas.playback import playback
from rollout.structure import Choices
from tests.rollout.scripted import QUESTION, TASK
from tests.rollout.transcript import Call, Reply, play, trajectory_of

ALL = [f"debater_{place}" for place in range(4)]


def kind(call: Call) -> str:
    if call.agent.name == "ranker":
        return "rank"
    if "Rate each" in call.text:
        return "rate"
    return "revise" if "Answer 1:" in call.text else "answer"


def debaters(rounds: list[dict[str, str]], rating: str = "1, 1, 1, 1", ranking: str = "3, 1") -> Reply:
    """Plays answers a round by agent; the same ratings and ranking whenever they are asked for."""
    spoken: Counter[str] = Counter()

    def reply(number: int, call: Call) -> str:
        if kind(call) in ("rate", "rank"):
            return rating if kind(call) == "rate" else ranking
        spoken[call.agent.name] += 1
        return f" {rounds[spoken[call.agent.name] - 1][call.agent.name]}\n"

    return reply


def said(*answers: str) -> dict[str, str]:
    return dict(zip(ALL, answers, strict=True))


def test_three_of_four_end_the_debate_at_once() -> None:
    mas: MAS = DyLAN()
    answer, played = play(mas, TASK, debaters([said("Lima", "lima", "Cusco", "Lima.")]))
    assert answer == "Lima"
    assert played.names() == ALL
    assert played.most_running == 4


def test_two_of_four_do_not_and_the_second_round_reads_the_first() -> None:
    first, second = said("Lima", "Lima", "Cusco", "Quito"), said("Lima", "Lima", "Lima", "Quito")
    answer, played = play(DyLAN(), TASK, debaters([first, second]))
    assert answer == "Lima"
    assert played.names() == ALL * 3
    assert [kind(call) for call in played.calls] == ["answer"] * 4 + ["revise"] * 4 + ["rate"] * 4
    assert played.most_running == 8  # a round's answers and ratings wait for nothing but the round before
    shown = "Answer 1: Lima\nAnswer 2: Lima\nAnswer 3: Cusco\nAnswer 4: Quito\n"
    assert all(shown in call.text for call in played.calls[4:])
    assert all(QUESTION in call.text for call in played.calls)


def test_the_ranker_chooses_who_goes_on() -> None:
    split, other = said("a", "b", "c", "d"), said("e", "f", "g", "h")
    answer, played = play(DyLAN(), TASK, debaters([split, other, said("x", "-", "x", "-")]))
    assert answer == "x"
    assert played.names() == ALL * 3 + ["ranker"] + ["debater_2", "debater_0"] * 2
    assert "Answer 1: e\nAnswer 2: f\nAnswer 3: g\nAnswer 4: h\n" in played.calls[12].text
    assert "Answer 4: h\n" in played.calls[13].text  # who goes on still reads everybody


def test_without_consensus_the_rankers_favourite_wins_a_tie() -> None:
    rounds = [said("a", "b", "c", "d"), said("a", "b", "c", "d"), said("left", "-", "right", "-")]
    assert play(DyLAN(), TASK, debaters(rounds, ranking="3, 1"))[0] == "right"
    assert play(DyLAN(), TASK, debaters(rounds, ranking="1, 3"))[0] == "left"


def test_a_ranker_that_is_not_understood_keeps_the_first() -> None:
    rounds = [said("a", "b", "c", "d"), said("a", "b", "c", "d"), said("x", "x", "-", "-")]
    answer, played = play(DyLAN(), TASK, debaters(rounds, ranking="I cannot say."))
    assert answer == "x"
    assert played.names()[-4:] == ["debater_0", "debater_1"] * 2


def test_no_ranker_where_all_are_kept_and_no_ratings_where_none_are_wanted() -> None:
    rounds = [said("a", "b", "c", "d")] * 3
    answer, played = play(DyLAN(keep=4, rate=False), TASK, debaters(rounds))
    assert answer == "a"
    assert played.names() == ALL * 3
    assert "rate" not in [kind(call) for call in played.calls]


def test_later_rounds_go_on_with_those_who_were_kept() -> None:
    rounds = [said("a", "b", "c", "d")] * 4
    _, played = play(DyLAN(rounds=4, rate=False), TASK, debaters(rounds, ranking="4, 2"))
    assert played.names()[8:] == ["ranker", "debater_3", "debater_1", "debater_3", "debater_1"]


def test_every_debaters_answer_is_held_to_the_choices_and_nothing_else_is() -> None:
    task = replace(TASK, choices=("a", "b", "c", "d"))
    _, played = play(DyLAN(), task, debaters([said("a", "b", "c", "d")] * 3))
    held = {kind(call): call.structure for call in played.calls}
    choices = Choices(("a", "b", "c", "d"))
    assert held == {"answer": choices, "revise": choices, "rate": None, "rank": None}


def test_the_team_is_a_list_of_roles() -> None:
    agents = DyLAN(team=("critic", "critic", "expert")).agents("qa")
    assert [agent.name for agent in agents] == ["debater_0", "debater_1", "debater_2", "ranker"]
    assert [agent.role for agent in agents] == ["critic", "critic", "expert", "ranker"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"team": ("expert", "critc")}, r"the role dylan\.critc; did you mean dylan\.critic\?"),
        ({"team": ("expert",)}, r"mas\.init_args\.team has 1 debaters"),
        ({"rounds": 0}, "rounds is 0"),
        ({"keep": 0}, "keep 0"),
        ({"keep": 5}, "keep 5"),
    ],
)
def test_settings_that_make_no_debate_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DyLAN(**settings)  # type: ignore[arg-type]


# ------------------------------------------------------------------ importance from an episode


def test_importance_is_read_from_the_steps() -> None:
    """Everyone rates (1, 1, 2, 4): I_0 = (1, 1, 2, 4)/8. In the second round 0, 1 and 2 are right, a third each."""
    rounds = [said("a", "b", "c", "d"), said("a", "a", "a", "d")]
    mas = DyLAN()
    answer, played = play(mas, TASK, debaters(rounds, rating="1, 1, 2, 4"))
    expected = {"debater_0": 1 / 8 + 1 / 3, "debater_1": 1 / 8 + 1 / 3, "debater_2": 2 / 8 + 1 / 3, "debater_3": 4 / 8}
    assert mas.importance(trajectory_of(mas, TASK, answer, played)) == pytest.approx(expected)


ANSWERS = st.lists(st.lists(st.sampled_from("abc"), min_size=4, max_size=4), min_size=3, max_size=3)


@given(ANSWERS, st.sampled_from(["3, 1", "2 4", ""]), st.sampled_from(["1, 5, 2, 2", "5", "no"]), st.integers(0, 99))
@settings(deadline=None)
def test_an_episode_says_all_about_its_debate(answers: list[list[str]], ranking: str, rating: str, seed: int) -> None:
    mas = DyLAN()
    rounds = [said(*line) for line in answers]
    answer, played = play(mas, TASK, debaters(rounds, rating, ranking), seed)
    trajectory = trajectory_of(mas, TASK, answer, played)
    debate = asyncio.run(mas.debate(TASK, playback(trajectory)))
    assert debate.answer == answer
    assert sum(mas.importance(trajectory).values()) == pytest.approx(len(debate.rounds))


def test_an_episode_of_something_else_is_refused() -> None:
    mas = DyLAN()
    answer, played = play(mas, TASK, debaters([said("a", "b", "c", "d")] * 3))
    whole = trajectory_of(mas, TASK, answer, played)
    with pytest.raises(ValueError, match=r"task t0, member 0: debater_0 should speak next, .* dylan ends there"):
        mas.importance(replace(whole, steps=whole.steps[:4]))
    other, heard = play(AutoGen(), TASK, lambda number, call: "Lima")
    of_autogen = trajectory_of(AutoGen(), TASK, other, heard)
    with pytest.raises(ValueError, match="debater_0 should speak next, the episode of autogen has assistant"):
        mas.importance(of_autogen)


def test_an_episode_without_ratings_has_no_importance() -> None:
    mas = DyLAN(rate=False)
    answer, played = play(mas, TASK, debaters([said("a", "b", "c", "d")] * 3))
    with pytest.raises(ValueError, match="without ratings"):
        mas.importance(trajectory_of(mas, TASK, answer, played))
