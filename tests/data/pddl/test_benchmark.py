"""The benchmark: generated games are won by their plans, splits share nothing, AgentBoard's files play."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from data.pddl.benchmark import PDDLGames
from data.pddl.generator import SPLITS, belongs, generate
from data.pddl.phrases import GAMES, Game
from data.task import Task

BOARD = Path(__file__).resolve().parents[4] / "shared" / "data" / "agentboard_pddl"
needs_board = pytest.mark.skipif(not BOARD.is_dir(), reason="AgentBoard's files are not here")


@pytest.fixture(scope="module")
def games() -> PDDLGames:
    return PDDLGames()


def wins(games: PDDLGames, task: Task) -> bool:
    """Whether the plan of a generated task wins it, each action possible when it is taken."""
    game = games.environment(task)
    seen = game.reset()
    plan = task.metadata["plan"]
    assert isinstance(plan, list)
    for action in plan:
        assert action in seen.admissible
        seen = game.step(action)
    assert tuple(game.score()) == games.metrics
    return seen.done and game.score() == {"success": 1.0, "progress": 1.0, "grounding": 1.0}


@pytest.mark.parametrize("split", SPLITS)
def test_every_generated_game_is_won_by_its_plan(games: PDDLGames, split: str) -> None:
    for task in games.tasks(split):
        assert wins(games, task), task.id


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_give_other_games_that_are_won(games: PDDLGames, seed: int) -> None:
    other = PDDLGames(seed=seed)
    assert other.tasks("validation") != games.tasks("validation")
    assert all(wins(other, task) for task in other.tasks("validation"))


def test_generation_repeats_itself(games: PDDLGames) -> None:
    assert PDDLGames().tasks("validation") == games.tasks("validation")  # made anew, not remembered


def test_splits_share_no_problem_and_have_the_four_games_in_turn(games: PDDLGames) -> None:
    problems = Counter(str(task.metadata["problem"]) for split in SPLITS for task in games.tasks(split))
    assert set(problems.values()) == {1}
    assert len(games.tasks("test")) == 60
    assert [task.metadata["game"] for task in games.tasks("test")[:5]] == [*GAMES, "gripper"]
    assert len({task.id for task in games.tasks("train")}) == len(games.tasks("train")) == 160


@pytest.mark.parametrize("game", GAMES)
def test_plans_fit_the_steps(game: Game) -> None:
    for problem in islice(generate(game, "train", 5, longest=12), 2):
        assert belongs(problem.text, "train")
        assert 4 <= len(problem.plan) <= 12


def test_a_task_says_rules_and_goal(games: PDDLGames) -> None:
    task = games.tasks("test")[1]
    assert task.benchmark == "pddl_generated"
    assert task.domain == "planning"
    assert "Unstack BLOCK from BLOCK" in task.question
    assert task.question.splitlines()[-1].startswith("Your goal: b")


def test_an_unknown_split_is_named(games: PDDLGames) -> None:
    with pytest.raises(ValueError, match="no split 'dev'; it has train, validation, test"):
        games.tasks("dev")


def test_actions_are_listed_only_when_asked_for(games: PDDLGames) -> None:
    quiet = PDDLGames(list_actions=False)
    assert quiet.environment(games.tasks("test")[0]).reset().admissible == ()


@needs_board
def test_agentboards_games_load_with_their_goals_as_recorded() -> None:
    tasks = PDDLGames(BOARD, incomplete=True).tasks("test")
    assert Counter(task.metadata["game"] for task in tasks) == {
        "gripper": 10,
        "blockworld": 5,
        "barman": 10,
        "tyreworld": 5,
    }
    assert {task.metadata["difficulty"] for task in tasks} == {"easy", "hard"}
    assert tasks[0].id == "agentboard-0"
    assert tasks[0].benchmark == "pddl"


@needs_board
def test_agentboards_tyre_is_changed_by_hand() -> None:
    games = PDDLGames(BOARD, incomplete=True)
    (task,) = (task for task in games.tasks("test") if task.id == "agentboard-50")
    game = games.environment(task)
    game.reset()
    by_hand = (
        "open boot; fetch wrench from boot; fetch jack from boot; fetch pump from boot; fetch r1 from boot; "
        "inflate r1; loosen nuts1 the-hub1; jack-up the-hub1; undo nuts1 the-hub1; remove-wheel w1 the-hub1; "
        "put-on-wheel r1 the-hub1; put-away w1 boot"
    )
    seen = [game.step(action) for action in by_hand.split("; ")]
    assert [each.done for each in seen] == [False] * 11 + [True]
    assert game.score() == {"success": 1.0, "progress": 1.0, "grounding": 1.0}


@needs_board
def test_missing_games_of_agentboard_are_an_error_unless_accepted() -> None:
    with pytest.raises(FileNotFoundError, match=r"lacks 30 of AgentBoard's problems: gripper/prob02\.pddl"):
        PDDLGames(BOARD).tasks("test")


@needs_board
def test_a_record_of_another_problem_is_an_error(tmp_path: Path) -> None:
    shutil.copytree(BOARD, tmp_path / "board")
    records = [json.loads(line) for line in (BOARD / "test.jsonl").read_text().splitlines()]
    records[0]["subgoals"] = ["ball1 is at rooma."]
    (tmp_path / "board" / "test.jsonl").write_text("\n".join(map(json.dumps, records)))
    with pytest.raises(ValueError, match=r"line 1: field 'subgoals' are not the goal of .*prob01\.pddl"):
        PDDLGames(tmp_path / "board", incomplete=True).tasks("test")


def test_agentboards_tasks_need_its_files(games: PDDLGames, tmp_path: Path) -> None:
    task = Task("agentboard-0", "?", (), "pddl", metadata={"game": "gripper", "source": "agentboard", "problem": ""})
    with pytest.raises(ValueError, match="give PDDLGames the path"):
        games.environment(task)
    with pytest.raises(FileNotFoundError, match=r"test\.jsonl"):
        PDDLGames(tmp_path).tasks("test")
