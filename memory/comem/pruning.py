"""Rolling pruning of private entries by recency of use (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.comem.entry import Entry
from memory.comem.episode import Episode
from memory.comem.event import Event


def prune(entries: Sequence[Entry], episode: Episode, k_max: int) -> tuple[tuple[Entry, ...], tuple[Event, ...]]:
    """K_miss = 0 for what was injected in the episode, +1 for the rest; gone once K_miss > K_max.

    Promoted entries are exempt. One that the episode itself gave birth to counts from the next on (ours).
    """
    kept: list[Entry] = []
    events: list[Event] = []
    for entry in entries:
        if entry.promoted or entry.created_episode >= episode.index:
            kept.append(entry)
            continue
        k_miss = 0 if entry.id in episode.used else entry.k_miss + 1
        if k_miss <= k_max:
            kept.append(replace(entry, k_miss=k_miss))
        else:
            why = f"not injected for {k_miss} episodes running, more than K_max = {k_max}"
            values = {"k_miss": k_miss, "n_use": entry.n_use}
            events.append(Event(episode.index, "pruned", entry.id, entry.agent_name, why, values))
    return tuple(kept), tuple(events)
