"""K teams over one bank: who sees what when, who was first, what is recorded; with scripted teams and deciders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.task import Score, Task
from rollout.admission import AddAll, Candidate, Verdict
from rollout.clock import WallClock
from rollout.engine import EngineDiedError
from rollout.failure import EpisodeError
from rollout.gym.clock import SimulatedClock
from rollout.teams import Seat, Sharing, run_teams
from rollout.teams_episode import TeamResult, TeamsEpisode, episode_from_dict, episode_to_dict

TASK = Task("t", "Which number?", ("7",), "test")


def score(task: Task, answer: str) -> Score:
    return {"right": float(answer == task.answers[0])}


async def summarise(team: int, instruction: str, output: str) -> str:
    return f"{team}: {output}"


async def last_answer(task: Task, results: Sequence[TeamResult]) -> str:
    return results[-1].answer


class Scripted:
    """A team of one line a step; each takes a second of simulated time."""

    def __init__(self, clock: SimulatedClock, outputs: Sequence[str], answer: str, wants: str = "") -> None:
        self.clock, self.outputs, self.answer, self.wants = clock, outputs, answer, wants
        self.read: list[str] = []
        self.shown: list[tuple[str, ...]] = []

    async def run(self, task: Task, seat: Seat) -> str:
        for output in self.outputs:
            keys = seat.keys()
            self.shown.append(keys)
            places = [place for place, key in enumerate(keys) if self.wants and self.wants in key]
            self.read += seat.select(places)
            await self.clock.sleep(seat.team, 1.0)
            seat.spend(10)
            await seat.admit("look", output)
            if seat.exhausted:
                break
        self.clock.leave()
        return self.answer


class Only:
    """Admits outputs that hold a word."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def decide(self, candidate: Candidate) -> Verdict:
        return Verdict(self.word in candidate.output, 0.75)


def play(
    make: Callable[[SimulatedClock], Sequence[Scripted]], sharing: Sharing | None, max_steps: int = 30
) -> tuple[TeamsEpisode, Sequence[Scripted]]:
    async def run() -> tuple[TeamsEpisode, Sequence[Scripted]]:
        teams = make(clock := SimulatedClock(2))
        return await run_teams(TASK, teams, sharing, last_answer, score, clock, max_steps), teams

    return asyncio.run(run())


def two(clock: SimulatedClock) -> list[Scripted]:
    return [Scripted(clock, ["a1", "a2", "a3"], "7"), Scripted(clock, ["b1", "b2"], "8", wants="a1")]


def test_without_sharing_no_team_sees_anything() -> None:
    episode, teams = play(two, None)
    assert all(shown == () for team in teams for shown in team.shown)
    assert (episode.entries, episode.uses, episode.admissions) == ((), (), ())
    assert [len(result.steps) for result in episode.results] == [3, 2]


def test_teams_see_what_others_shared_before_their_next_step() -> None:
    episode, (_, second) = play(two, Sharing(AddAll(), summarise))
    assert second.shown[1] == ("0: a1", "1: b1")  # at second 1, team 0 first
    assert second.read == ["a1"]
    assert [(entry.value, entry.team, entry.step, entry.time_s) for entry in episode.entries][:2] == [
        ("a1", 0, 0, 1.0),
        ("b1", 1, 0, 1.0),
    ]
    assert [(use.entry, use.team, use.step) for use in episode.uses] == [(0, 1, 1)]
    assert episode.used(by_other_team=True) == {0}


def test_the_first_team_and_the_aggregate_are_scored_apart() -> None:
    episode, _ = play(two, None)
    assert (episode.first, episode.score_first["right"]) == (1, 0.0)  # two steps, answer 8
    assert episode.answer == "8"
    assert episode.score["right"] == 0.0
    turned, _ = play(lambda clock: [*reversed(two(clock))], None)
    assert (turned.first, turned.answer, turned.score["right"]) == (0, "7", 1.0)


def test_a_rejected_step_is_on_record_and_not_in_the_bank() -> None:
    episode, _ = play(two, Sharing(Only("a"), summarise))
    assert [entry.value for entry in episode.entries] == ["a1", "a2", "a3"]
    told = [(step.output, step.seen, step.admitted, step.entry) for step in episode.admissions]
    assert told == [
        ("a1", 0, True, 0),
        ("b1", 1, False, None),
        ("a2", 1, True, 1),
        ("b2", 2, False, None),
        ("a3", 2, True, 2),
    ]
    assert {step.probability for step in episode.admissions} == {0.75}


@given(st.integers(1, 5))
def test_no_team_exceeds_its_steps(limit: int) -> None:
    episode, _ = play(two, None, max_steps=limit)
    assert [len(result.steps) for result in episode.results] == [min(3, limit), min(2, limit)]
    assert [result.stop == "step_limit" for result in episode.results] == [limit <= 3, limit <= 2]


def test_a_step_over_the_limit_is_refused() -> None:
    class Greedy(Scripted):
        async def run(self, task: Task, seat: Seat) -> str:
            await seat.admit("look", "1")
            await seat.admit("look", "2")
            return ""

    with pytest.raises(RuntimeError, match="team 0 took a step after its limit of 1"):
        play(lambda clock: [Greedy(clock, [], "")], None, max_steps=1)


def test_what_a_team_raises_ends_the_episode_and_cancels_the_others() -> None:
    cancelled = []

    class Waits(Scripted):
        async def run(self, task: Task, seat: Seat) -> str:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(seat.team)
                raise
            return ""

    class Fails(Scripted):
        async def run(self, task: Task, seat: Seat) -> str:
            raise ConnectionError("engine gone")

    with pytest.raises(ConnectionError, match="engine gone"):
        play(lambda clock: [Waits(clock, [], ""), Fails(clock, [], "")], None)
    assert cancelled == [0]


def broken(*failing: int) -> TeamsEpisode:
    """Two teams that answer 7 after 2 s and 8 after 1 s, of which ``failing`` break off after their steps."""

    class Breaks(Scripted):
        async def run(self, task: Task, seat: Seat) -> str:
            answer = await super().run(task, seat)
            if seat.team in failing:
                raise EpisodeError(f"engine: team {seat.team} got no answer")
            return answer

    return play(lambda clock: [Breaks(clock, ["a1", "a2"], "7"), Breaks(clock, ["b1"], "8")], None)[0]


def test_a_team_that_breaks_off_is_on_record_and_the_others_go_on() -> None:
    episode = broken(1)
    assert [(result.stop, result.answer) for result in episode.results] == [("answered", "7"), ("failed", "")]
    assert episode.results[1].failure == "engine: team 1 got no answer"
    assert len(episode.results[1].steps) == 1
    assert (episode.first, episode.score_first["right"]) == (0, 1.0)  # though team 1 ended earlier
    assert episode.failure is None
    assert episode_from_dict(json.loads(json.dumps(episode_to_dict(episode)))) == episode


def test_without_any_team_left_nothing_is_aggregated() -> None:
    episode = broken(0, 1)
    assert (episode.answer, episode.score["right"]) == ("", 0.0)
    assert episode.failure == "all teams failed, the first: engine: team 0 got no answer"


def test_an_aggregate_that_fails_leaves_the_teams_answers_scored() -> None:
    async def fails(task: Task, results: Sequence[TeamResult]) -> str:
        raise EpisodeError("engine: cut short")

    async def run() -> TeamsEpisode:
        clock = SimulatedClock(1)
        return await run_teams(TASK, [Scripted(clock, ["a"], "7")], None, fails, score, clock)

    episode = asyncio.run(run())
    assert (episode.answer, episode.failure) == ("", "engine: cut short")
    assert (episode.score["right"], episode.score_first["right"]) == (0.0, 1.0)


def test_no_teams_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one team"):
        asyncio.run(run_teams(TASK, [], None, last_answer, score, WallClock()))


def test_real_time_is_the_wall_clock() -> None:
    class Sleeps:
        async def run(self, task: Task, seat: Seat) -> str:
            await asyncio.sleep(0.02)
            return "7"

    episode = asyncio.run(run_teams(TASK, [Sleeps()], None, last_answer, score, WallClock()))
    assert not episode.simulated
    assert 0.01 < episode.results[0].finished_s <= episode.runtime_s


def test_an_episode_survives_json() -> None:
    episode, _ = play(two, Sharing(Only("a"), summarise))
    assert episode_from_dict(json.loads(json.dumps(episode_to_dict(episode)))) == episode


def test_every_coroutine_of_the_simulated_clock_wakes_in_order_of_time() -> None:
    woken: list[tuple[float, int]] = []

    async def sleeper(clock: SimulatedClock, who: int, naps: Sequence[float]) -> None:
        for nap in naps:
            await clock.sleep(who, nap)
            woken.append((clock.now(), who))
        clock.leave()

    async def run() -> None:
        clock = SimulatedClock(3)
        naps: list[Awaitable[None]] = [
            sleeper(clock, 0, [3.0, 1.0]),
            sleeper(clock, 1, [1.0, 1.0, 1.0]),
            sleeper(clock, 2, [2.5]),
        ]
        await asyncio.gather(*naps)

    asyncio.run(run())
    assert woken == [(1.0, 1), (2.0, 1), (2.5, 2), (3.0, 0), (3.0, 1), (4.0, 0)]


def test_a_dead_engine_ends_the_run() -> None:
    class Dead(Scripted):
        async def run(self, task: Task, seat: Seat) -> str:
            raise EngineDiedError("gone")

    with pytest.raises(EngineDiedError, match="gone"):
        play(lambda clock: [Scripted(clock, [], "7"), Dead(clock, [], "")], None)
