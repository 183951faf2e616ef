"""From a problem to bit masks: a state is one integer, and taking an action is two operations on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from data.pddl.syntax import Action, Atom, Problem


@dataclass(frozen=True)
class GroundAction:
    """An action with its arguments filled in; the masks have a bit for every fact that it needs or changes."""

    name: str
    arguments: tuple[str, ...]
    needs: int
    add: int
    delete: int

    def after(self, state: int) -> int:
        """The state that it leads to. A fact that is deleted and added stays true."""
        return state & ~self.delete | self.add


@dataclass(frozen=True)
class GroundProblem:
    """Every fact that can become true or false has a bit; facts that no action touches stay out of the state.

    Attributes:
        facts: bit number to fact, in the order of the domain's predicates and the problem's objects.
        static: facts that hold throughout.
        actions: those whose static conditions hold, by name and arguments.
        initial: the first state.
        goal: mask of the goal's facts that can change.
        goal_size: number of goal facts, with those that can not.
        met: goal facts that hold throughout.
    """

    problem: Problem
    facts: tuple[Atom, ...]
    static: tuple[Atom, ...]
    actions: Mapping[tuple[str, ...], GroundAction]
    initial: int
    goal: int
    goal_size: int
    met: int

    @cached_property
    def bits(self) -> Mapping[Atom, int]:
        """Fact to its mask."""
        return {fact: 1 << number for number, fact in enumerate(self.facts)}

    def possible(self, state: int) -> list[GroundAction]:
        """The actions that can be taken and would change something."""
        return [a for a in self.actions.values() if not a.needs & ~state and a.after(state) != state]

    def progress(self, state: int) -> float:
        """Satisfied goal facts / all of them."""
        return (self.met + (state & self.goal).bit_count()) / self.goal_size

    def solved(self, state: int) -> bool:
        """Whether the whole goal holds."""
        return self.met + (state & self.goal).bit_count() == self.goal_size

    def holding(self, state: int) -> tuple[Atom, ...]:
        """The facts of a state, static ones left out."""
        return tuple(fact for number, fact in enumerate(self.facts) if state >> number & 1)


def ground(problem: Problem) -> GroundProblem:
    """Every action with every fitting argument, static conditions checked as soon as their variables are bound."""
    changing = {atom[0] for action in problem.domain.actions for atom in (*action.add, *action.delete)}
    static = frozenset(atom for atom in problem.init if atom[0] not in changing)
    bound = [
        (action, values) for action in problem.domain.actions for values in _fillings(action, problem, static, changing)
    ]
    touched = {
        _fill(atom, values)
        for action, values in bound
        for atom in (*action.precondition, *action.add, *action.delete)
        if atom[0] in changing
    }
    facts = _in_order(problem, touched | {a for a in (*problem.init, *problem.goal) if a[0] in changing})
    bits = {fact: 1 << number for number, fact in enumerate(facts)}
    actions = [_ground_action(action, values, bits) for action, values in bound]
    return GroundProblem(
        problem=problem,
        facts=facts,
        static=_in_order(problem, static),
        actions={(action.name, *action.arguments): action for action in actions},
        initial=_mask(problem.init, {}, bits),
        goal=_mask(problem.goal, {}, bits),
        goal_size=len(problem.goal),
        met=sum(atom in static for atom in problem.goal),
    )


def _fillings(
    action: Action, problem: Problem, static: frozenset[Atom], changing: set[str]
) -> Iterator[dict[str, str]]:
    """Every binding of the parameters that fits their types and makes the static conditions true."""
    fitting = [
        [name for name, type_ in problem.objects.items() if problem.domain.is_a(type_, wanted)]
        for _, wanted in action.parameters
    ]
    place = {variable: number for number, (variable, _) in enumerate(action.parameters)}
    checks: list[list[Atom]] = [[] for _ in range(len(action.parameters) + 1)]
    for atom in action.precondition:
        if atom[0] not in changing:
            checks[max((place.get(word, -1) for word in atom[1:]), default=-1) + 1].append(atom)

    def extend(values: dict[str, str]) -> Iterator[dict[str, str]]:
        depth = len(values)
        if any(_fill(atom, values) not in static for atom in checks[depth]):
            return
        if depth == len(fitting):
            yield values
            return
        for name in fitting[depth]:
            yield from extend({**values, action.parameters[depth][0]: name})

    return extend({})


def _ground_action(action: Action, values: Mapping[str, str], bits: Mapping[Atom, int]) -> GroundAction:
    return GroundAction(
        name=action.name,
        arguments=tuple(values[variable] for variable, _ in action.parameters),
        needs=_mask(action.precondition, values, bits),
        add=_mask(action.add, values, bits),
        delete=_mask(action.delete, values, bits),
    )


def _fill(atom: Atom, values: Mapping[str, str]) -> Atom:
    return (atom[0], *(values.get(word, word) for word in atom[1:]))


def _mask(atoms: tuple[Atom, ...], values: Mapping[str, str], bits: Mapping[Atom, int]) -> int:
    mask = 0
    for atom in atoms:
        mask |= bits.get(_fill(atom, values), 0)
    return mask


def _in_order(problem: Problem, atoms: frozenset[Atom] | set[Atom]) -> tuple[Atom, ...]:
    rank = {name: number for number, name in enumerate((*problem.domain.predicates, *problem.objects))}
    return tuple(sorted(atoms, key=lambda atom: [rank[word] for word in atom]))
