"""Many coroutines at once whose results come in the order in which they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def in_order(
    jobs: Iterable[Coroutine[Any, Any, T]], most: int, room: asyncio.Semaphore, emit: Callable[[T], None]
) -> None:
    """Run ``jobs``, at most ``most`` at once, and ``emit`` each result after those of all jobs before it.

    A job is taken from ``jobs`` only when it can start, so that ten thousand of them are not ten thousand coroutines.
    Each holds one place of ``room`` from its start on; whoever consumes the results gives places back, and so bounds
    how many results pile up behind a slow job or before a slow consumer.

    The first exception, or a cancellation from outside, cancels the jobs that run. What has finished is emitted then
    too, still in order, with gaps.
    """
    numbered = enumerate(jobs)
    waiting: dict[int, T] = {}
    emitted = 0

    async def work() -> None:
        nonlocal emitted
        while True:
            await room.acquire()
            place, job = next(numbered, (-1, None))
            if job is None:
                room.release()
                return
            waiting[place] = await job
            while emitted in waiting:
                emitted += 1
                emit(waiting.pop(emitted - 1))

    workers = [asyncio.create_task(work()) for _ in range(most)]
    try:
        await asyncio.gather(*workers)
    finally:
        await cancel(workers)
        for place in sorted(waiting):
            emit(waiting.pop(place))


async def cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """End what still runs and wait for it to clean up."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
