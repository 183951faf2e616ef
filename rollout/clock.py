"""What time it is for an episode: the wall's time, or a simulation's."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since the episode began. ``simulated`` marks every figure that was read from it."""

    simulated: bool

    def now(self) -> float:
        """Seconds."""
        ...


class WallClock:
    """Starts when it is made."""

    simulated = False

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def now(self) -> float:
        """Seconds of wall clock."""
        return time.perf_counter() - self._start
