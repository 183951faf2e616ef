"""ALFWorld as a benchmark: generated households of the six task types, or the published games from the user's copy."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from data.alfworld.game import ALFWorldGame
from data.alfworld.household import Household, draw_household
from data.alfworld.names import Grammar, as_command, in_grammar
from data.alfworld.process import EnginePool, engine_file, engine_versions
from data.alfworld.published import FOLDERS, published_games, read_game
from data.environment import Environment
from data.source import local_records
from data.task import Task

HOUSEHOLDS = Path(__file__).parent / "households.jsonl"
# One thread at a time: several that compute would keep an event loop's thread waiting for the interpreter.
_drawing = threading.Lock()
_PUT = {"move": "move OBJECT to RECEPTACLE", "put": "put OBJECT in/on RECEPTACLE"}
_RULES = (
    "You are in a room and act on what you find there. Things are in or on receptacles; you carry one at a time.\n"
    "Commands: look, inventory, go to RECEPTACLE, open RECEPTACLE, close RECEPTACLE, take OBJECT from RECEPTACLE, "
    "{put}, examine OBJECT or RECEPTACLE, use LAMP, heat OBJECT with MICROWAVE, cool OBJECT with FRIDGE, "
    "clean OBJECT with SINKBASIN, slice OBJECT with KNIFE.\nYour task: {task}."
)


class ALFWorld:
    """Household tasks in TextWorld's ALFWorld engine. Implements :class:`data.environment.World`.

    ``Task.metadata["type"]`` is the task type, for results by type; ``["engine"]`` names the packages' versions.

    Args:
        path: the published games (ALFWorld's ``json_2.1.1`` folder): train, valid_seen as validation and the 134 of
            valid_unseen as test. ``None`` plays generated households.
        incomplete: accept a part of the 134; without it another number is an error.
        households: a list that ``python -m data.alfworld.build`` wrote; ``None`` is the bundled one.
        grammar: the wording of commands that the agents see; both are understood.
        max_steps: length of an episode (paper, CoMem: 30).
        list_actions: give the admissible commands with every observation, as constrained actions need.
        processes: engines that play side by side (ours).
    """

    metrics = ("success", "grounding")

    def __init__(
        self,
        path: str | Path | None = None,
        incomplete: bool = False,
        households: str | Path | None = None,
        grammar: Grammar = "move",
        max_steps: int = 30,
        list_actions: bool = True,
        processes: int = 2,
    ) -> None:
        self.name = "alfworld_generated" if path is None else "alfworld"
        self.max_steps = max_steps
        self._path = None if path is None else Path(path)
        self._incomplete = incomplete
        self._households = HOUSEHOLDS if households is None else Path(households)
        self._grammar = grammar
        self._list_actions = list_actions
        self._engines = EnginePool(processes)
        self._loaded: dict[str, tuple[Task, ...]] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        """The games of ``train``, ``validation`` or ``test`` in a fixed order; read once.

        Raises:
            ModuleNotFoundError: ALFWorld is not installed; with the command that does it.
            FileNotFoundError: ``path`` has no such games.
            ValueError: an unknown split, or a file that cannot be read.
        """
        if split not in FOLDERS:
            raise ValueError(f"{self.name} has no split {split!r}; it has {', '.join(FOLDERS)}")
        if split not in self._loaded:
            versions = engine_versions()
            found = self._generated(split) if self._path is None else self._published(self._path, split)
            self._loaded[split] = tuple(
                self._task(name, task, {**metadata, "engine": versions}) for name, task, metadata in found
            )
        return self._loaded[split]

    def environment(self, task: Task) -> Environment:
        """A fresh game of ``task``, from its metadata alone."""
        with _drawing:
            data = self._data(task)
        return ALFWorldGame(self._engines, data, self._grammar, self.max_steps, self._list_actions)

    def _data(self, task: Task) -> Mapping[str, str]:
        if task.metadata["source"] == "generated":
            household = draw_household(str(task.metadata["type"]), str(task.metadata["seed"]))
            data: Mapping[str, str] = household_data(household)
        elif self._path is None:
            raise ValueError(f"task {task.id} is a published game: give ALFWorld the path of the games")
        else:
            data = read_game(self._path / str(task.metadata["file"]))
        return {**data, "grammar": in_grammar(data["grammar"], self._grammar)}

    def _generated(self, split: str) -> list[tuple[str, str, dict[str, object]]]:
        found: list[tuple[str, str, dict[str, object]]] = []
        for record, place in local_records(self._households, ""):
            type_, seed = place.text(record, "type"), place.text(record, "seed")
            if place.text(record, "split") != split:
                continue
            household = draw_household(type_, seed)
            if household.checksum != place.text(record, "checksum"):
                raise place.error("checksum", "is of another problem: run python -m data.alfworld.build again")
            plan = [as_command(command, self._grammar) for command in place.texts(record, "plan")]
            metadata: dict[str, object] = {"source": "generated", "type": type_, "seed": seed, "plan": plan}
            found.append((f"{type_}-{seed}", household.task, metadata))
        if not found:
            raise ValueError(f"{self._households} has no households of split {split!r}")
        return found

    def _published(self, path: Path, split: str) -> list[tuple[str, str, dict[str, object]]]:
        return [
            (
                game.name.removesuffix("/game.tw-pddl"),
                game.task,
                {"source": "published", "type": game.type, "file": f"{FOLDERS[split]}/{game.name}"},
            )
            for game in published_games(path, split, self._incomplete)
        ]

    def _task(self, identifier: str, task: str, metadata: Mapping[str, object]) -> Task:
        return Task(
            id=identifier,
            question=_RULES.format(put=_PUT[self._grammar], task=task),
            answers=(),
            benchmark=self.name,
            domain="planning",
            metadata=metadata,
        )


def household_data(household: Household) -> dict[str, str]:
    """What the engine plays: ALFWorld's domain and grammar, our problem and its task."""
    return {
        "pddl_domain": engine_file("alfred.pddl"),
        "grammar": engine_file("alfred.twl2").replace("UNKNOWN GOAL", household.task),
        "pddl_problem": household.problem,
    }
