"""ALFWorld's published games from the user's copy: ``valid_unseen/TASK/TRIAL/game.tw-pddl`` and the like."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from data.alfworld.household import TASK_TYPES

FOLDERS = {"train": "train", "validation": "valid_seen", "test": "valid_unseen"}
_NUMBER = {"valid_unseen": 134}  # games of the split that results are reported on
_TASK = re.compile(r"Your task is to: (.+?)\.?[\"\\\n]")


@dataclass(frozen=True)
class PublishedGame:
    """One game: its path below the split's folder, its type and its task in words."""

    name: str
    type: str
    task: str


def published_games(path: Path, split: str, incomplete: bool) -> tuple[PublishedGame, ...]:
    """The solvable games of ``split``, sorted by path. Movable receptacles and slices are left out, as ALFWorld does.

    Args:
        path: the folder that has ``train``, ``valid_seen`` and ``valid_unseen``.
        incomplete: accept another number of ``valid_unseen`` games than the published 134.

    Raises:
        FileNotFoundError: no games there.
        ValueError: a game without its parts, or not all 134.
    """
    folder = path / FOLDERS[split]
    files = sorted(file for file in folder.glob("**/game.tw-pddl") if not re.search("movable|Sliced", str(file)))
    if not files:
        raise FileNotFoundError(f"no game.tw-pddl below {folder}: give ALFWorld's json_2.1.1 folder as path")
    games = tuple(game for file in files for game in [_game(folder, file)] if game is not None)
    wanted = _NUMBER.get(folder.name, len(games))
    if len(games) != wanted and not incomplete:
        raise ValueError(
            f"{folder} has {len(games)} solvable games where {wanted} are published; incomplete=True plays them"
        )
    return games


def read_game(file: Path) -> Mapping[str, str]:
    """The domain, grammar and problem in a game file. Raises ``ValueError`` when a part is missing."""
    data = json.loads(file.read_text(encoding="utf-8"))
    for part in ("pddl_domain", "grammar", "pddl_problem"):
        if not isinstance(data.get(part), str):
            raise ValueError(f"{file}: no text under {part!r}; it is no ALFWorld game")
    return {part: data[part] for part in ("pddl_domain", "grammar", "pddl_problem")}


def _game(folder: Path, file: Path) -> PublishedGame | None:
    data = json.loads(file.read_text(encoding="utf-8"))
    type_ = file.parents[1].name.partition("-")[0]
    if type_ not in TASK_TYPES or not data.get("solvable", False):
        return None
    task = _TASK.search(data.get("grammar", ""))
    if task is None:
        raise ValueError(f"{file}: its grammar does not say 'Your task is to: ...'")
    return PublishedGame(file.relative_to(folder).as_posix(), type_, task[1])
