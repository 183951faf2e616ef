"""Reading PDDL: typed STRIPS with constants, sections in any order, which is what AgentBoard's four games need.

AgentBoard's files stretch the language: tyreworld puts ``:constants`` after ``:predicates``, names its constants again
among the objects and declares ``in`` with its arguments swapped; barman writes ``level?l1`` without a space. Sections
are therefore looked up by name, a ``?`` starts a new word, and a predicate is held to its arity, not to its types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Atom = tuple[str, ...]
"""A predicate and its arguments, for example ``("on", "b1", "b2")``; arguments in an action may be ``?variables``."""

Nested = str | list["Nested"]

_WORD = re.compile(r"[()]|\?[^\s()?]*|[^\s()?]+")
OBJECT = "object"


@dataclass(frozen=True)
class Action:
    """An action schema. Conditions are a conjunction of atoms; what is deleted and added at once is true after it."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    precondition: tuple[Atom, ...]
    add: tuple[Atom, ...]
    delete: tuple[Atom, ...]


@dataclass(frozen=True)
class Domain:
    """The rules of a game: ``types`` maps a type to its parent, ``predicates`` a name to its arity."""

    name: str
    types: Mapping[str, str]
    constants: Mapping[str, str]
    predicates: Mapping[str, int]
    actions: tuple[Action, ...]

    def is_a(self, type_: str, wanted: str) -> bool:
        """Whether ``type_`` is ``wanted`` or descends from it."""
        while type_ != wanted and type_ in self.types:
            type_ = self.types[type_]
        return type_ == wanted or wanted == OBJECT


@dataclass(frozen=True)
class Problem:
    """One game: ``objects`` maps a name to its type, the domain's constants among them; the goal is a conjunction."""

    name: str
    domain: Domain
    objects: Mapping[str, str]
    init: tuple[Atom, ...]
    goal: tuple[Atom, ...]


def parse_domain(text: str, where: str) -> Domain:
    """The domain in ``text``; ``where`` names its file in errors. Raises ``ValueError`` for what it cannot read."""
    name, sections = _define(text, where, "domain")
    types = dict(_typed(_only(sections, ":types"), where, ":types"))
    known = {OBJECT, *types, *types.values()}
    predicates = {
        _head(form, where): len(_typed(_list(form, where)[1:], where, "")) for form in _only(sections, ":predicates")
    }
    constants = _objects(_only(sections, ":constants"), known, where)
    actions = tuple(_action(form, known, where) for form in sections.get(":action", ()))
    domain = Domain(name, types, constants, predicates, actions)
    for action in actions:
        names = {*constants, *(variable for variable, _ in action.parameters)}
        _check((*action.precondition, *action.add, *action.delete), domain, names, f"{where}: action {action.name!r}")
    return domain


def parse_problem(text: str, domain: Domain, where: str) -> Problem:
    """The problem in ``text``. Raises ``ValueError`` for what it cannot read and for names that ``domain`` lacks."""
    name, sections = _define(text, where, "problem")
    known = {OBJECT, *domain.types, *domain.types.values()}
    objects = {**domain.constants, **_objects(_only(sections, ":objects"), known, where)}
    init = tuple(dict.fromkeys(_atom(form, f"{where}: :init") for form in _only(sections, ":init")))
    goal = tuple(dict.fromkeys(_conjunction(_only(sections, ":goal")[:1], f"{where}: :goal")))
    if not goal:
        raise ValueError(f"{where}: the goal is empty")
    _check(init, domain, objects, f"{where}: :init")
    _check(goal, domain, objects, f"{where}: :goal")
    return Problem(name, domain, objects, init, goal)


def _define(text: str, where: str, kind: str) -> tuple[str, dict[str, list[list[Nested]]]]:
    """``(define (kind name) (:section ...) ...)`` as the name and the sections by name, each without its name."""
    form = _nested(text, where)
    if len(form) < 2 or form[0] != "define" or _head(form[1], where) != kind:
        raise ValueError(f"{where}: expected (define ({kind} NAME) ...)")
    sections: dict[str, list[list[Nested]]] = {}
    for part in form[2:]:
        sections.setdefault(_head(part, where), []).append(_list(part, where)[1:])
    return str(_list(form[1], where)[1]), sections


def _nested(text: str, where: str) -> list[Nested]:
    stack: list[list[Nested]] = [[]]
    for number, line in enumerate(text.lower().splitlines(), start=1):
        for word in _WORD.findall(line.partition(";")[0]):
            if word == "(":
                stack.append([])
            elif word != ")":
                stack[-1].append(word)
            elif len(stack) == 1:
                raise ValueError(f"{where}, line {number}: a ')' that closes nothing")
            else:
                closed = stack.pop()
                stack[-1].append(closed)
    if len(stack) > 1 or len(stack[0]) != 1:
        raise ValueError(f"{where}: {len(stack) - 1} parentheses are not closed; expected one (define ...)")
    return _list(stack[0][0], where)


def _only(sections: Mapping[str, list[list[Nested]]], name: str) -> list[Nested]:
    return [item for section in sections.get(name, ()) for item in section]


def _list(form: Nested, where: str) -> list[Nested]:
    if isinstance(form, str):
        raise ValueError(f"{where}: expected a list in parentheses, got {form!r}")
    return form


def _head(form: Nested, where: str) -> str:
    if isinstance(form, str) or not form or not isinstance(form[0], str):
        raise ValueError(f"{where}: expected (NAME ...), got {form!r}")
    return form[0]


def _typed(words: Sequence[Nested], where: str, section: str) -> list[tuple[str, str]]:
    """``a b - t c`` as ``[(a, t), (b, t), (c, object)]``."""
    pairs: list[tuple[str, str]] = []
    untyped: list[str] = []
    rest = iter(words)
    for word in rest:
        if not isinstance(word, str):
            raise ValueError(f"{where}: {section} has a list {word!r} where a name is expected")
        if word != "-":
            untyped.append(word)
            continue
        type_ = next(rest, None)
        if not isinstance(type_, str):
            raise ValueError(f"{where}: {section} has no single type after '-' for {', '.join(untyped)}")
        pairs += [(name, type_) for name in untyped]
        untyped = []
    return pairs + [(name, OBJECT) for name in untyped]


def _objects(words: Sequence[Nested], known: set[str], where: str) -> dict[str, str]:
    objects = dict(_typed(words, where, ":objects"))
    for name, type_ in objects.items():
        if type_ not in known:
            raise ValueError(
                f"{where}: {name!r} is of the unknown type {type_!r}; there are {', '.join(sorted(known))}"
            )
    return objects


def _action(form: list[Nested], known: set[str], where: str) -> Action:
    name = str(form[0])
    parts = dict(zip(map(str, form[1::2]), form[2::2], strict=False))
    where = f"{where}: action {name!r}"
    parameters = tuple(_typed(_list(parts.get(":parameters", []), where), where, ":parameters"))
    for variable, type_ in parameters:
        if type_ not in known:
            raise ValueError(f"{where}: {variable} is of the unknown type {type_!r}")
    effects = _flatten([parts.get(":effect", [])], where)
    return Action(
        name=name,
        parameters=parameters,
        precondition=_conjunction([parts.get(":precondition", [])], where),
        add=tuple(_atom(effect, where) for effect in effects if effect[0] != "not"),
        delete=tuple(_atom(effect[1], where) for effect in effects if effect[0] == "not"),
    )


def _flatten(forms: Sequence[Nested], where: str) -> list[list[Nested]]:
    """The members of nested conjunctions."""
    members: list[list[Nested]] = []
    for form in forms:
        parts = _list(form, where)
        if parts and parts[0] == "and":
            members += _flatten(parts[1:], where)
        elif parts:
            members.append(parts)
    return members


def _conjunction(forms: Sequence[Nested], where: str) -> tuple[Atom, ...]:
    return tuple(_atom(form, where) for form in _flatten(forms, where))


def _atom(form: Nested, where: str) -> Atom:
    if isinstance(form, str) or not form or not all(isinstance(word, str) for word in form):
        raise ValueError(f"{where}: {form!r} is no plain atom; conditions may only be joined by 'and', effects negated")
    return tuple(map(str, form))


def _check(atoms: Sequence[Atom], domain: Domain, names: Mapping[str, str] | set[str], where: str) -> None:
    for predicate, *arguments in atoms:
        if domain.predicates.get(predicate) != len(arguments):
            raise ValueError(f"{where}: no predicate {predicate!r} of {len(arguments)} arguments is declared")
        for argument in arguments:
            if argument not in names:
                raise ValueError(f"{where}: {argument!r} in ({' '.join([predicate, *arguments])}) is not declared")
