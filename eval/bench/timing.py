"""Comparing two ways of doing the same thing on a machine whose speed drifts: interleave them, take ratios of pairs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratios:
    """Seconds of both sides by repeat, and first / second of each pair: how many times faster the second is."""

    first_s: tuple[float, ...]
    second_s: tuple[float, ...]

    @property
    def each(self) -> tuple[float, ...]:
        """The ratio of every pair, in the order measured."""
        return tuple(one / two for one, two in zip(self.first_s, self.second_s, strict=True))

    @property
    def median(self) -> float:
        """The figure to report: a disturbance that hits one pair moves it little."""
        return median(self.each)

    @property
    def minimum(self) -> float:
        """The least favourable pair."""
        return min(self.each)

    @property
    def of_fastest(self) -> float:
        """Fastest first over fastest second: the ratio without the machine's noise."""
        return min(self.first_s) / min(self.second_s)


def compare(
    first: Callable[[], object],
    second: Callable[[], object],
    repeats: int = 5,
    warmup: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Ratios:
    """Time the two alternately (A B A B ...), so that what slows the machine down slows both.

    Args:
        first: the reference; what it returns is dropped. On an accelerator it has to synchronise before returning.
        second: what is claimed to be faster.
        repeats: pairs that count.
        warmup: pairs that run before and do not count.

    Raises:
        ValueError: ``repeats`` below 1.
    """
    if repeats < 1:
        raise ValueError(f"compare needs at least 1 repeat, got {repeats}")
    for _ in range(warmup):
        first()
        second()
    pairs = [(_seconds(first, clock), _seconds(second, clock)) for _ in range(repeats)]
    return Ratios(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))


def _seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start
