"""Names and the two wordings of commands."""

from __future__ import annotations

import pytest

from data.alfworld.names import Grammar, as_command, in_grammar, readable_names


def test_things_of_a_kind_are_numbered_down_through_their_ids() -> None:
    names = readable_names(["apple_bar_b", "cup_bar_a", "apple_bar_a", "sink_bar_a_bar_sinkbasin", "loc_1"])
    assert names == {
        "apple_bar_a": "apple 2",
        "apple_bar_b": "apple 1",
        "cup_bar_a": "cup 1",
        "sink_bar_a_bar_sinkbasin": "sinkbasin 1",
        "loc_1": "loc_1",
    }


@pytest.mark.parametrize(
    ("action", "grammar", "command"),
    [
        ("Put apple 1 in/on fridge 1", "move", "move apple 1 to fridge 1"),
        ("put apple 1 in fridge 1", "move", "move apple 1 to fridge 1"),
        ("put the cup 1 on shelf 2", "move", "move the cup 1 to shelf 2"),
        ("move apple 1 to fridge 1.", "put", "put apple 1 in/on fridge 1"),
        ("> move apple 1 to fridge 1", "move", "move apple 1 to fridge 1"),
        ("  GO to   fridge 1 \n", "put", "go to fridge 1"),
        ("take spoon 1 from drawer 2", "move", "take spoon 1 from drawer 2"),
        ("", "move", ""),
    ],
)
def test_either_wording_is_understood(action: str, grammar: Grammar, command: str) -> None:
    assert as_command(action, grammar) == command


def test_a_games_grammar_is_reworded_both_ways() -> None:
    moving = 'template :: "move {o} to {r}"; "You move the {o.name} to the {r.name}."'
    putting = 'template :: "put {o} in/on {r}"; "You put the {o.name} in/on the {r.name}."'
    assert in_grammar(moving, "put") == in_grammar(putting, "put") == putting
    assert in_grammar(putting, "move") == in_grammar(moving, "move") == moving
