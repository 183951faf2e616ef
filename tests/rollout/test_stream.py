"""Trajectories one by one: the same as those of a run, and none of them kept."""

from __future__ import annotations

import asyncio
import functools
import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from data.task import Task
from data.trajectory import Trajectory
from rollout.engine import EngineDiedError
from rollout.event_loop import EventLoopThread
from rollout.mas.macnet import MacNet
from rollout.replay_engine import ReplayEngine
from rollout.runner import AHEAD, EpisodeRunner
from rollout.trace import TraceWriter
from rollout.trace_reader import read_trace
from tests.rollout.parts import PHASE, TASKS, FixedMemory, identity, make_runner
from tests.rollout.watched_engine import WatchedEngine


@pytest.fixture
def make(loop: EventLoopThread) -> Callable[..., EpisodeRunner]:
    return functools.partial(make_runner, loop)


def many(count: int) -> list[Task]:
    return [replace(TASKS[0], id=f"t{n}") for n in range(count)]


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_a_stream_gives_what_a_run_gives(make: Callable[..., EpisodeRunner], limit: int, tmp_path: Path) -> None:
    expected = make(WatchedEngine(), MacNet()).run(TASKS, 3, PHASE, FixedMemory("Lima"))
    writer, seen = TraceWriter(tmp_path / "trace.jsonl"), []
    runner = make(WatchedEngine(delays=30), MacNet(), trace=writer, max_concurrent=limit)
    stream = runner.stream(TASKS, 3, PHASE, FixedMemory("Lima"), lambda *counts: seen.append(counts))
    assert list(stream) == expected
    assert seen == [(done, 12) for done in range(1, 13)]
    assert sum(1 for _ in read_trace(writer.path)) == 12 * (5 + 1)


def test_no_task_is_an_empty_stream(make: Callable[..., EpisodeRunner]) -> None:
    assert list(make(WatchedEngine()).stream([], 2, PHASE, None)) == []


def test_a_slow_consumer_holds_the_episodes_back(make: Callable[..., EpisodeRunner], loop: EventLoopThread) -> None:
    engine = WatchedEngine()
    stream = make(engine, max_concurrent=2).stream(many(50), 1, PHASE, None)
    assert next(stream).task.id == "t0"
    loop.run(asyncio.sleep(0.05))  # time enough for all, if they were allowed
    started = {request.label.split(",")[0] for request in engine.asked}
    # Those on the shelf that the first one came from were handed over with it: they may be as many again.
    assert len(started) <= 2 * AHEAD * 2
    assert [made.task.id for made in stream] == [f"t{n}" for n in range(1, 50)]


def test_leaving_a_stream_cancels_what_runs(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine(delays=500)
    runner = make(engine, max_concurrent=3)
    for made in runner.stream(many(20), 1, PHASE, None):
        assert made.task.id == "t0"
        break
    gc.collect()
    assert engine.in_flight == 0
    assert len(engine.asked) < 40
    assert [identity(made) for made in runner.run(TASKS[:1], 1, PHASE, None)] == [("t0", 0)]


def test_a_dead_engine_ends_the_stream_after_what_had_finished(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine(fails=lambda request: "task t3," in request.label, error=EngineDiedError)
    stream = make(engine, max_concurrent=1).stream(many(9), 1, PHASE, None)
    seen: list[str] = []

    def read() -> None:
        for made in stream:
            seen.append(made.task.id)

    with pytest.raises(EngineDiedError, match="task t3"):
        read()
    assert seen == ["t0", "t1", "t2"]
    assert engine.in_flight == 0


def live_trajectories() -> int:
    gc.collect()
    return sum(type(each) is Trajectory for each in gc.get_objects())


def test_finished_episodes_are_not_kept(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    runner = make(ReplayEngine(script=lambda request: "Lima"), trace=writer, max_concurrent=4)
    before, most = live_trajectories(), 0
    for number, _ in enumerate(runner.stream(many(200), 1, PHASE, None)):
        if number % 60 == 59:
            most = max(most, live_trajectories() - before)
    assert most <= 2 * AHEAD * 4 + 1
    assert sum(1 for _ in read_trace(writer.path)) == 200 * 3


def test_memory_does_not_grow_with_the_number_of_episodes(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    engine = ReplayEngine(script=lambda request: "x" * 500)
    runner = make(engine, trace=TraceWriter(tmp_path / "trace.jsonl"), max_concurrent=4, max_tokens=999)

    def peak(episodes: int) -> int:
        tasks = many(episodes)
        gc.collect()
        tracemalloc.start()
        for _ in runner.stream(tasks, 1, PHASE, None):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(20)
    few, more = peak(40), peak(200)
    assert more < 1.5 * few  # 5 times as many
