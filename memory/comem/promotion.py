"""The empirical promotion gateway from a private store into the collective pool (section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.comem.baseline import is_below
from memory.comem.entry import Entry
from memory.comem.episode import Episode
from memory.comem.event import Event


@dataclass(frozen=True)
class Promotion:
    """What the gateway did: entries that stay private, copies for the pool, and the events."""

    kept: tuple[Entry, ...]
    admitted: tuple[Entry, ...]
    events: tuple[Event, ...]


def earns_promotion(entry: Entry, baseline: float, n_min: int) -> bool:
    """ι_prom = 1[N_use(m) ≥ N_min and R̄_m ≥ R̄]."""
    mean = entry.mean_reward
    return mean is not None and entry.n_use >= n_min and not is_below(mean, baseline)


def promote(entries: Sequence[Entry], episode: Episode, baseline: float, n_min: int) -> Promotion:
    """Copy what earned it and remove it from the private store. The copy keeps S and all counters (ours)."""
    earned = [entry for entry in entries if earns_promotion(entry, baseline, n_min)]
    leaving = {entry.id for entry in earned}
    kept = tuple(entry for entry in entries if entry.id not in leaving)
    return Promotion(kept, tuple(map(_copy, earned)), tuple(_event(entry, episode, baseline) for entry in earned))


def _copy(entry: Entry) -> Entry:
    return replace(entry, id=f"{entry.id}c", parent_id=entry.id, promoted=True, k_miss=0)


def _event(entry: Entry, episode: Episode, baseline: float) -> Event:
    mean = entry.reward_sum / entry.n_use
    why = f"{entry.n_use} uses with mean reward {mean:.3f}, the baseline is {baseline:.3f}"
    values = {"n_use": entry.n_use, "mean_reward": mean, "baseline": baseline}
    return Event(
        episode.index, "promoted", entry.id, entry.agent_name, f"{why}; now {entry.id}c", values, entry.content
    )
