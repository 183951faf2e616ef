from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.event_loop import EventLoopThread

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fresh_loop() -> Iterator[EventLoopThread]:
    thread = EventLoopThread()
    yield thread
    thread.close()


async def where() -> tuple[int, asyncio.AbstractEventLoop]:
    return threading.get_ident(), asyncio.get_running_loop()


def test_everything_runs_on_one_other_thread_and_loop(fresh_loop: EventLoopThread) -> None:
    first, second = fresh_loop.run(where()), fresh_loop.run(where())
    assert first == second
    assert first[0] != threading.get_ident()


def test_an_exception_comes_out_as_it_is(fresh_loop: EventLoopThread) -> None:
    async def fails() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        fresh_loop.run(fails())
    assert fresh_loop.run(asyncio.sleep(0, "still there")) == "still there"


def test_several_threads_may_run_at_once(fresh_loop: EventLoopThread) -> None:
    # Each coroutine waits for the other: one after another they would never end.
    async def meet(mine: asyncio.Event, theirs: asyncio.Event) -> None:
        mine.set()
        await theirs.wait()

    one, two = asyncio.Event(), asyncio.Event()
    other = threading.Thread(target=lambda: fresh_loop.run(meet(one, two)))
    other.start()
    fresh_loop.run(asyncio.wait_for(meet(two, one), 10))
    other.join(10)
    assert not other.is_alive()


def test_waiting_for_oneself_is_an_error(fresh_loop: EventLoopThread) -> None:
    async def nested() -> None:
        fresh_loop.run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="await the coroutine there"):
        fresh_loop.run(nested())


def test_a_closed_loop_says_so() -> None:
    thread = EventLoopThread()
    states = [thread.closed]
    for _ in range(2):
        thread.close()
        states.append(thread.closed)
    assert states == [False, True, True]
    with pytest.raises(RuntimeError, match="was closed"):
        thread.run(asyncio.sleep(0))


def test_closing_cancels_what_still_runs() -> None:
    thread, ended = EventLoopThread(), threading.Event()

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def leave_behind() -> asyncio.Task[None]:
        task = asyncio.create_task(background())
        await asyncio.sleep(0)
        return task

    task = thread.run(leave_behind())
    thread.close()
    assert ended.is_set()
    assert task.cancelled()


def test_ctrl_c_cancels_and_waits_for_the_clean_up() -> None:
    """In a process of its own: the signal must reach a main thread that waits in ``run``."""
    code = """
import asyncio, signal
from rollout.event_loop import EventLoopThread

async def job():
    print("started", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.3)
        print("cleaned up", flush=True)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
loop = EventLoopThread()
try:
    loop.run(job())
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(loop.run(asyncio.sleep(0, "usable")), flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"
    sent = time.monotonic()
    os.kill(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    assert out.split("\n") == ["cleaned up", "interrupted", "usable", ""]
    assert time.monotonic() - sent < 20
