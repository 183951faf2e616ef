"""Usage counters: an entry that was injected was used, with the episode's outcome to its name (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.comem.entry import Entry
from memory.comem.episode import Episode
from memory.comem.event import Event


def count_usage(entries: Sequence[Entry], episode: Episode) -> tuple[tuple[Entry, ...], tuple[Event, ...]]:
    """n_use, n_succ and the reward sum of every entry that the episode used; the others stay as they are."""
    used = episode.used
    after = tuple(_used(entry, episode) if entry.id in used else entry for entry in entries)
    return after, tuple(_event(entry, episode) for entry in after if entry.id in used)


def _used(entry: Entry, episode: Episode) -> Entry:
    return replace(
        entry,
        n_use=entry.n_use + 1,
        n_succ=entry.n_succ + int(episode.success),
        reward_sum=entry.reward_sum + episode.reward,
    )


def _event(entry: Entry, episode: Episode) -> Event:
    readers = [agent for agent, ids in episode.injected.items() if entry.id in ids]
    values = {"reward": episode.reward, "n_use": entry.n_use, "mean_reward": entry.reward_sum / entry.n_use}
    return Event(episode.index, "used", entry.id, entry.agent_name, f"read by {', '.join(readers)}", values)
