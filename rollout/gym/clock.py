"""Simulated time for coroutines that share it: it stands still while anyone acts, and jumps when all sleep."""

from __future__ import annotations

import asyncio
import heapq


class SimulatedClock:
    """Discrete-event time. Who sleeps shortest wakes first, ties by participant, so that an episode is deterministic.

    Args:
        participants: coroutines that will sleep on it; each calls :meth:`leave` when it is done.
    """

    simulated = True

    def __init__(self, participants: int) -> None:
        self._now = 0.0
        self._awake = participants
        self._asleep: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Simulated seconds since the start."""
        return self._now

    async def sleep(self, who: int, seconds: float) -> None:
        """Let ``seconds`` pass for participant ``who``."""
        alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._asleep, (self._now + seconds, who, alarm))
        self._awake -= 1
        self._advance()
        await alarm

    def leave(self) -> None:
        """A participant is done: the others no longer wait for it. Time stands still until it has returned."""
        self._awake -= 1
        asyncio.get_running_loop().call_soon(self._advance)

    def pass_time(self, seconds: float) -> None:
        """Let ``seconds`` pass after everyone has left."""
        self._now += seconds

    def _advance(self) -> None:
        if self._awake == 0 and self._asleep:
            self._now, _, alarm = heapq.heappop(self._asleep)
            self._awake += 1
            if not alarm.done():  # a cancelled sleeper
                alarm.set_result(None)
