from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.in_order import in_order


async def after(turns: int, value: int) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    return value


@given(
    turns=st.lists(st.integers(0, 9), max_size=30),
    most=st.integers(1, 8),
    room=st.integers(1, 8),
)
@settings(deadline=None)
def test_results_come_in_the_order_asked_for_whatever_the_limits(turns: list[int], most: int, room: int) -> None:
    async def run() -> list[int]:
        places, emitted = asyncio.Semaphore(room), []

        def emit(value: int) -> None:
            emitted.append(value)
            places.release()

        await in_order((after(wait, value) for value, wait in enumerate(turns)), most, places, emit)
        return emitted

    assert asyncio.run(run()) == list(range(len(turns)))


@given(most=st.integers(1, 8), room=st.integers(1, 8), seed=st.integers(0, 99))
@settings(deadline=None)
def test_no_more_are_started_than_may_run_or_have_room(most: int, room: int, seed: int) -> None:
    rng = random.Random(seed)
    started, finished, emitted, peaks = 0, 0, 0, [0, 0]

    async def job() -> int:
        nonlocal finished
        value = await after(rng.randrange(6), 0)
        finished += 1
        return value

    def jobs() -> Iterator[Coroutine[Any, Any, int]]:
        nonlocal started
        for _ in range(25):
            started += 1
            peaks[0] = max(peaks[0], started - finished)
            peaks[1] = max(peaks[1], started - emitted)
            yield job()

    async def run() -> None:
        nonlocal emitted
        places = asyncio.Semaphore(room)

        def emit(value: int) -> None:
            nonlocal emitted
            emitted += 1
            places.release()

        await in_order(jobs(), most, places, emit)

    asyncio.run(run())
    assert emitted == 25
    assert peaks[0] <= most
    assert peaks[1] <= room


def test_without_room_nothing_starts_until_a_consumer_gives_some_back() -> None:
    async def run() -> tuple[list[int], list[int]]:
        emitted: list[int] = []
        room = asyncio.Semaphore(2)
        running = asyncio.create_task(in_order((after(0, n) for n in range(5)), 4, room, emitted.append))
        await after(50, 0)
        before = list(emitted)
        for _ in range(5):
            room.release()
        await running
        return before, emitted

    assert asyncio.run(run()) == ([0, 1], [0, 1, 2, 3, 4])


@pytest.mark.parametrize("end", ["error", "cancellation"])
def test_what_finished_is_emitted_when_the_rest_is_broken_off(end: str) -> None:
    """Jobs 1 and 3 are done, 0 never is, 2 runs or fails: 1 and 3 are kept, in order."""
    emitted: list[int] = []
    cleaned: list[int] = []

    async def endless(value: int) -> int:
        try:
            return await after(10**9, value)
        finally:
            cleaned.append(value)

    async def failing() -> int:
        await after(20, 0)
        raise KeyError("lost")

    async def run() -> None:
        jobs = [endless(0), after(9, 1), failing() if end == "error" else endless(2), after(3, 3)]
        running = asyncio.create_task(in_order(iter(jobs), 4, asyncio.Semaphore(9), emitted.append))
        await after(40, 0)
        running.cancel()
        await running

    with pytest.raises(KeyError if end == "error" else asyncio.CancelledError):
        asyncio.run(run())
    assert emitted == [1, 3]
    assert cleaned == ([0] if end == "error" else [0, 2])


def test_jobs_that_were_never_started_are_never_made() -> None:
    made: list[int] = []

    async def fails() -> int:
        raise KeyError("lost")

    def jobs() -> Iterator[Coroutine[Any, Any, int]]:
        for number in range(100):
            made.append(number)
            yield fails()

    with pytest.raises(KeyError):
        asyncio.run(in_order(jobs(), 2, asyncio.Semaphore(100), lambda value: None))
    assert made == [0, 1]
