"""A world acted in step by step: show the agents what happened, take their answer as the action, until it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from data.environment import Environment, Observation, World
from data.task import Score, Task
from rollout.failure import STEP_LIMIT, blame
from rollout.settings import RolloutSettings
from rollout.threads import in_thread

POSSIBLE = "Possible actions:"
"""What the list of admissible actions begins with, where the world gives one."""


@dataclass(frozen=True)
class Turn:
    """An action and the text that the world answered with."""

    action: str
    result: str


@dataclass(frozen=True)
class Ending:
    """How an episode came to its end. ``failure`` as in :class:`data.trajectory.Trajectory`."""

    answer: str
    score: Score
    failure: str | None = None


async def act_out(
    task: Task, world: World, settings: RolloutSettings, play: Callable[[Task], Awaitable[str]], pool: Executor
) -> Ending:
    """One episode of ``task``: ``play`` is one run of the MAS, the first line of its answer is the action.

    The environment works on threads of ``pool`` and is closed whatever happens.

    Raises:
        EpisodeError: ``play`` or the environment failed.
        EngineDiedError: from ``play``.
    """
    with blame("environment"):
        environment = await in_thread(pool, world.environment, task)
        try:
            return await _until_done(task, world.max_steps, environment, settings, play, pool)
        finally:
            await in_thread(pool, environment.close)


async def _until_done(
    task: Task,
    max_steps: int,
    environment: Environment,
    settings: RolloutSettings,
    play: Callable[[Task], Awaitable[str]],
    pool: Executor,
) -> Ending:
    start = now = await in_thread(pool, environment.reset)
    turns: list[Turn] = []
    while not now.done and len(turns) < max_steps:
        question = world_question(task.question, start, turns[-settings.history :], now)
        choices = now.admissible if settings.constrained_actions else ()
        action = first_line(await play(replace(task, question=question, choices=choices)))
        now = await in_thread(pool, environment.step, action)
        turns.append(Turn(action, now.text))
    score = await in_thread(pool, environment.score)
    failure = None if now.done else f"{STEP_LIMIT}: not done after {max_steps} actions"
    return Ending("\n".join(turn.action for turn in turns), score, failure)


def world_question(goal: str, start: Observation, turns: Sequence[Turn], now: Observation) -> str:
    """What the agents are asked at one step: goal, first observation, the last ``turns``, what is possible now."""
    parts = [goal, start.text]
    if turns:
        parts.append(
            "What was done last, and what came of it:\n" + "\n".join(f"> {t.action}\n{t.result}" for t in turns)
        )
    if now.admissible:
        parts.append("\n".join([POSSIBLE, *now.admissible]))
    parts.append("Give the next action only, on one line.")
    return "\n\n".join(part.strip() for part in parts)


def first_line(answer: str) -> str:
    """The first line of ``answer`` that says something, empty when none does."""
    return next((line.strip() for line in answer.splitlines() if line.strip()), "")
