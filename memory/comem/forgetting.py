"""A collective entry whose score stays below an adaptive threshold is removed (section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memory.comem.entry import Entry
from memory.comem.episode import Episode
from memory.comem.event import Event


def forgetting_threshold(scores: Sequence[float], floor: float, quantile: float | None) -> float:
    """The paper's fixed 30 as ``floor``; with a ``quantile``, that quantile of the pool's scores where it is higher."""
    if quantile is None or not scores:
        return floor
    return max(floor, float(np.quantile(scores, quantile)))


def forget(
    entries: Sequence[Entry], episode: Episode, threshold: float, updates: int
) -> tuple[tuple[Entry, ...], tuple[Event, ...]]:
    """Remove what ended ``updates`` updates running below ``threshold``; an entry not updated now is left alone."""
    kept: list[Entry] = []
    events: list[Event] = []
    for entry in entries:
        if entry.id in episode.used:
            entry = replace(entry, low_count=entry.low_count + 1 if entry.score < threshold else 0)
        if entry.low_count < updates or entry.id not in episode.used:
            kept.append(entry)
        else:
            why = f"S {entry.score:.1f} is below {threshold:.1f} for {entry.low_count} updates running"
            values = {"score": entry.score, "threshold": threshold, "low_count": entry.low_count}
            events.append(Event(episode.index, "forgotten", entry.id, entry.agent_name, why, values))
    return tuple(kept), tuple(events)
