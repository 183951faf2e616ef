"""ALFWorld in its real engine: bundled households are won by their plans, in both wordings, for every task type."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.alfworld import process
from data.alfworld.benchmark import ALFWorld
from data.alfworld.build import prove
from data.alfworld.game import ALFWorldGame
from data.alfworld.household import TASK_TYPES
from data.alfworld.names import readable_names
from data.alfworld.process import EnginePool, EngineProcess
from data.environment import Environment, Observation
from data.task import Task

pytestmark = pytest.mark.skipif(find_spec("textworld") is None, reason="ALFWorld is not installed: make alfworld")


@pytest.fixture(scope="module")
def world() -> ALFWorld:
    return ALFWorld(processes=1)


def of_type(world: ALFWorld, type_: str, split: str = "test") -> Task:
    return next(task for task in world.tasks(split) if task.metadata["type"] == type_)


def plan_of(task: Task) -> list[str]:
    plan = task.metadata["plan"]
    assert isinstance(plan, list)
    return plan


def play(game: Environment, plan: list[str]) -> list[Observation]:
    """Each command of the plan, admissible when it is given."""
    seen = [game.reset()]
    for command in plan:
        assert command in seen[-1].admissible
        seen.append(game.step(command))
    return seen


@pytest.mark.parametrize("type_", TASK_TYPES)
def test_a_household_of_each_type_is_won_by_its_plan(world: ALFWorld, type_: str) -> None:
    task = of_type(world, type_)
    game = world.environment(task)
    seen = play(game, plan_of(task))
    assert [each.done for each in seen] == [False] * len(plan_of(task)) + [True]
    assert game.score() == dict.fromkeys(world.metrics, 1.0)
    game.close()


def test_the_bundle_has_every_type_and_plans_that_fit(world: ALFWorld) -> None:
    for split, count in (("train", 10), ("validation", 2), ("test", 10)):
        tasks = world.tasks(split)
        assert Counter(task.metadata["type"] for task in tasks) == dict.fromkeys(TASK_TYPES, count)
        assert len({task.id for task in tasks}) == len(tasks)
        assert all(4 <= len(plan_of(task)) <= 30 for task in tasks)
        assert all("textworld 1.7" in str(task.metadata["engine"]) for task in tasks)


def test_the_planner_proves_a_household_again(world: ALFWorld) -> None:
    task = of_type(world, "look_at_obj_in_light")
    line = prove(EnginePool(1), "look_at_obj_in_light", str(task.metadata["seed"]))
    assert line is not None
    assert line["plan"] == plan_of(task)


def test_both_wordings_are_understood_and_one_is_shown(world: ALFWorld) -> None:
    task = of_type(world, "pick_and_place_simple")
    plan = plan_of(task)
    assert plan[-1].startswith("move ")
    for grammar, verb in (("move", "move"), ("put", "put")):
        shown = ALFWorld(grammar="put" if grammar == "put" else "move", processes=1)
        game = ALFWorldGame(world._engines, shown._data(task), shown._grammar, 30, True)
        seen = game.reset()
        for command in plan[:-1]:
            seen = game.step(command)
        assert any(command.startswith(f"{verb} ") and command != verb for command in seen.admissible)
        thing, _, place = plan[-1].removeprefix("move ").partition(" to ")
        other = f"put {thing} in/on {place}" if grammar == "move" else plan[-1]
        assert game.step(other).text.startswith(f"You {verb} the {thing}")
        assert game.score()["success"] == 1.0
        game.close()


def test_mistakes_cost_a_step_and_the_last_step_is_no_success(world: ALFWorld) -> None:
    task = of_type(world, "pick_heat_then_place_in_recep")
    game = ALFWorldGame(world._engines, world._data(task), "move", max_steps=4, list_actions=False)
    assert game.reset().admissible == ()
    assert game.step("dance").text.startswith("Nothing happens. That is no command: one starts with look, inventory")
    assert game.step("go to the moon").text == "Nothing happens."
    assert game.step("look").text.startswith("You are in the middle of a room.")
    assert game.step("inventory").done
    assert game.score() == {"success": 0.0, "grounding": 0.5}
    with pytest.raises(RuntimeError, match="the episode is over"):
        game.step("look")
    again = game.reset()
    assert not again.done
    assert game.score() == {"success": 0.0, "grounding": 0.0}
    game.close()
    game.close()


@settings(deadline=None, max_examples=5, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_erratic_agent_breaks_nothing(world: ALFWorld, data: st.DataObject) -> None:
    game = world.environment(of_type(world, "pick_two_obj_and_place"))
    seen = game.reset()
    for _ in range(8):
        seen = game.step(data.draw(st.sampled_from(seen.admissible) | st.text(max_size=30)))
        assert all(0.0 <= value <= 1.0 for value in game.score().values())
        if seen.done:
            break
    game.close()


def test_games_in_one_engine_do_not_meet(world: ALFWorld) -> None:
    one, two = (of_type(world, type_) for type_ in TASK_TYPES[:2])
    first, second = world.environment(one), world.environment(two)
    start = second.reset()
    first.reset()
    first.step(plan_of(one)[0])
    assert second.step("inventory").admissible == start.admissible
    assert play(first, plan_of(one))[-1].done  # reset begins anew
    first.close()
    second.close()


def test_games_are_played_as_textworld_plays_them(world: ALFWorld) -> None:
    """Our engine loads a game and words its commands by a shorter way; TextWorld's own must come to the same."""
    import textworld
    from textworld.envs.pddl import PddlEnv

    task = of_type(world, "look_at_obj_in_light")
    plain = PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True))
    plain.load(dict(world._data(task)))
    names = readable_names([info.id for info in plain._entity_infos.values()])
    for info in plain._entity_infos.values():
        info.name = names[info.id]
    game = world.environment(task)
    seen, state = game.reset(), plain.reset()
    for command in plan_of(task):
        assert (seen.text, list(seen.admissible)) == (state.feedback.strip(), state["admissible_commands"])
        seen, (state, _, _) = game.step(command), plain.step(command)
    assert (seen.text, seen.done) == (state.feedback.strip(), state["won"]) == (seen.text, True)
    game.close()


def longest_lag(world: ALFWorld) -> float:
    """Seconds that an event loop came late at most, while four games are played in threads."""
    tasks = [of_type(world, type_) for type_ in TASK_TYPES[:4]]

    async def lags() -> list[float]:
        playing = [asyncio.to_thread(play, world.environment(task), plan_of(task)) for task in tasks]
        running, measured = asyncio.gather(*playing), []
        while not running.done():
            before = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.001)
            # Whichever is less: another process that takes the core is no fault of ours, nor is our own idling.
            measured.append(min(time.perf_counter() - before[0] - 0.001, time.process_time() - before[1]))
        assert all(seen[-1].done for seen in await running)
        return measured

    return max(asyncio.run(lags()))


def test_the_event_loop_keeps_turning_while_games_are_played(world: ALFWorld) -> None:
    """A busy machine may delay a thread now and then; a game that held the loop up would do so each time."""
    assert any(longest_lag(world) < 0.020 for _ in range(3))


def test_an_engine_that_ends_says_why() -> None:
    engine = EngineProcess()
    with pytest.raises(RuntimeError, match=r"ended with status 1 on \{.*\"juggle\"\}: (.|\n)*unknown call 'juggle'"):
        engine.call(call="juggle")
    with pytest.raises(RuntimeError, match="ended with status 1"):
        engine.call(call="close", game=0)


def test_published_games_are_read_sorted_and_counted(world: ALFWorld, tmp_path: Path) -> None:
    task = of_type(world, "pick_and_place_simple")
    data = {**world._data(task), "solvable": True}
    for name in (
        "pick_and_place_simple-B/trial_2",
        "pick_and_place_simple-A/trial_1",
        "pick_and_place_simpleSliced-C/t",
    ):
        folder = tmp_path / "valid_unseen" / name
        folder.mkdir(parents=True)
        (folder / "game.tw-pddl").write_text(json.dumps(data))
    unsolved = tmp_path / "valid_unseen" / "look_at_obj_in_light-D" / "t"
    unsolved.mkdir(parents=True)
    (unsolved / "game.tw-pddl").write_text(json.dumps({**data, "solvable": False}))
    with pytest.raises(ValueError, match="has 2 solvable games where 134 are published"):
        ALFWorld(tmp_path).tasks("test")
    published = ALFWorld(tmp_path, incomplete=True, processes=1)
    found = published.tasks("test")
    assert [each.id for each in found] == ["pick_and_place_simple-A/trial_1", "pick_and_place_simple-B/trial_2"]
    assert found[0].question.splitlines()[-1] == task.question.splitlines()[-1]
    assert play(published.environment(found[0]), plan_of(task))[-1].done
    with pytest.raises(FileNotFoundError, match="json_2"):
        published.tasks("train")
    with pytest.raises(ValueError, match="give ALFWorld the path"):
        world.environment(found[0])


def test_a_stale_bundle_is_an_error(world: ALFWorld, tmp_path: Path) -> None:
    seed = str(of_type(world, "pick_and_place_simple").metadata["seed"])
    line = {"split": "test", "type": "pick_and_place_simple", "seed": seed, "checksum": "0", "plan": []}
    (tmp_path / "own.jsonl").write_text(json.dumps(line))
    with pytest.raises(ValueError, match=r"line 1: field 'checksum' is of another problem: run python -m"):
        ALFWorld(households=tmp_path / "own.jsonl").tasks("test")


def test_a_missing_package_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_PACKAGES", ("alfworld", "no-such-planner"))
    with pytest.raises(ModuleNotFoundError, match="needs no-such-planner, which is not installed: run `make alfworld`"):
        ALFWorld().tasks("test")


def test_unknown_splits_and_no_engines_are_refused(world: ALFWorld) -> None:
    with pytest.raises(ValueError, match="no split 'dev'; it has train, validation, test"):
        world.tasks("dev")
    with pytest.raises(ValueError, match="at least 1 engine process, got 0"):
        ALFWorld(processes=0)
