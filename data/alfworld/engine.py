"""The process in which ALFWorld's games are played: ``python -m data.alfworld.engine``, one JSON object a line.

A process of its own, because TextWorld's PDDL translator is not thread-safe (it exchanges ``sys.stdout`` and writes
``sys.argv`` and module globals), is Python that would hold the interpreter for tenths of a second, and because the
planner's C library prints. Only this module imports TextWorld.

    {"call": "open", "game": 7, "data": {"pddl_domain": ..., "grammar": ..., "pddl_problem": ...}}   start from anew
    {"call": "step", "game": 7, "command": "go to fridge 1"}
    {"call": "plan", "data": {...}}    commands of the bundled planner, from the start to the goal
    {"call": "close", "game": 7}
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TextIO

import textworld
from fast_downward import close_lib
from textworld.envs.pddl import PddlEnv

from data.alfworld.names import readable_names


class Games:
    """The games that are open in this process."""

    def __init__(self) -> None:
        self._open: dict[int, PddlEnv] = {}

    def answer(self, request: Mapping[str, object]) -> dict[str, object]:
        """The reply to one request."""
        match request["call"]:
            case "open":
                game = self._open[request["game"]] = _load(request["data"], plan=False)
                return _said(game.reset())
            case "step":
                return _said(self._open[request["game"]].step(request["command"])[0])
            case "plan":
                game = _load(request["data"], plan=True)
                plan = game.reset()["policy_commands"]
                close_lib(game.downward_lib)
                return {"plan": plan}
            case "close":
                close_lib(self._open.pop(request["game"]).downward_lib)
                return {}
        raise ValueError(f"unknown call {request['call']!r}")


def _load(data: object, plan: bool) -> PddlEnv:
    game = PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True, policy_commands=plan))
    game.load(data)
    names = readable_names([info.id for info in game._entity_infos.values()])
    for info in game._entity_infos.values():
        info.name = names[info.id]
    return game


def _said(state: textworld.GameState) -> dict[str, object]:
    return {"text": state.feedback, "admissible": state["admissible_commands"], "won": bool(state["won"])}


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer each line until there are no more. An error is an answer too, and ends nothing."""
    games = Games()
    for line in requests:
        print(json.dumps(games.answer(json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    # The planner's library prints to the process's standard output: replies go to a copy of it that nothing else has.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    serve(sys.stdin, replies)
