from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.mas.camel import CAMEL, DONE
from rollout.mas.mas import MAS
from rollout.structure import Choices
from tests.rollout.scripted import QUESTION, TASK
from tests.rollout.transcript import Call, play


def numbered(number: int, call: Call) -> str:
    return f" {call.agent.name} {number} \n"


def test_specify_then_two_turns_then_sum_up() -> None:
    mas: MAS = CAMEL()
    answer, played = play(mas, TASK, numbered)
    assert answer == "summariser 5"
    assert played.names() == ["task_specifier", "user", "assistant", "user", "assistant", "summariser"]
    assert played.most_running == 1
    assert tuple(dict.fromkeys(call.agent for call in played.calls)) == mas.agents("qa")


def test_everybody_reads_the_question_and_all_that_was_said() -> None:
    _, played = play(CAMEL(), TASK, numbered)
    said = ["Asked: task_specifier 0"] + [
        f"{label}: {name} {number}"
        for number, (label, name) in enumerate([("User", "user"), ("Assistant", "assistant")] * 2, start=1)
    ]
    for number, call in enumerate(played.calls):
        assert QUESTION in call.text
        assert [line for line in said if line in call.text] == said[:number]
        assert call.messages[0].content == call.agent.profile


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_turns_are_the_users_instructions(turns: int) -> None:
    _, played = play(CAMEL(turns), TASK, numbered)
    assert played.names().count("user") == played.names().count("assistant") == turns


def test_a_user_who_is_content_ends_the_debate() -> None:
    answer, played = play(
        CAMEL(turns=4), TASK, lambda number, call: f"{DONE}." if number == 3 else numbered(number, call)
    )
    assert played.names() == ["task_specifier", "user", "assistant", "user", "summariser"]
    assert DONE not in played.calls[-1].text
    assert answer == "summariser 4"


def test_but_not_before_the_assistant_has_spoken() -> None:
    _, played = play(CAMEL(), TASK, lambda number, call: DONE)
    assert played.names() == ["task_specifier", "user", "assistant", "user", "summariser"]


def test_only_the_summary_is_held_to_the_choices() -> None:
    _, played = play(CAMEL(), replace(TASK, choices=("Lima", "Cusco")), numbered)
    assert [call.structure for call in played.calls] == [None] * 5 + [Choices(("Lima", "Cusco"))]


def test_no_turn_is_no_role_play() -> None:
    with pytest.raises(ValueError, match=r"mas\.init_args\.turns is 0"):
        CAMEL(turns=0)
