"""R̄: the moving baseline of the environment's historical mean reward (section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from memory.comem.settings import BaselineKind

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Baseline:
    """The paper says "moving" and no more; all three readings are here.

    Attributes:
        kind: ``mean`` of all episodes so far (ours, the default), ``ema`` with ``rate``, or the last ``window``.
        count: episodes so far.
        value: R̄, 0 before the first episode.
        recent: the window's rewards, oldest first.
    """

    kind: BaselineKind = "mean"
    rate: float = 0.1
    window: int = 50
    count: int = 0
    value: float = 0.0
    recent: tuple[float, ...] = ()

    def after(self, reward: float) -> Baseline:
        """R̄ once an episode with ``reward`` has ended; the episode itself is counted in."""
        count = self.count + 1
        if self.kind == "window":
            recent = (*self.recent, reward)[-self.window :]
            return replace(self, count=count, recent=recent, value=sum(recent) / len(recent))
        step = self.rate if self.kind == "ema" and self.count else 1 / count
        return replace(self, count=count, value=self.value + step * (reward - self.value))


def is_below(mean: float, baseline: float) -> bool:
    """R̄_m < R̄; equal means of the same rewards are equal, though their sums were rounded differently."""
    return mean < baseline - _ROUNDING


def baseline_to_dict(baseline: Baseline) -> dict[str, Any]:
    """Plain values."""
    return {**asdict(baseline), "recent": list(baseline.recent)}


def baseline_from_dict(state: Mapping[str, Any]) -> Baseline:
    """The inverse of :func:`baseline_to_dict`."""
    return Baseline(**{**state, "recent": tuple(state["recent"])})
