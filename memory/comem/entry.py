"""m = ⟨doc_content, metadata⟩ of CoMem (section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One insight and its history.

    Attributes:
        id: ``m<episode>-<agent>-<number>``; of a promoted entry, its parent's with ``c`` behind it.
        content: the insight, one line.
        agent_name: whose it is; in the collective pool, who found it.
        score: S, in [0, S_max].
        created_episode: the episode that it was distilled from.
        n_use: episodes in which it was retrieved and injected.
        n_succ: those of them that succeeded.
        promoted: ι_prom.
        reward_sum: the rewards of the episodes that used it, added up.
        k_miss: K_miss, episodes running in which it was not used (private entries).
        low_count: updates running that left S below the threshold (collective entries).
        parent_id: the private entry that a promoted one is the copy of; empty for a distilled one.
    """

    id: str
    content: str
    agent_name: str
    score: float
    created_episode: int
    n_use: int = 0
    n_succ: int = 0
    promoted: bool = False
    reward_sum: float = 0.0
    k_miss: int = 0
    low_count: int = 0
    parent_id: str = ""

    @property
    def mean_reward(self) -> float | None:
        """R̄_m, ``None`` before the first use."""
        return self.reward_sum / self.n_use if self.n_use else None


def words(content: str) -> str:
    """``content`` without differences of case and spacing: entries whose words are equal say the same."""
    return " ".join(content.split()).casefold()


def entry_to_dict(entry: Entry) -> dict[str, Any]:
    """Plain values, for a checkpoint that loads with ``weights_only=True``."""
    return asdict(entry)


def entry_from_dict(state: Mapping[str, Any]) -> Entry:
    """The inverse of :func:`entry_to_dict`."""
    return Entry(**state)
