"""Episodes of teams come in the order in which they were asked for, and one failure does not take the others along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from data.task import Task
from rollout.admission import Variant
from rollout.engine import EngineDiedError
from rollout.play_teams import play_teams
from rollout.teams import MakeAdmission
from rollout.teams_episode import TeamsEpisode

TASKS = [Task(f"t{place}", "?", ("1",), "test") for place in range(3)]


@dataclass
class Timed:
    """Later tasks take less time. ``fails`` says why an episode fails."""

    fails: Callable[[Task], str | None] = lambda task: None
    dies_at: str = ""
    running: int = 0
    most: int = 0
    cancelled: list[str] = field(default_factory=list)

    async def episode(
        self, task: Task, member: int, seed: int, variant: Variant, controller: MakeAdmission | None = None
    ) -> TeamsEpisode:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.01 * (3 - int(task.id[1])))
            if task.id == self.dies_at:
                raise EngineDiedError("gone")
        except asyncio.CancelledError:
            self.cancelled.append(task.id)
            raise
        finally:
            self.running -= 1
        score = {"right": 0.0 if self.fails(task) else 1.0}
        made = TeamsEpisode(task, member, (), 0, "", score, score, (), (), (), 1.0, False, 1.0)
        return replace(made, failure=self.fails(task))

    async def close(self) -> None:
        """Nothing."""


def play(teams: Timed, at_once: int = 2) -> tuple[list[TeamsEpisode], list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    made = play_teams(teams, TASKS, 2, 0, "none", None, at_once, lambda _, done, total: told.append((done, total)))
    return asyncio.run(made), told


@pytest.mark.parametrize("at_once", [1, 2, 10])
def test_task_by_task_member_by_member_and_never_too_many(at_once: int) -> None:
    teams = Timed()
    played, told = play(teams, at_once)
    assert [(each.task.id, each.member) for each in played] == [(f"t{t}", m) for t in range(3) for m in range(2)]
    assert teams.most == min(at_once, 6)
    assert told == [(done, 6) for done in range(1, 7)]


def test_a_failed_episode_stays_among_the_others() -> None:
    played, _ = play(Timed(fails=lambda task: "no aggregate" if task.id == "t1" else None))
    assert [each.failure for each in played] == [None, None, "no aggregate", "no aggregate", None, None]


def test_when_all_fail_the_run_ends_with_the_reasons() -> None:
    with pytest.raises(
        RuntimeError, match=r"all 6 episodes failed; the first reasons:\n  task t0: engine: t0 too long"
    ):
        play(Timed(fails=lambda task: f"engine: {task.id} too long"))


def test_a_dead_engine_cancels_the_rest() -> None:
    teams = Timed(dies_at="t2")
    with pytest.raises(EngineDiedError):
        play(teams, 10)
    assert sorted(teams.cancelled) == ["t0", "t0", "t1", "t1"]
    assert teams.running == 0
