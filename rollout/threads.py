"""Blocking calls (a world's step, a sandboxed test) kept off the event loop that feeds the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(pool: Executor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """``work(*args)`` on a thread of ``pool``.

    A cancellation drops what has not begun and waits for what has: no thread works on for an episode that is gone, and
    an environment is never closed under a step that still runs.
    """
    job = pool.submit(work, *args, **kwargs)
    result = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        if not job.cancel():
            await asyncio.gather(result, return_exceptions=True)
        raise
