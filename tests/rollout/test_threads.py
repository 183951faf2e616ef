from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rollout.threads import in_thread


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


def test_work_is_done_elsewhere_while_the_loop_goes_on(pool: ThreadPoolExecutor) -> None:
    def blocking(wait: threading.Event, answer: int) -> tuple[int, str]:
        assert wait.wait(10)
        return answer, threading.current_thread().name

    async def run() -> tuple[int, str]:
        wait = threading.Event()
        work = asyncio.create_task(in_thread(pool, blocking, wait, answer=7))
        await asyncio.sleep(0)
        wait.set()  # only a loop that is free gets here
        return await work

    answer, thread = asyncio.run(run())
    assert answer == 7
    assert thread != threading.current_thread().name


def test_an_exception_comes_out_as_it_is(pool: ThreadPoolExecutor) -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(pool, lambda: 1 // 0))


@pytest.mark.parametrize("fails", [False, True])
def test_cancelling_waits_for_what_runs_and_drops_what_does_not(pool: ThreadPoolExecutor, fails: bool) -> None:
    done: list[str] = []
    begun = threading.Event()

    def slow() -> None:
        begun.set()
        time.sleep(0.05)
        done.append("slow")
        if fails:
            raise OSError("too late to matter")

    async def run() -> list[str]:
        first = asyncio.create_task(in_thread(pool, slow))
        second = asyncio.create_task(in_thread(pool, done.append, "never"))
        while not begun.is_set():
            await asyncio.sleep(0)
        for task in (first, second):
            task.cancel()
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(result) for result in results] == [asyncio.CancelledError] * 2
        return list(done)

    assert asyncio.run(run()) == ["slow"]
