"""Steps a second of the PDDL games, reset and step of ALFWorld, on generated problems. CPU only, one at a time.

A step of a PDDL game is a text action that is read and applied, progress and the goal check; listing the possible
actions is timed apart. ALFWorld's figures include the way to its process and back, and the listing; a first game, which
starts the process, is left out. Both play the planner's own commands.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from data.alfworld.benchmark import ALFWorld
from data.environment import Environment
from data.pddl.benchmark import PDDLGames
from data.pddl.phrases import GAMES
from data.task import Task
from eval.bench.result import print_result


@dataclass(frozen=True)
class Timing:
    """Median seconds of a reset and of a step, and steps a second over all steps."""

    reset_s: float
    step_s: float
    steps_s: float


def main(argv: Sequence[str]) -> None:
    """Print one line a world, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench environments", description=__doc__)
    parser.add_argument("--games", type=int, default=10, help="of each PDDL game, and of ALFWorld's in all")
    parser.add_argument("--repeats", type=int, default=20, help="episodes of each PDDL game")
    args = parser.parse_args(argv)
    figures: dict[str, float] = {}
    for game in GAMES:
        bare, listing = (pddl_timing(game, args.games, args.repeats, list_actions) for list_actions in (False, True))
        figures[f"{game}_steps_s"] = bare.steps_s
        print(
            f"{game:<11} {bare.steps_s:9.0f} steps/s, {listing.steps_s:9.0f} with the possible actions listed",
            flush=True,
        )
    alfworld = alfworld_timing(args.games)
    print(f"alfworld    reset {alfworld.reset_s:.2f} s, step {alfworld.step_s * 1000:.1f} ms (medians)", flush=True)
    print_result("environments", **figures, alfworld_reset_s=alfworld.reset_s, alfworld_step_ms=alfworld.step_s * 1000)


def pddl_timing(game: str, games: int, repeats: int, list_actions: bool) -> Timing:
    """The first generated test problems of ``game``, each played ``repeats`` times."""
    world = PDDLGames(list_actions=list_actions)
    tasks = [task for task in world.tasks("test") if task.metadata["game"] == game][:games]
    return timing([(world.environment(task), plan_of(task)) for task in tasks for _ in range(repeats)])


def alfworld_timing(games: int) -> Timing:
    """Generated test games, the types in turn."""
    world = ALFWorld(processes=1)
    tasks = world.tasks("test")
    timing([(world.environment(tasks[0]), plan_of(tasks[0]))])
    spread = tasks[:: max(1, len(tasks) // games)][:games]
    return timing([(world.environment(task), plan_of(task)) for task in spread])


def plan_of(task: Task) -> list[str]:
    """The commands that win a generated game."""
    plan = task.metadata["plan"]
    assert isinstance(plan, list)
    return plan


def timing(episodes: Sequence[tuple[Environment, Sequence[str]]]) -> Timing:
    """Play every plan to its end. Raises ``RuntimeError`` when one does not win: then the figures mean nothing."""
    resets, steps = [], []
    for environment, plan in episodes:
        started = time.perf_counter()
        environment.reset()
        resets.append(time.perf_counter() - started)
        for action in plan:
            started = time.perf_counter()
            environment.step(action)
            steps.append(time.perf_counter() - started)
        if environment.score()["success"] != 1:
            raise RuntimeError(f"a plan of {len(plan)} steps does not win its game: {environment.score()}")
        environment.close()
    return Timing(median(resets), median(steps), len(steps) / sum(steps))
