"""Sentences of the four games and back: an agent's wording is read kindly, and told why when it cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.pddl.generator import generate, load_domain
from data.pddl.grounding import ground
from data.pddl.phrases import GAMES, Game, UnreadableActionError, load_phrases
from data.pddl.syntax import Problem

PROBLEMS: dict[Game, Problem] = {game: next(generate(game, "train", 0)).problem for game in GAMES}


@pytest.mark.parametrize("game", GAMES)
def test_every_fact_and_action_of_a_domain_has_a_sentence(game: Game) -> None:
    domain, phrases = load_domain(game), load_phrases(game)
    assert set(domain.predicates) <= set(phrases.facts)
    assert {action.name for action in domain.actions} == set(phrases.actions)


@pytest.mark.parametrize("game", GAMES)
def test_every_action_reads_back_as_itself(game: Game) -> None:
    phrases, problem = load_phrases(game), PROBLEMS[game]
    for named in ground(problem).actions:
        assert phrases.read(phrases.action(named[0], named[1:]), problem) == named


@pytest.mark.parametrize("game", GAMES)
def test_every_action_reads_back_from_pddl(game: Game) -> None:
    for named in ground(PROBLEMS[game]).actions:
        assert load_phrases(game).read(f"({' '.join(named)})", PROBLEMS[game]) == named


@pytest.mark.parametrize(
    ("game", "said", "read"),
    [
        ("blockworld", "Action: pick-up b1", ("pickup", "b1")),
        ("blockworld", "I will PUT DOWN the block b2 now.", ("putdown", "b2")),
        ("blockworld", "unstack b2 from on top of b1", ("unstack", "b2", "b1")),
        ("gripper", "pick ball1, in rooma, using the left gripper", ("pick", "ball1", "rooma", "left")),
        ("gripper", "Pick up ball2 with right in roomb", ("pick", "ball2", "roomb", "right")),
        ("barman", "grasp shot1 with the left hand", ("grasp", "left", "shot1")),
        ("barman", "clean-shaker shaker1 with left and right", ("clean-shaker", "left", "right", "shaker1")),
        ("tyreworld", "jack up the hub the-hub1", ("jack-up", "the-hub1")),
        ("tyreworld", "put w1 away in the boot... put-away w1 boot", ("put-away", "w1", "boot")),
        ("tyreworld", "fetch the jack from boot", ("fetch", "jack", "boot")),
    ],
)
def test_other_wordings_are_read(game: Game, said: str, read: tuple[str, ...]) -> None:
    assert load_phrases(game).read(said, PROBLEMS[game]) == read


@pytest.mark.parametrize(
    ("game", "said", "why"),
    [
        ("blockworld", "", "No action is named. The actions are: pick up, put down, stack, unstack."),
        ("blockworld", "stack b1", r"Stack lacks block: of 2 names 1 were found \(b1\)."),
        ("blockworld", "pick up b99", "Pick up lacks block: of 1 names 0 were found."),
        ("gripper", "move to roomb", r"Move lacks room: of 2 names 1 were found \(roomb\)."),
        ("barman", "shaker1", "No action is named"),  # "shake" is not a word here
    ],
)
def test_what_cannot_be_read_is_told_why(game: Game, said: str, why: str) -> None:
    with pytest.raises(UnreadableActionError, match=why):
        load_phrases(game).read(said, PROBLEMS[game])


@settings(deadline=None, max_examples=50)
@given(game=st.sampled_from(GAMES), said=st.text(max_size=60))
def test_any_text_is_read_or_refused(game: Game, said: str) -> None:
    try:
        name, *arguments = load_phrases(game).read(said, PROBLEMS[game])
    except UnreadableActionError:
        return
    assert set(arguments) <= set(PROBLEMS[game].objects)
    assert name in load_phrases(game).actions
