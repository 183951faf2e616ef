"""One event loop on one thread, so that synchronous code (a ``training_step``) can drive asynchronous engines.

vLLM's ``AsyncLLM`` belongs to the loop on which it was started; every rollout of a run goes through the same loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

CANCEL_GRACE_S = 10.0
"""How long an interrupted caller waits for its coroutine to clean up (requests aborted, siblings cancelled)."""


class EventLoopThread:
    """Runs coroutines for a caller that has no loop. Not for use from inside the coroutines it runs."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="rollout-loop", daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return not self._thread.is_alive()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Block until ``coroutine`` is done; its exception is raised here.

        Ctrl-C, or whatever else a signal handler raises, cancels the coroutine and waits for it to clean up first.

        Raises:
            RuntimeError: after :meth:`close`, or from a coroutine of this very loop, which would wait for itself.
        """
        if self.closed or threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError(
                "the event loop thread was closed; make a new one"
                if self.closed
                else "EventLoopThread.run was called from a coroutine that it runs; await the coroutine there instead"
            )
        finished = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_announced(coroutine, finished), self._loop)
        try:
            return future.result()
        finally:
            if not future.done():
                future.cancel()
                finished.wait(CANCEL_GRACE_S)

    def close(self) -> None:
        """Cancel what still runs and stop the loop; idempotent."""
        if not self.closed:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner() as runner:  # leaving it cancels pending tasks and joins worker threads
            self._loop = runner.get_loop()
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        self._stop = asyncio.Event()
        self._ready.set()
        await self._stop.wait()


async def _announced(coroutine: Coroutine[Any, Any, T], finished: threading.Event) -> T:
    try:
        return await coroutine
    finally:
        finished.set()
