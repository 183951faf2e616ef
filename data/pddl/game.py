"""A PDDL game as an environment of text: AgentBoard's interface and its scores (Ma et al., 2024)."""

from __future__ import annotations

import threading

from data.environment import Observation
from data.pddl.grounding import GroundProblem
from data.pddl.phrases import Phrases, UnreadableActionError
from data.pddl.syntax import Atom
from data.task import Score

CHECK = "check valid actions"
LOOK = "look around"

COMPUTING = threading.Lock()
"""Held while a game computes: several threads of plain Python at once would be no faster, and would keep the event
loop's thread waiting its turn for the interpreter after each of them."""


class PDDLGame:
    """One episode. Implements :class:`data.environment.Environment`; calls take well under a millisecond.

    As in AgentBoard, ``check valid actions`` and ``look around`` are actions like any other: they change nothing, cost
    a step and count as valid. An action that would leave everything as it is counts as invalid.

    Args:
        problem: what is played; never changed, so that many episodes may share it.
        phrases: the game's language.
        max_steps: the episode ends after so many actions.
        list_actions: give the possible actions with every observation.
    """

    def __init__(
        self, problem: GroundProblem, phrases: Phrases, max_steps: int = 30, list_actions: bool = True
    ) -> None:
        self._problem = problem
        self._phrases = phrases
        self._max_steps = max_steps
        self._list_actions = list_actions
        self._state: int | None = None
        self._listed: tuple[int, tuple[str, ...]] | None = None

    def reset(self) -> Observation:
        """Begin anew; the observation says everything that is true."""
        with COMPUTING:
            self._state = self._problem.initial
            self._steps = self._valid = 0
            self._progress = self._problem.progress(self._state)
            return self._observe(self._all_facts(self._state), self._state)

    def step(self, action: str) -> Observation:
        """Take one action.

        Raises:
            RuntimeError: before ``reset``, or once the episode is over.
        """
        if self._state is None or self._over(self._state):
            raise RuntimeError("PDDLGame.step: the episode is over or has not begun; call reset()")
        self._steps += 1
        with COMPUTING:
            text, after = self._answer(action.lower(), self._state)
            self._state = after
            self._progress = max(self._progress, self._problem.progress(after))
            if self._problem.solved(after):
                text += " The goal is reached."
            return self._observe(text, after)

    def score(self) -> Score:
        """``success``, ``progress`` (most goal facts satisfied so far / all), ``grounding`` (valid / all actions)."""
        if self._state is None:
            return {"success": 0.0, "progress": 0.0, "grounding": 0.0}
        return {
            "success": float(self._problem.solved(self._state)),
            "progress": self._progress,
            "grounding": self._valid / self._steps if self._steps else 0.0,
        }

    def close(self) -> None:
        """Nothing is held."""
        self._state = None

    def _answer(self, action: str, before: int) -> tuple[str, int]:
        """What the agents are told, and the state after it."""
        if CHECK in action:
            self._valid += 1
            return "You can: " + " ".join(self._admissible(before)), before
        if LOOK in action:
            self._valid += 1
            return self._all_facts(before), before
        try:
            named = self._phrases.read(action, self._problem.problem)
        except UnreadableActionError as error:
            return f"The action cannot be read and changes nothing. {error}", before
        taken = self._problem.actions.get(named)
        if taken is None or taken.needs & ~before:
            return f"The action is not possible now and changes nothing. {self._lacking(named, before)}", before
        after = taken.after(before)
        if after == before:
            return "The action changes nothing.", before
        self._valid += 1
        return self._told(before, after), after

    def _admissible(self, state: int) -> tuple[str, ...]:
        """The possible actions as sentences; kept for the next question about the same state."""
        if self._listed is None or self._listed[0] != state:
            possible = self._problem.possible(state)
            self._listed = (state, tuple(self._phrases.action(each.name, each.arguments) for each in possible))
        return self._listed[1]

    def _told(self, before: int, after: int) -> str:
        if self._phrases.observes == "state":
            return self._sentences(self._problem.holding(after))
        now_false = self._problem.holding(before & ~after)
        return " ".join(
            [self._sentences(self._problem.holding(after & ~before))]
            + [f"No longer: {self._phrases.fact(fact)}" for fact in now_false]
        )

    def _lacking(self, named: tuple[str, ...], state: int) -> str:
        """Which conditions of an action do not hold."""
        action = next(each for each in self._problem.problem.domain.actions if each.name == named[0])
        values = dict(zip((variable for variable, _ in action.parameters), named[1:], strict=True))
        facts = [(atom[0], *(values.get(word, word) for word in atom[1:])) for atom in action.precondition]
        holding = {*self._problem.static, *self._problem.holding(state)}
        return "It needs: " + self._sentences(tuple(fact for fact in facts if fact not in holding))

    def _all_facts(self, state: int) -> str:
        return self._sentences((*self._problem.static, *self._problem.holding(state)))

    def _sentences(self, facts: tuple[Atom, ...]) -> str:
        return " ".join(map(self._phrases.fact, facts))

    def _over(self, state: int) -> bool:
        return self._steps >= self._max_steps or self._problem.solved(state)

    def _observe(self, text: str, state: int) -> Observation:
        over = self._over(state)
        return Observation(text, self._admissible(state) if self._list_actions and not over else (), over)
