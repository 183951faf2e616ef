"""Rolling pruning of private stores."""

from __future__ import annotations

from collections.abc import Sequence

from lightning_modules.callbacks.comem.mechanism import Mechanism
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.lifecycle import prune_unused


class RollingPruning(Mechanism):
    """K_miss of section 3.2."""

    place = 4

    def apply(self, memory: CoMem, episode: Episode) -> Sequence[Event]:
        """See :func:`memory.comem.pruning.prune`."""
        return prune_unused(memory, episode)
