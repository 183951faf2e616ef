"""A small satisficing planner: best-first search with the length of a delete-relaxed plan as its estimate (h_FF).

Written to prove that a generated game can be won within its steps: plans are short, not always the shortest.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

from data.pddl.grounding import GroundAction, GroundProblem

WEIGHT = 3  # of the estimate against the steps so far (ours): a higher one finds a plan sooner, a lower one a shorter


def plan(problem: GroundProblem, longest: int, max_states: int = 20_000) -> tuple[GroundAction, ...] | None:
    """Actions that reach the goal in at most ``longest`` steps; ``None`` when no such plan is among ``max_states``.

    It looks first among the actions that a relaxed plan is made of, which nearly always suffices, then among all.
    """
    found = _search(problem, longest, max_states, helpful=True)
    return found if found is not None else _search(problem, longest, max_states, helpful=False)


def relaxed_plan(state: int, goal: int, actions: Sequence[GroundAction]) -> tuple[GroundAction, ...] | None:
    """A plan from ``state`` if nothing were ever deleted, ``None`` where even that has none."""
    reached, layers, waiting = state, [], actions
    while goal & ~reached:
        ready = [action for action in waiting if not action.needs & ~reached]
        added = reached
        for action in ready:
            added |= action.add
        if added == reached:
            return None
        layers.append((reached, ready))
        waiting = [action for action in waiting if action.needs & ~reached]
        reached = added
    chosen: list[GroundAction] = []
    wanted = goal
    for before, ready in reversed(layers):
        missing = wanted & ~before  # what this layer is the first to reach
        for action in ready:
            if action.add & missing:
                chosen.append(action)
                missing &= ~action.add
                wanted |= action.needs
            if not missing:
                break
    return tuple(reversed(chosen))


def _search(problem: GroundProblem, longest: int, states: int, helpful: bool) -> tuple[GroundAction, ...] | None:
    actions = tuple(problem.actions.values())
    relaxed = relaxed_plan(problem.initial, problem.goal, actions)
    if relaxed is None:
        return None
    reached: dict[int, tuple[GroundAction, ...]] = {problem.initial: ()}
    order = count()  # breaks ties first in, first out
    queue = [(0, next(order), problem.initial, relaxed)]
    while queue and len(reached) <= states:
        _, _, state, relaxed = heapq.heappop(queue)
        steps = reached[state]
        if problem.solved(state):
            return steps
        for action in _helpful(relaxed, state) if helpful else problem.possible(state):
            after = action.after(state)
            if len(steps) == longest or len(reached.get(after, range(longest + 1))) <= len(steps) + 1:
                continue
            estimate = relaxed_plan(after, problem.goal, actions)
            if estimate is not None:
                reached[after] = (*steps, action)
                heapq.heappush(queue, (len(steps) + 1 + WEIGHT * len(estimate), next(order), after, estimate))
    return None


def _helpful(relaxed: Sequence[GroundAction], state: int) -> list[GroundAction]:
    return [action for action in relaxed if not action.needs & ~state and action.after(state) != state]
