"""Calls under way that closing an engine ends: their callers get an error, not a wait without end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rollout.engine import EngineDiedError

T = TypeVar("T")


class OpenCalls:
    """The calls of one engine, whose ``name`` is for the message."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, label: str, call: Coroutine[Any, Any, T]) -> T:
        """Await ``call``; cancelling the caller cancels it.

        Raises:
            EngineDiedError: :meth:`close` came first; or what ``call`` raised.
        """
        task = asyncio.create_task(call)
        self._running.add(task)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            self._running.discard(task)
        if task.cancelled():
            raise EngineDiedError(f"{label}: the {self._name} engine was closed before it answered")
        return task.result()

    async def close(self) -> None:
        """End every call and wait until it has cleaned up."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
