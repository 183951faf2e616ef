"""One ALFWorld episode, played in an engine's process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from data.alfworld.names import Grammar, as_command
from data.alfworld.process import EnginePool, EngineProcess
from data.environment import Observation
from data.task import Score

# What an agent is told when its text is no command; where a command is one, but not now, the engine answers.
_VERBS = "look, inventory, help, go, open, close, take, move, put, use, heat, clean, cool, slice, examine"


class ALFWorldGame:
    """Implements :class:`data.environment.Environment`. Calls wait for the engine's process without the interpreter.

    Args:
        engines: where the game is played.
        data: its domain, grammar and problem.
        grammar: which wording ``data`` uses; both are understood.
        max_steps: the episode ends after so many actions.
        list_actions: give the admissible commands with every observation.
    """

    def __init__(
        self, engines: EnginePool, data: Mapping[str, str], grammar: Grammar, max_steps: int, list_actions: bool
    ) -> None:
        self._engines = engines
        self._data = data
        self._grammar = grammar
        self._max_steps = max_steps
        self._list_actions = list_actions
        self._opened: tuple[EngineProcess, int] | None = None
        self._admissible: tuple[str, ...] = ()
        self._steps = self._valid = 0
        self._won = False

    def reset(self) -> Observation:
        """Begin anew. Raises ``RuntimeError`` when the engine cannot read the game."""
        if self._opened is None:
            self._opened = self._engines.next()
        engine, number = self._opened
        self._steps = self._valid = 0
        return self._observe(engine.call(call="open", game=number, data=dict(self._data)))

    def step(self, action: str) -> Observation:
        """Take one action.

        Raises:
            RuntimeError: before ``reset``, once the episode is over, or when the engine's process ended.
        """
        if self._opened is None or self._over:
            raise RuntimeError("ALFWorldGame.step: the episode is over or has not begun; call reset()")
        engine, number = self._opened
        command = as_command(action, self._grammar)
        self._steps += 1
        self._valid += command in self._admissible
        said = engine.call(call="step", game=number, command=command)
        known = command.split(" ")[0] in _VERBS.split(", ")
        why = "" if known else f" That is no command: one starts with {_VERBS}."
        return self._observe({**said, "text": f"{said['text']}{why}"})

    def score(self) -> Score:
        """``success`` (the engine's ``won``, never ``done``) and ``grounding`` (admissible / all actions)."""
        return {"success": float(self._won), "grounding": self._valid / self._steps if self._steps else 0.0}

    def close(self) -> None:
        """Give the game's place in the engine back."""
        if self._opened is not None:
            engine, number = self._opened
            self._opened = None
            engine.call(call="close", game=number)

    @property
    def _over(self) -> bool:
        return self._won or self._steps >= self._max_steps

    def _observe(self, said: Mapping[str, object]) -> Observation:
        self._won = bool(said["won"])
        self._admissible = tuple(cast(list[str], said["admissible"]))
        shown = self._admissible if self._list_actions and not self._over else ()
        return Observation(str(said["text"]).strip(), shown, self._over)
