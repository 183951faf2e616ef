"""A game as an agent meets it: observations, scores and the price of a mistake, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.pddl.benchmark import PDDLGames
from data.pddl.game import PDDLGame
from data.pddl.generator import load_domain
from data.pddl.grounding import ground
from data.pddl.phrases import load_phrases
from data.pddl.syntax import parse_problem

# b1 on b2, b3 beside them; wanted: b1 on b3, b2 on b1.
BLOCKS = """
(define (problem blocks) (:domain blockworld) (:objects b1 b2 b3 - block)
  (:init (on b1 b2) (on-table b2) (on-table b3) (clear b1) (clear b3) (arm-empty))
  (:goal (and (on b1 b3) (on b2 b1))))
"""
TYRE = """
(define (problem tyre) (:domain tyreworld)
  (:objects boot - container the-hub1 - hub nuts1 - nut w1 - wheel)
  (:init (closed boot) (unlocked boot) (in wrench boot) (in jack boot) (in pump boot)
         (on w1 the-hub1) (on-ground the-hub1) (fastened the-hub1) (tight nuts1 the-hub1))
  (:goal (loose nuts1 the-hub1)))
"""


GAMES = PDDLGames()


def blocks(max_steps: int = 30) -> PDDLGame:
    problem = ground(parse_problem(BLOCKS, load_domain("blockworld"), "blocks"))
    return PDDLGame(problem, load_phrases("blockworld"), max_steps)


def test_the_first_observation_says_everything_and_lists_what_is_possible() -> None:
    seen = blocks().reset()
    assert seen.text == (
        "b2 is on the table. b3 is on the table. b1 is on b2. b1 is clear. b3 is clear. The arm is empty."
    )
    assert seen.admissible == ("Pick up b3.", "Unstack b1 from b2.")
    assert not seen.done


def test_a_won_game_is_over_and_scores_full_marks() -> None:
    game = blocks()
    game.reset()
    assert game.score() == {"success": 0.0, "progress": 0.0, "grounding": 0.0}
    seen = [game.step(action) for action in ("unstack b1 b2", "stack b1 on b3", "pick up b2", "stack b2 on b1")]
    assert [each.done for each in seen] == [False, False, False, True]
    assert seen[-1].text.endswith("The goal is reached.")
    assert seen[-1].admissible == ()
    assert game.score() == {"success": 1.0, "progress": 1.0, "grounding": 1.0}


def test_progress_is_a_running_maximum() -> None:
    game = blocks()
    game.reset()
    for action in ("unstack b1 b2", "stack b1 on b3"):
        game.step(action)
    assert game.score()["progress"] == 0.5
    game.step("unstack b1 from b3")
    assert game.score() == {"success": 0.0, "progress": 0.5, "grounding": 1.0}


def test_mistakes_cost_a_step_change_nothing_and_score_zero() -> None:
    game = blocks(max_steps=4)
    before = game.reset()
    unreadable = game.step("juggle the blocks")
    assert unreadable.text.startswith("The action cannot be read and changes nothing. No action is named.")
    assert game.step("pick up").text.endswith("Pick up lacks block: of 1 names 0 were found.")
    impossible = game.step("pick up b2")
    assert impossible.text == "The action is not possible now and changes nothing. It needs: b2 is clear."
    assert unreadable.admissible == impossible.admissible == before.admissible
    last = game.step("pick up b3")
    assert last.done
    assert game.score() == {"success": 0.0, "progress": 0.0, "grounding": 0.25}


def test_looking_and_checking_are_valid_actions_that_change_nothing() -> None:
    game = blocks()
    first = game.reset()
    assert game.step("Look around.").text == first.text
    assert game.step("Check valid actions").text == "You can: Pick up b3. Unstack b1 from b2."
    assert game.score()["grounding"] == 1.0


def test_an_action_without_effect_counts_as_invalid() -> None:
    text = (
        "(define (problem g) (:objects a b - room ball1 - ball left - gripper)"
        "(:init (at-robby a) (at ball1 a) (free left)) (:goal (at ball1 b)))"
    )
    game = PDDLGame(ground(parse_problem(text, load_domain("gripper"), "g")), load_phrases("gripper"))
    assert "Move from a to a." not in game.reset().admissible
    assert game.step("move from a to a").text == "The action changes nothing."
    assert game.score()["grounding"] == 0.0


def test_some_games_tell_only_what_changed() -> None:
    game = PDDLGame(ground(parse_problem(TYRE, load_domain("tyreworld"), "tyre")), load_phrases("tyreworld"))
    assert game.reset().text.startswith("boot is unlocked. boot is closed. ")
    assert game.step("open boot").text == "boot is open. No longer: boot is closed."
    assert game.step("fetch wrench from boot").text == "You have wrench. No longer: wrench is in boot."
    assert game.step("loosen nuts1 on the-hub1").done


def test_a_game_can_begin_again_and_must_be_begun() -> None:
    game = blocks(max_steps=1)
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        game.step("look around")
    first = game.reset()
    game.step("pick up b3")
    with pytest.raises(RuntimeError, match="the episode is over"):
        game.step("put down b3")
    assert game.reset() == first
    assert game.score()["grounding"] == 0.0
    game.close()
    game.close()
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        game.step("look around")


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_an_erratic_agent_breaks_nothing(data: st.DataObject) -> None:
    """Any text, and any possible action: scores stay in [0, 1], progress never falls, 30 steps are the end."""
    task = data.draw(st.sampled_from(GAMES.tasks("validation")))
    game = GAMES.environment(task)
    seen, progress = game.reset(), 0.0
    for _ in range(30):
        assert not seen.done
        seen = game.step(data.draw(st.sampled_from(seen.admissible) | st.text(max_size=40)))
        score = game.score()
        assert all(0.0 <= value <= 1.0 for value in score.values())
        assert score["progress"] >= progress
        progress = score["progress"]
        if score["success"]:
            break
    assert seen.done
