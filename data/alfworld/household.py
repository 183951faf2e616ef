"""Household problems of ALFWorld's six task types, drawn from a seed and written for ALFWorld's own PDDL domain.

Each object starts where it could be put, the wanted ones never where they are wanted, and everything that opens starts
closed. Whether a problem is solvable, and in how many steps, is for the planner to say (:mod:`data.alfworld.build`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random

import yaml

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)

_TEXT = {
    "pick_and_place_simple": "put a {object} in or on a {place}",
    "look_at_obj_in_light": "look at a {object} in the light of a {place}",
    "pick_clean_then_place_in_recep": "put a clean {object} in or on a {place}",
    "pick_heat_then_place_in_recep": "put a hot {object} in or on a {place}",
    "pick_cool_then_place_in_recep": "put a cool {object} in or on a {place}",
    "pick_two_obj_and_place": "put two {object} in or on the same {place}",
}
# What the object has to become: which objects can, the fact that says so, the receptacle that does it.
_CHANGE = {
    "pick_clean_then_place_in_recep": ("cleanable", "isClean", "sinkbasin"),
    "pick_heat_then_place_in_recep": ("heatable", "isHot", "microwave"),
    "pick_cool_then_place_in_recep": ("coolable", "isCool", "fridge"),
}
# Types that ALFWorld's domain mentions, so that every problem has to know them.
_PLACE_TYPES = ("fridge", "microwave", "sinkbasin")
_OBJECT_TYPES = ("butterknife", "knife")


@dataclass(frozen=True)
class Household:
    """A problem: its task in words and its PDDL text."""

    type: str
    task: str
    problem: str

    @property
    def checksum(self) -> str:
        """Tells whether a plan was made for this very text."""
        return sha256(self.problem.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Wish:
    """What is to be done: with which object, where, in which room. ``place`` is the lamp where light is asked for."""

    type: str
    room: str
    object: str
    place: str


def draw_household(type_: str, seed: str) -> Household:
    """The household problem of ``seed``; the same text for the same arguments, always.

    Raises ``ValueError`` for an unknown type.
    """
    if type_ not in TASK_TYPES:
        raise ValueError(f"unknown ALFWorld task type {type_!r}; there are {', '.join(TASK_TYPES)}")
    random = Random(f"{type_}/{seed}")
    wish = random.choice(_wishes(type_))
    receptacles = _receptacles(random, wish)
    objects = _objects(random, wish, receptacles)
    return Household(
        type_, _TEXT[type_].format(object=wish.object, place=wish.place), _pddl(wish, receptacles, objects)
    )


@dataclass(frozen=True)
class _Room:
    receptacles: Mapping[str, tuple[int, int]]
    objects: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class _Tables:
    openable: Sequence[str]
    heatable: Sequence[str]
    coolable: Sequence[str]
    cleanable: Sequence[str]
    lamps: Sequence[str]
    rooms: Mapping[str, _Room]


@cache
def _tables() -> _Tables:
    table = yaml.safe_load((Path(__file__).parent / "households.yaml").read_text(encoding="utf-8"))
    rooms = {name: _Room(**room) for name, room in table.pop("rooms").items()}
    return _Tables(**table, rooms=rooms)


@cache
def _wishes(type_: str) -> tuple[_Wish, ...]:
    """Everything that a task of ``type_`` could be about."""
    able, _, device = _CHANGE.get(type_, ("", "", ""))
    found = []
    for name, room in _tables().rooms.items():
        lamps = [kind for kind in room.objects if kind in _tables().lamps]
        for kind, places in room.objects.items():
            if kind in lamps or (able and (kind not in getattr(_tables(), able) or device not in room.receptacles)):
                continue
            # With a single kind of place the object would have to start where it is wanted.
            targets = [place for place in places if place != device] if len(places) > 1 else []
            wanted = lamps if type_ == "look_at_obj_in_light" else targets
            found += [_Wish(type_, name, kind, place) for place in wanted]
    return tuple(found)


def _receptacles(random: Random, wish: _Wish) -> dict[str, str]:
    """Name to kind; at least one to put the wanted object in, and one of another kind for it to start in."""
    room = _tables().rooms[wish.room]
    counts = {kind: random.randint(least, most) for kind, (least, most) in room.receptacles.items()}
    if wish.place in counts:
        counts[wish.place] = max(1, counts[wish.place])
    others = [kind for kind in room.objects[wish.object] if kind != wish.place]
    if not any(counts[kind] for kind in others):
        counts[random.choice(others)] = 1
    return {f"{kind}_bar_{number}": kind for kind, count in counts.items() for number in range(1, count + 1)}


def _objects(random: Random, wish: _Wish, receptacles: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Name to kind and the receptacle that it starts in: the wanted ones, the room's lamps, and others."""
    room = _tables().rooms[wish.room]
    two = wish.type == "pick_two_obj_and_place"
    counts = {wish.object: random.randint(2, 3) if two else random.randint(1, 2)}
    counts |= {kind: 1 for kind in room.objects if kind in _tables().lamps}
    rest = [kind for kind in room.objects if kind not in counts]
    # So many others that the planner, which has to consider each, takes seconds and not minutes.
    others = random.sample(rest, min(len(rest), random.randint(4, 9)))
    counts |= {kind: random.choice((1, 1, 2)) for kind in others}
    placed: dict[str, tuple[str, str]] = {}
    for kind, count in counts.items():
        fitting = [name for name, place in receptacles.items() if place in room.objects[kind]]
        if kind == wish.object:
            fitting = [name for name in fitting if receptacles[name] != wish.place]
        for number in range(1, count + 1 if fitting else 1):
            placed[f"{kind}_bar_{number}"] = (kind, random.choice(fitting))
    return placed


def _pddl(wish: _Wish, receptacles: Mapping[str, str], objects: Mapping[str, tuple[str, str]]) -> str:
    tables, room = _tables(), _tables().rooms[wish.room]
    place_types = sorted({*receptacles.values(), *_PLACE_TYPES})
    object_types = sorted({*(kind for kind, _ in objects.values()), *_OBJECT_TYPES})
    facts = ["(atLocation agent1 loc_0)", "(= (total-cost) 0)"]
    location = {name: f"loc_{number}" for number, name in enumerate(receptacles, start=1)}
    for name, kind in receptacles.items():
        facts += [f"(receptacleType {name} {kind}Type)", f"(receptacleAtLocation {name} {location[name]})"]
        facts += [f"(openable {name})"] * (kind in tables.openable)
    for kind in object_types:
        facts += [
            f"(canContain {place}Type {kind}Type)" for place in room.objects.get(kind, ()) if place in place_types
        ]
    for name, (kind, where) in objects.items():
        facts += [f"(objectType {name} {kind}Type)", f"(inReceptacle {name} {where})"]
        facts += [f"(objectAtLocation {name} {location[where]})"]
        facts += [f"(toggleable {name})" if kind in tables.lamps else f"(pickupable {name})"]
        facts += [f"({able} {name})" for able in ("heatable", "coolable", "cleanable") if kind in getattr(tables, able)]
    return (
        "(define (problem household)\n(:domain alfred)\n(:objects\n"
        f"agent1 - agent\nloc_0 {' '.join(location.values())} - location\n"
        f"{' '.join(receptacles)} - receptacle\n{' '.join(objects)} - object\n"
        f"{' '.join(f'{kind}Type' for kind in place_types)} - rtype\n"
        f"{' '.join(f'{kind}Type' for kind in object_types)} - otype)\n"
        "(:init\n" + "\n".join(facts) + f")\n(:goal {_goal(wish)})\n(:metric minimize (total-cost)))\n"
    )


def _goal(wish: _Wish) -> str:
    """The goals of ALFWorld: of any object of the type, in any receptacle of the type."""
    if wish.type == "look_at_obj_in_light":
        return (
            "(and (exists (?t - object ?r - receptacle ?a - agent ?l - location) (and "
            f"(objectType ?t {wish.place}Type) (isToggled ?t) (inReceptacle ?t ?r) (receptacleAtLocation ?r ?l) "
            "(atLocation ?a ?l))) (exists (?o - object ?a - agent) (and "
            f"(objectType ?o {wish.object}Type) (holds ?a ?o))))"
        )
    there = f"(inReceptacle ?o ?r) (objectType ?o {wish.object}Type) (receptacleType ?r {wish.place}Type)"
    if wish.type == "pick_two_obj_and_place":
        return (
            f"(exists (?r - receptacle ?o - object ?p - object) (and {there} "
            f"(not (= ?o ?p)) (inReceptacle ?p ?r) (objectType ?p {wish.object}Type)))"
        )
    change = f" ({_CHANGE[wish.type][1]} ?o)" if wish.type in _CHANGE else ""
    return f"(exists (?r - receptacle ?o - object) (and {there}{change}))"
