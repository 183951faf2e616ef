"""The PDDL games as a benchmark: generated problems of four games, or AgentBoard's 60 from the user's copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import cast

from data.environment import Environment
from data.pddl.agentboard import agentboard_domain, agentboard_games
from data.pddl.game import CHECK, COMPUTING, LOOK, PDDLGame
from data.pddl.generator import SPLITS, Generated, generate, load_domain
from data.pddl.grounding import GroundProblem, ground
from data.pddl.phrases import GAMES, Game, load_phrases
from data.pddl.syntax import Problem, parse_problem
from data.task import Task

_SIZES = {"train": 40, "validation": 10, "test": 15}  # of each game (ours); the test is as large as AgentBoard's


class PDDLGames:
    """Gripper, blockworld, barman and tyreworld. Implements :class:`data.environment.World`.

    Args:
        path: a folder with AgentBoard's files: its 60 games are the test split then, and the other splits are
            generated as they are without it.
        incomplete: play the part of AgentBoard's games that ``path`` has; without it a missing file is an error.
        seed: of the generated problems.
        max_steps: length of an episode (paper, CoMem: 30, as AgentBoard's).
        list_actions: give the possible actions with every observation, as constrained actions need.
    """

    metrics = ("success", "progress", "grounding")

    def __init__(
        self,
        path: str | Path | None = None,
        incomplete: bool = False,
        seed: int = 0,
        max_steps: int = 30,
        list_actions: bool = True,
    ) -> None:
        self.name = "pddl_generated" if path is None else "pddl"
        self.max_steps = max_steps
        self._path = None if path is None else Path(path)
        self._incomplete = incomplete
        self._seed = seed
        self._list_actions = list_actions
        self._loaded: dict[str, tuple[Task, ...]] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        """The games of ``train``, ``validation`` or ``test``, the four kinds in turn; generated or read once.

        Raises:
            ValueError: an unknown split, or a file that cannot be read.
            FileNotFoundError: AgentBoard's files are not all there.
        """
        if split not in SPLITS:
            raise ValueError(f"{self.name} has no split {split!r}; it has {', '.join(SPLITS)}")
        if split not in self._loaded:
            board = self._agentboard(self._path) if self._path is not None and split == "test" else None
            self._loaded[split] = tuple(board if board is not None else self._generated(split))
        return self._loaded[split]

    def environment(self, task: Task) -> Environment:
        """A fresh game of ``task``, from its metadata alone.

        Raises:
            ValueError: one of AgentBoard's games, and no path was given.
        """
        game = cast(Game, task.metadata["game"])
        if task.metadata["source"] == "agentboard" and self._path is None:
            raise ValueError(f"task {task.id} is one of AgentBoard's games: give PDDLGames the path of its files")
        path = self._path if task.metadata["source"] == "agentboard" else None
        with COMPUTING:
            problem = _ground(path, game, str(task.metadata["problem"]))
        return PDDLGame(problem, load_phrases(game), self.max_steps, self._list_actions)

    def _generated(self, split: str) -> list[Task]:
        games = [
            [
                self._generated_task(f"{game}-{n:03}", game, each)
                for n, each in enumerate(islice(problems, _SIZES[split]))
            ]
            for game in GAMES
            for problems in [generate(game, split, self._seed, self.max_steps)]
        ]
        return [task for in_turn in zip(*games, strict=True) for task in in_turn]

    def _generated_task(self, identifier: str, game: Game, generated: Generated) -> Task:
        plan = [load_phrases(game).action(step.name, step.arguments) for step in generated.plan]
        return self._task(identifier, game, generated.problem, source="generated", problem=generated.text, plan=plan)

    def _agentboard(self, path: Path) -> list[Task]:
        return [
            self._task(
                f"agentboard-{each.number}",
                each.game,
                each.problem,
                source="agentboard",
                problem=each.text,
                difficulty=each.difficulty,
            )
            for each in agentboard_games(path, self._incomplete)
        ]

    def _task(self, identifier: str, game: Game, played: Problem, **metadata: object) -> Task:
        phrases = load_phrases(game)
        return Task(
            id=identifier,
            question=f"{phrases.rules}\nTwo more actions change nothing: '{CHECK}' and '{LOOK}'.\n"
            f"Your goal: {' '.join(map(phrases.fact, played.goal))}",
            answers=(),
            benchmark=self.name,
            domain="planning",
            metadata={"game": game, "type": game, **metadata},
        )


@lru_cache(maxsize=1024)
def _ground(path: Path | None, game: Game, text: str) -> GroundProblem:
    domain = load_domain(game) if path is None else agentboard_domain(path, game)
    return ground(parse_problem(text, domain, f"a problem of {game}"))
