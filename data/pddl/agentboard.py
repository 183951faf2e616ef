"""AgentBoard's 60 PDDL games from its own files: ``test.jsonl``, a domain file a game, a folder of problems a game.

The n-th record of a game is its n-th problem file in the order of the names as text, so blockworld's go ``problem1``,
``problem10``, ``problem2``. Every problem's goal is compared with what its record says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from data.pddl.phrases import GAMES, Game, load_phrases
from data.pddl.syntax import Domain, Problem, parse_domain, parse_problem
from data.records import Place, Record
from data.source import local_records

_FILES: dict[Game, list[str]] = {
    "gripper": [f"prob{number:02}" for number in range(1, 21)],
    "blockworld": sorted(f"problem{number}" for number in range(1, 11)),
    "barman": [f"p{number:02}" for number in range(1, 21)],
    "tyreworld": [f"p{number:02}" for number in range(1, 11)],
}


@dataclass(frozen=True)
class BoardGame:
    """One of the 60: its number in AgentBoard, ``easy`` or ``hard``, its problem and that as PDDL text."""

    number: int
    game: Game
    difficulty: str
    problem: Problem
    text: str


def agentboard_domain(path: Path, game: Game) -> Domain:
    """AgentBoard's domain of ``game``. Raises ``FileNotFoundError`` saying what ``path`` should hold."""
    file = path / f"{game}.pddl"
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing: AgentBoard's folder has test.jsonl, GAME.pddl and GAME/*.pddl")
    return parse_domain(file.read_text(encoding="utf-8"), str(file))


def agentboard_games(path: Path, incomplete: bool = False) -> tuple[BoardGame, ...]:
    """The games in AgentBoard's order.

    Args:
        path: the folder with ``test.jsonl``.
        incomplete: leave out the games whose problem files are missing; without it they are an error.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a record or a problem cannot be read, or they disagree about the goal.
    """
    files = {game: iter(names) for game, names in _FILES.items()}
    found, missing = [], []
    for record, place in local_records(path, "test"):
        game = _game(record, place)
        name = next(files[game], None)
        if name is None:
            raise place.error("subtask", f"is one {game} game more than the {len(_FILES[game])} of AgentBoard")
        file = path / game / f"{name}.pddl"
        if file.is_file():
            found.append(_board_game(record, place, game, file))
        else:
            missing.append(file.relative_to(path).as_posix())
    if not found or (missing and not incomplete):
        raise FileNotFoundError(f"{path} lacks {len(missing)} of AgentBoard's problems: {', '.join(missing)}")
    return tuple(found)


def _game(record: Record, place: Place) -> Game:
    named = place.text(place.mapping(record, "additional_info"), "additional_info.subtask")
    for game in GAMES:
        if game == named:
            return game
    raise place.error("additional_info.subtask", f"is {named!r}; there are {', '.join(GAMES)}")


def _board_game(record: Record, place: Place, game: Game, file: Path) -> BoardGame:
    text = file.read_text(encoding="utf-8")
    problem = parse_problem(text, agentboard_domain(file.parents[1], game), str(file))
    goal = [load_phrases(game).fact(atom) for atom in problem.goal]
    if _same(goal) != _same(place.texts(record, "subgoals")):
        raise place.error("subgoals", f"are not the goal of {file}, which is: {' '.join(sorted(goal))}")
    return BoardGame(int(place.text(record, "id")), game, place.text(record, "difficulty"), problem, text)


def _same(sentences: Sequence[str]) -> list[str]:
    return sorted(" ".join(sentence.lower().split()) for sentence in sentences)
