"""Many episodes of parallel teams, some at once, in the order in which they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from data.task import Task
from rollout.admission import Variant
from rollout.failure import check_any_aggregate
from rollout.in_order import in_order
from rollout.teams import MakeAdmission, ParallelTeams
from rollout.teams_episode import TeamsEpisode


async def play_teams(
    teams: ParallelTeams,
    tasks: Sequence[Task],
    group_size: int,
    seed: int,
    variant: Variant,
    controller: MakeAdmission | None,
    max_concurrent: int,
    on_episode: Callable[[TeamsEpisode, int, int], None] | None = None,
) -> list[TeamsEpisode]:
    """``group_size`` episodes of every task, task by task, member by member.

    Args:
        max_concurrent: episodes at once.
        on_episode: told (the episode, episodes finished, episodes in all), in that order of tasks and members.

    Raises:
        RuntimeError: all of them failed. One that failed among others has the scores of an empty answer.
        EngineDiedError: nobody can be served; the other episodes are cancelled.
    """
    played: list[TeamsEpisode] = []
    total = len(tasks) * group_size
    room = asyncio.Semaphore(max(1, total))

    def keep(episode: TeamsEpisode) -> None:
        played.append(episode)
        room.release()
        if on_episode is not None:
            on_episode(episode, len(played), total)

    members = ((task, member) for task in tasks for member in range(group_size))
    jobs = (teams.episode(task, member, seed, variant, controller) for task, member in members)
    await in_order(jobs, max_concurrent, room, keep)
    check_any_aggregate(played)
    return played
