"""Bit masks: which actions there are, what one does, and how far a goal is, worked out by hand on a small game."""

from __future__ import annotations

import pytest

from data.pddl.generator import load_domain
from data.pddl.grounding import GroundProblem, ground
from data.pddl.planner import plan, relaxed_plan
from data.pddl.syntax import parse_domain, parse_problem

# b1 on b2, b3 beside them; wanted: b1 on b3.
BLOCKS = """
(define (problem blocks) (:domain blockworld) (:objects b1 b2 b3 - block)
  (:init (on b1 b2) (on-table b2) (on-table b3) (clear b1) (clear b3) (arm-empty))
  (:goal (and (on b1 b3) (on-table b2))))
"""
ROADS = """
(define (domain roads)
  (:types town)
  (:predicates (at ?t - town) (road ?a ?b - town))
  (:action go :parameters (?a ?b - town) :precondition (and (road ?a ?b) (at ?a)) :effect (and (at ?b) (not (at ?a)))))
"""


@pytest.fixture
def blocks() -> GroundProblem:
    return ground(parse_problem(BLOCKS, load_domain("blockworld"), "blocks"))


def test_the_possible_actions_are_those_whose_conditions_hold(blocks: GroundProblem) -> None:
    possible = {(action.name, *action.arguments) for action in blocks.possible(blocks.initial)}
    assert possible == {("unstack", "b1", "b2"), ("pickup", "b3")}


def test_an_action_adds_and_deletes(blocks: GroundProblem) -> None:
    after = blocks.actions["unstack", "b1", "b2"].after(blocks.initial)
    assert set(blocks.holding(after)) == {
        ("holding", "b1"),
        ("clear", "b2"),
        ("clear", "b3"),
        ("on-table", "b2"),
        ("on-table", "b3"),
    }


def test_progress_is_the_share_of_goal_facts(blocks: GroundProblem) -> None:
    assert blocks.progress(blocks.initial) == 0.5
    assert not blocks.solved(blocks.initial)
    held = blocks.actions["unstack", "b1", "b2"].after(blocks.initial)
    stacked = blocks.actions["stack", "b1", "b3"].after(held)
    assert blocks.progress(stacked) == 1.0
    assert blocks.solved(stacked)


def test_static_conditions_are_decided_beforehand() -> None:
    text = (
        "(define (problem r) (:objects x y z - town) (:init (at x) (road x y) (road y z))"
        "(:goal (and (at z) (road x y))))"
    )
    roads = ground(parse_problem(text, parse_domain(ROADS, "roads"), "r"))
    assert set(roads.actions) == {("go", "x", "y"), ("go", "y", "z")}
    assert roads.static == (("road", "x", "y"), ("road", "y", "z"))
    assert roads.progress(roads.initial) == 0.5  # the road is there
    found = plan(roads, 5)
    assert found is not None
    assert [action.arguments for action in found] == [("x", "y"), ("y", "z")]


def test_an_action_that_changes_nothing_is_not_possible() -> None:
    text = "(define (problem r) (:objects x - town) (:init (at x) (road x x)) (:goal (at x)))"
    roads = ground(parse_problem(text, parse_domain(ROADS, "roads"), "r"))
    assert roads.actions["go", "x", "x"].after(roads.initial) == roads.initial  # deleted and added: stays
    assert roads.possible(roads.initial) == []


def test_the_planner_finds_the_shortest_plan_of_a_small_game(blocks: GroundProblem) -> None:
    found = plan(blocks, 30)
    assert found is not None
    assert [(action.name, *action.arguments) for action in found] == [("unstack", "b1", "b2"), ("stack", "b1", "b3")]


def test_no_plan_is_none_and_so_is_a_longer_one_than_allowed(blocks: GroundProblem) -> None:
    assert plan(blocks, 1) is None
    text = "(define (problem r) (:objects x y - town) (:init (at x)) (:goal (at y)))"
    assert plan(ground(parse_problem(text, parse_domain(ROADS, "roads"), "r")), 30) is None


def test_a_relaxed_plan_ignores_what_is_deleted(blocks: GroundProblem) -> None:
    relaxed = relaxed_plan(blocks.initial, blocks.goal, tuple(blocks.actions.values()))
    assert relaxed is not None
    assert [(action.name, *action.arguments) for action in relaxed] == [("unstack", "b1", "b2"), ("stack", "b1", "b3")]
    assert relaxed_plan(blocks.initial, blocks.initial, tuple(blocks.actions.values())) == ()
