from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rollout.mas.magentic_one.thread import LEFT_OUT, Thread


def test_the_newest_turns_that_fit_are_shown_whole() -> None:
    thread = Thread("q", characters=7, said=["aaa", "bbb", "cccc"])
    assert thread.shown() == f"{LEFT_OUT}\n\nbbb\n\ncccc"


def test_the_newest_turn_is_always_shown_cut_if_need_be() -> None:
    assert Thread("q", characters=4, said=["a", "bbbbbb"]).shown() == f"{LEFT_OUT}\n\nbbbb"
    assert Thread("q", characters=4).shown() == ""


@given(st.lists(st.text("ab", min_size=1, max_size=9), min_size=1), st.integers(1, 30))
def test_what_is_shown_is_the_end_of_what_was_said_within_the_limit(said: list[str], characters: int) -> None:
    shown = Thread("q", characters, said=said).shown().removeprefix(f"{LEFT_OUT}\n\n").split("\n\n")
    assert sum(map(len, shown)) <= characters
    assert said[-1].startswith(shown[-1])
    assert shown[:-1] == said[len(said) - len(shown) : -1]


def test_a_reset_keeps_facts_and_plan_only() -> None:
    thread = Thread("q", 9, "facts", "plan", ["said"], {1})
    thread.reset()
    assert thread == Thread("q", 9, "facts", "plan")
