"""Reading PDDL: what is read, the dialects of AgentBoard's files, and what is said about the rest."""

from __future__ import annotations

import pytest

from data.pddl.syntax import Domain, parse_domain, parse_problem

LIGHTS = """
(define (domain lights) ; a comment
  (:predicates (on ?l - lamp) (off ?l - lamp) (near ?a - lamp?b - lamp))
  (:types lamp - thing desk - lamp)
  (:constants MAIN - lamp)
  (:action switch-on
    :parameters (?l - lamp)
    :precondition (and (off ?l) (and (near main ?l)))
    :effect (and (on ?l) (not (off ?l))))
  (:action reset :parameters () :effect (off main)))
"""
PROBLEM = """
(define (problem two) (:domain lights)
  (:goal (on l1))
  (:init (off l1) (near main l1) (near main l1))
  (:objects l1 - desk main - lamp))
"""


@pytest.fixture
def lights() -> Domain:
    return parse_domain(LIGHTS, "lights.pddl")


def test_a_domain_is_read_in_any_order_of_sections_and_case(lights: Domain) -> None:
    assert lights.name == "lights"
    assert lights.types == {"lamp": "thing", "desk": "lamp"}
    assert lights.constants == {"main": "lamp"}
    assert lights.predicates == {"on": 1, "off": 1, "near": 2}  # near is written `?a - lamp?b - lamp`
    switch, reset = lights.actions
    assert switch.parameters == (("?l", "lamp"),)
    assert switch.precondition == (("off", "?l"), ("near", "main", "?l"))
    assert (switch.add, switch.delete) == ((("on", "?l"),), (("off", "?l"),))
    assert (reset.precondition, reset.add) == ((), (("off", "main"),))


@pytest.mark.parametrize(
    ("type_", "wanted", "is_one"),
    [("desk", "lamp", True), ("desk", "thing", True), ("lamp", "desk", False), ("desk", "object", True)],
)
def test_types_descend(lights: Domain, type_: str, wanted: str, is_one: bool) -> None:
    assert lights.is_a(type_, wanted) is is_one


def test_a_problem_is_read_with_the_domains_constants(lights: Domain) -> None:
    problem = parse_problem(PROBLEM, lights, "p")
    assert problem.objects == {"main": "lamp", "l1": "desk"}
    assert problem.init == (("off", "l1"), ("near", "main", "l1"))
    assert problem.goal == (("on", "l1"),)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(define (domain", "(define (problem", r"lights.pddl: expected \(define \(domain NAME\)"),
        ("(on ?l) (not", "(on ?x) (not", r"action 'switch-on': '\?x' in \(on \?x\) is not declared"),
        ("(on ?l) (not", "(lit ?l) (not", "no predicate 'lit' of 1 arguments"),
        ("(and (near main ?l))", "(or (near main ?l))", "is no plain atom"),
        ("- lamp)\n    :pre", "- lam)\n    :pre", r"\?l is of the unknown type 'lam'"),
        ("(off main)))", "(off main))", "1 parentheses are not closed"),
        ("(off main)))", "(off main))))", "line 10: a '\\)' that closes nothing"),
        ("MAIN - lamp", "MAIN -", "no single type after '-' for main"),
    ],
)
def test_what_is_wrong_with_a_domain_is_said_with_its_place(old: str, new: str, said: str) -> None:
    assert old in LIGHTS
    with pytest.raises(ValueError, match=said):
        parse_domain(LIGHTS.replace(old, new), "lights.pddl")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(on l1)", "(on l2)", r"two: :goal: 'l2' in \(on l2\) is not declared"),
        ("(:goal (on l1))", "(:goal (and))", "two: the goal is empty"),
        ("l1 - desk", "l1 - chair", "'l1' is of the unknown type 'chair'"),
        ("(off l1)", "(not (off l1))", "two: :init: .* is no plain atom"),
    ],
)
def test_what_is_wrong_with_a_problem_is_said_with_its_place(lights: Domain, old: str, new: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_problem(PROBLEM.replace(old, new), lights, "two")
