"""The empirical promotion gateway."""

from __future__ import annotations

from collections.abc import Sequence

from lightning_modules.callbacks.comem.mechanism import Mechanism
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.lifecycle import promote_proven


class Promotion(Mechanism):
    """ι_prom of section 3.3. A list of callbacks without it is the paper's ablation without the collective pool."""

    place = 3

    def apply(self, memory: CoMem, episode: Episode) -> Sequence[Event]:
        """See :func:`memory.comem.promotion.promote`."""
        return promote_proven(memory, episode)
