"""The process in which ALFWorld's games are played: ``python -m data.alfworld.engine``, one JSON object a line.

A process of its own, because TextWorld's PDDL translator is not thread-safe (it exchanges ``sys.stdout`` and writes
``sys.argv`` and module globals), is Python that would hold the interpreter for tenths of a second, and because the
planner's C library prints. Only this module imports TextWorld.

    {"call": "open", "game": 7, "data": {"pddl_domain": ..., "grammar": ..., "pddl_problem": ...}}   also to start anew
    {"call": "step", "game": 7, "command": "go to fridge 1"}
    {"call": "plan", "data": {...}}   the bundled planner's commands from the start to the goal; none: no solution
    {"call": "close", "game": 7}

The first two are answered with ``{"text", "admissible", "won"}``. What cannot be answered ends the process.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import textworld
from textworld.envs.pddl import PddlEnv
from textworld.envs.pddl.logic import GameLogic
from textworld.envs.pddl.textgen import ContextSensitiveGrammar

from data.alfworld.names import readable_names

_BLANK = re.compile(r"\[?\{(\w+)(?:\.name)?(?: *\|[^{}]*)?\}\]?")


class _CommandGrammar(ContextSensitiveGrammar):
    """A game's grammar that fills in command templates directly.

    All variables of a command are bound by its action, so that parsing the template and asking the state, as
    TextWorld does for each command at each step, can only give their names: three quarters of a step's time.
    """

    def derive(self, start: str, context: Mapping[str, Any] = {}) -> str:
        if "#" in start:
            text: str = super().derive(start, context)
            return text
        return _BLANK.sub(lambda blank: str(context["variables"][blank[1]].name), start)


class _Game(PddlEnv):
    """TextWorld's environment with readable names. Its ``load`` builds the state, which ``reset`` throws away to build
    it again, tenths of a second each: here only ``reset`` does."""

    def load(self, filename_or_data: Mapping[str, str]) -> None:
        self._game_data, self._game_file, self.walkthrough = filename_or_data, None, None
        self._logic = GameLogic(domain=filename_or_data["pddl_domain"], grammar=filename_or_data["grammar"])
        grammar = _CommandGrammar()
        grammar.update(self._logic.grammar)
        self._logic.grammar = grammar
        self._named: dict[str, Any] = {}

    @property
    def _entity_infos(self) -> dict[str, Any]:
        if not self._named:
            self._named = self._get_entity_infos()
            names = readable_names([info.id for info in self._named.values()])
            for info in self._named.values():
                info.name = names[info.id]
        return self._named


class Games:
    """The games that are open in this process.

    An environment holds a copy of the planner's library that is never unloaded (it would crash), so that of a closed
    game is used for the next one.
    """

    def __init__(self) -> None:
        self._open: dict[int, _Game] = {}
        self._free: list[_Game] = []

    def answer(self, request: Mapping[str, Any]) -> dict[str, object]:
        """The reply to one request.

        Raises:
            ValueError: an unknown call.
            KeyError: a part of the request is missing, or its game is not open.
        """
        match request["call"]:
            case "open":
                self._close(request["game"])
                game = self._open[request["game"]] = self._loaded(request["data"])
                return _said(game.reset())
            case "step":
                return _said(self._open[request["game"]].step(request["command"])[0])
            case "plan":
                game = self._loaded(request["data"])
                game.reset()
                plan = game._pddl_state.replan(game._entity_infos)
                self._free.append(game)
                return {"plan": plan}
            case "close":
                self._close(request["game"])
                return {}
        raise ValueError(f"unknown call {request['call']!r}")

    def _close(self, number: int) -> None:
        if number in self._open:
            self._free.append(self._open.pop(number))

    def _loaded(self, data: Mapping[str, str]) -> _Game:
        infos = textworld.EnvInfos(admissible_commands=True, won=True)
        game = self._free.pop() if self._free else _Game(infos)
        game.load(data)
        return game


def _said(state: textworld.GameState) -> dict[str, object]:
    return {"text": state.feedback, "admissible": state["admissible_commands"], "won": bool(state["won"])}


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer each line until there are no more."""
    games = Games()
    for line in requests:
        print(json.dumps(games.answer(json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    # The planner's library prints to the process's standard output: replies go to a copy of it that nothing else has.
    private = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    serve(sys.stdin, private)
