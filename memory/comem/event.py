"""What happened to an entry, and why: one line of the log that ``python -m memory.inspect`` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["episode", "born", "used", "scored", "promoted", "pruned", "forgotten", "measured"]


@dataclass(frozen=True)
class Event:
    """One thing that happened at the end of an episode.

    Attributes:
        episode: which one.
        kind: ``episode`` and ``measured`` are about the episode as a whole, the others about one entry.
        entry_id: the entry, empty where there is none.
        agent: the entry's :attr:`memory.comem.entry.Entry.agent_name`, empty where there is none.
        why: the rule that decided, with its figures, in words.
        values: the figures.
        content: the insight, on ``born`` and ``promoted``.
    """

    episode: int
    kind: Kind
    entry_id: str = ""
    agent: str = ""
    why: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    content: str = ""


def event_to_dict(event: Event) -> dict[str, Any]:
    """JSON values; what is empty is left out."""
    return {key: value for key, value in asdict(event).items() if value not in ("", {})}


def event_from_dict(raw: Mapping[str, Any]) -> Event:
    """The inverse of :func:`event_to_dict`."""
    return Event(**raw)
