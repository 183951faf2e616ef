"""What was injected is what was used: counters and the baseline R̄."""

from __future__ import annotations

from collections.abc import Sequence

from lightning_modules.callbacks.comem.mechanism import Mechanism
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.lifecycle import count_uses


class UsageCounting(Mechanism):
    """n_use, n_succ, R̄_m, and then R̄. Every other mechanism builds on it."""

    place = 0

    def apply(self, memory: CoMem, episode: Episode) -> Sequence[Event]:
        """See :func:`memory.comem.usage.count_usage` and :class:`memory.comem.baseline.Baseline`."""
        return count_uses(memory, episode)
