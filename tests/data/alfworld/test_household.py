"""Generated households: deterministic, varied, the wanted things never where they are wanted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.alfworld.household import TASK_TYPES, draw_household

TYPES = st.sampled_from(TASK_TYPES)
SEEDS = st.integers(0, 10_000).map(str)


def facts(problem: str, predicate: str) -> list[list[str]]:
    return [found.split()[1:] for found in re.findall(rf"\(({predicate} [^()]*)\)", problem.partition("(:goal")[0])]


def wanted(task: str) -> tuple[str, str]:
    """The object and the place (or lamp) that a task is about."""
    found = re.fullmatch(r"(?:put|look at) (?:a|two) (?:clean |hot |cool )?(\w+) in .*?(\w+)", task)
    assert found is not None, task
    return found[1], found[2]


@settings(deadline=None, max_examples=60)
@given(type_=TYPES, seed=SEEDS)
def test_a_household_repeats_and_knows_what_the_domain_mentions(type_: str, seed: str) -> None:
    household = draw_household(type_, seed)
    assert draw_household(type_, seed) == household
    assert household.problem.count("(") == household.problem.count(")")
    for name in ("microwaveType", "fridgeType", "sinkbasinType", "knifeType", "butterknifeType"):
        assert name in household.problem.partition("(:init")[0]


@settings(deadline=None, max_examples=60)
@given(type_=TYPES, seed=SEEDS)
def test_what_is_wanted_is_there_and_elsewhere(type_: str, seed: str) -> None:
    household = draw_household(type_, seed)
    thing, place = wanted(household.task)
    where = [
        receptacle for name, receptacle in facts(household.problem, "inReceptacle") if name.startswith(f"{thing}_")
    ]
    assert len(where) >= (2 if type_ == "pick_two_obj_and_place" else 1)
    assert not any(receptacle.startswith(f"{place}_") for receptacle in where)
    if type_ == "look_at_obj_in_light":
        assert [f"{place}_bar_1"] in facts(household.problem, "toggleable")
    else:
        assert [f"{place}_bar_1", f"{place}Type"] in facts(household.problem, "receptacleType")
        assert [f"{place}Type", f"{thing}Type"] in facts(household.problem, "canContain")


@settings(deadline=None, max_examples=30)
@given(type_=TYPES, seed=SEEDS)
def test_every_object_starts_where_it_may_be(type_: str, seed: str) -> None:
    problem = draw_household(type_, seed).problem
    allowed = facts(problem, "canContain")
    location = dict(facts(problem, "receptacleAtLocation"))
    for name, receptacle in facts(problem, "inReceptacle"):
        assert [f"{receptacle.partition('_')[0]}Type", f"{name.partition('_')[0]}Type"] in allowed
        assert [name, location[receptacle]] in facts(problem, "objectAtLocation")


@pytest.mark.parametrize(
    ("type_", "able", "receptacle"),
    [
        ("pick_clean_then_place_in_recep", "cleanable", "sinkbasin"),
        ("pick_heat_then_place_in_recep", "heatable", "microwave"),
        ("pick_cool_then_place_in_recep", "coolable", "fridge"),
    ],
)
def test_what_has_to_change_can(type_: str, able: str, receptacle: str) -> None:
    for seed in range(20):
        household = draw_household(type_, str(seed))
        thing, place = wanted(household.task)
        assert place != receptacle
        assert [f"{thing}_bar_1"] in facts(household.problem, able)
        assert [f"{receptacle}_bar_1", f"{receptacle}Type"] in facts(household.problem, "receptacleType")


def test_households_vary() -> None:
    drawn = [draw_household("pick_and_place_simple", str(seed)) for seed in range(40)]
    assert len({household.problem for household in drawn}) == 40
    assert len({wanted(household.task) for household in drawn}) > 20
    kinds = {name for household in drawn for name, _ in facts(household.problem, "receptacleType")}
    assert {"fridge_bar_1", "bed_bar_1", "sofa_bar_1", "toilet_bar_1"} <= kinds  # all four rooms


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(ValueError, match="unknown ALFWorld task type 'juggle'"):
        draw_household("juggle", "0")
