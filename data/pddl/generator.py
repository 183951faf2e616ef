"""New problems of the four games: drawn from a seed, written as PDDL, kept only with a plan that wins in time.

Which split a problem belongs to is a property of its text, so no split shares a problem with another whatever the
seed. Sizes are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random

from data.pddl.grounding import GroundAction, ground
from data.pddl.phrases import Game
from data.pddl.planner import plan
from data.pddl.syntax import Atom, Domain, Problem, parse_domain, parse_problem

SHORTEST = 4  # steps of a plan below which a problem is no task (ours)
IN_VAIN = 1000
"""So many drafts that give no problem end the search (ours)."""
SPLITS = ("train", "validation", "test")
_SHARE = {"train": range(6), "validation": range(6, 8), "test": range(8, 10)}  # of ten parts of all problems


@dataclass(frozen=True)
class Draft:
    """A problem before it is written down: ``objects`` maps a type to its names."""

    objects: Mapping[str, Sequence[str]]
    init: Sequence[Atom]
    goal: Sequence[Atom]


@dataclass(frozen=True)
class Generated:
    """A problem, its PDDL text, and the plan that proves it solvable."""

    problem: Problem
    text: str
    plan: tuple[GroundAction, ...]


@cache
def load_domain(game: Game) -> Domain:
    """Our own domain of ``game``."""
    path = Path(__file__).parent / "games" / f"{game}.pddl"
    return parse_domain(path.read_text(encoding="utf-8"), path.name)


def generate(game: Game, split: str, seed: int, longest: int = 30) -> Iterator[Generated]:
    """An endless sequence of distinct problems of ``split``, each won by its plan in 4 to ``longest`` steps.

    Raises ``ValueError`` for an unknown split, and after so many drafts in vain that ``longest`` must be too few.
    """
    if split not in _SHARE:
        raise ValueError(f"unknown split {split!r}; there are {', '.join(_SHARE)}")
    random = Random(f"{seed}/{game}/{split}")
    seen: set[str] = set()
    in_vain = 0
    while in_vain < IN_VAIN:
        in_vain += 1
        text = pddl_text(game, _DRAFTS[game](random))
        if text in seen or not belongs(text, split):
            continue
        seen.add(text)
        problem = parse_problem(text, load_domain(game), f"a generated {game} problem")
        found = plan(ground(problem), longest, max_states=1000)
        if found is not None and len(found) >= SHORTEST:
            in_vain = 0
            yield Generated(problem, text, found)
    raise ValueError(
        f"none of {IN_VAIN} drafts of {game} in a row was new and won in {SHORTEST} to {longest} steps; "
        "give data.benchmark max_steps: 30 or more"
    )


def belongs(text: str, split: str) -> bool:
    """Whether the problem written as ``text`` is of ``split``."""
    return int(sha256(text.encode()).hexdigest(), 16) % 10 in _SHARE[split]


def pddl_text(game: Game, draft: Draft) -> str:
    """``draft`` as a PDDL problem; facts are sorted, so that equal problems are equal texts."""
    objects = "\n    ".join(f"{' '.join(names)} - {type_}" for type_, names in draft.objects.items() if names)
    return (
        f"(define (problem {game}-generated)\n  (:domain {game})\n"
        f"  (:objects\n    {objects})\n"
        f"  (:init\n    {_lines(draft.init)})\n"
        f"  (:goal (and\n    {_lines(draft.goal)})))\n"
    )


def _lines(atoms: Sequence[Atom]) -> str:
    return "\n    ".join(f"({' '.join(atom)})" for atom in sorted(atoms))


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(1, count + 1)]


def _gripper(random: Random) -> Draft:
    rooms = [f"room{letter}" for letter in "abc"[: random.choice((2, 2, 3))]]
    balls = _numbered("ball", random.randint(3, 7))
    start = {ball: random.choice(rooms) for ball in balls}
    wanted = random.sample(balls, random.randint(2, len(balls)))
    return Draft(
        objects={"room": rooms, "ball": balls, "gripper": ["left", "right"]},
        init=[
            ("at-robby", random.choice(rooms)),
            ("free", "left"),
            ("free", "right"),
            *(("at", ball, room) for ball, room in start.items()),
        ],
        # Most are to be moved; one that is already there must be left alone.
        goal=[
            ("at", ball, random.choice([room for room in rooms if room != start[ball]] * 3 + rooms)) for ball in wanted
        ],
    )


def _blockworld(random: Random) -> Draft:
    blocks = _numbered("b", random.randint(3, 7))
    init: list[Atom] = [("arm-empty",)]
    for tower in _towers(random, blocks):
        init += [("on-table", tower[0]), ("clear", tower[-1])]
        init += [("on", upper, lower) for lower, upper in pairwise(tower)]
    pairs = [("on", upper, lower) for tower in _towers(random, blocks) for lower, upper in pairwise(tower)]
    goal = random.sample(pairs, random.randint(min(2, len(pairs)), len(pairs)))
    return Draft({"block": blocks}, init, goal or [("on-table", random.choice(blocks))])


def _towers(random: Random, blocks: Sequence[str]) -> list[list[str]]:
    """All blocks in towers, each from the bottom up."""
    towers: list[list[str]] = []
    for block in random.sample(blocks, len(blocks)):
        if towers and random.random() < 0.7:
            random.choice(towers).append(block)
        else:
            towers.append([block])
    return towers


def _barman(random: Random) -> Draft:
    shots = _numbered("shot", random.randint(3, 5))
    ingredients = _numbered("ingredient", random.randint(2, 4))
    cocktails = _numbered("cocktail", random.randint(1, 4))
    dispensers = _numbered("dispenser", len(ingredients))
    init: list[Atom] = [("handempty", "left"), ("handempty", "right"), ("next", "l0", "l1"), ("next", "l1", "l2")]
    init += [(fact, vessel) for vessel in ("shaker1", *shots) for fact in ("ontable", "clean", "empty")]
    init += [("shaker-empty-level", "shaker1", "l0"), ("shaker-level", "shaker1", "l0")]
    init += [
        ("dispenses", *pair) for pair in zip(dispensers, random.sample(ingredients, len(ingredients)), strict=True)
    ]
    for cocktail in cocktails:
        first, second = random.sample(ingredients, 2)
        init += [("cocktail-part1", cocktail, first), ("cocktail-part2", cocktail, second)]
    drinks = [random.choice(cocktails), *random.sample(ingredients, random.randint(0, 2))]
    drinks = drinks[random.choice((0, 0, 0, 1)) :] or drinks
    return Draft(
        objects={
            "shaker": ["shaker1"],
            "hand": ["left", "right"],
            "shot": shots,
            "ingredient": ingredients,
            "cocktail": cocktails,
            "dispenser": dispensers,
            "level": ["l0", "l1", "l2"],
        },
        init=init,
        goal=[("contains", *pair) for pair in zip(random.sample(shots, len(drinks)), drinks, strict=True)],
    )


def _tyreworld(random: Random) -> Draft:
    count = random.randint(1, 3)
    hubs, nuts, flat, spare = (_numbered(name, count) for name in ("the-hub", "nuts", "w", "r"))
    init: list[Atom] = [("unlocked", "boot"), (random.choice(("closed", "closed", "isopen")), "boot")]
    goal: list[Atom] = []
    for tool in ("wrench", "jack", "pump"):
        init.append(random.choice((("in", tool, "boot"), ("in", tool, "boot"), ("have", tool))))
    for hub, nut, old, new in zip(hubs, nuts, flat, spare, strict=True):
        init += [("on", old, hub), ("on-ground", hub), ("fastened", hub), ("intact", new), ("in", new, "boot")]
        init += [(random.choice(("tight", "tight", "loose")), nut, hub), (random.choice(_TYRES), new)]
        wishes = [("on", new, hub), ("inflated", new), ("in", old, "boot"), ("tight", nut, hub)]
        goal += random.sample(wishes, random.randint(0, len(wishes)))
    return Draft(
        objects={"container": ["boot"], "hub": hubs, "nut": nuts, "wheel": [*flat, *spare]},
        init=init,
        goal=goal or [("inflated", spare[0])],
    )


_TYRES = ("not-inflated", "not-inflated", "inflated")
_DRAFTS: Mapping[Game, Callable[[Random], Draft]] = {
    "gripper": _gripper,
    "blockworld": _blockworld,
    "barman": _barman,
    "tyreworld": _tyreworld,
}
