"""The shared memory bank M of one task (LTS §3.1): summaries as keys that every team sees, raw outputs as values.

Append-only, and it lives as long as its task. Nothing here waits: a team reads whatever is there at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """(s_i, o_i), and who put it there.

    Attributes:
        key: s_i, the summary.
        value: o_i, the raw output.
        team: index of the team whose step it was.
        step: place of the step among that team's steps, from 0.
        time_s: on the episode's clock.
    """

    key: str
    value: str
    team: int
    step: int
    time_s: float


@dataclass(frozen=True)
class Use:
    """Team ``team`` had the value of entry ``entry`` put into its context before its step ``step``."""

    entry: int
    team: int
    step: int


class SharedBank:
    """Entries in the order of their admission, and every use of one."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._uses: list[Use] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)

    @property
    def uses(self) -> tuple[Use, ...]:
        """All uses, in the order in which they happened."""
        return tuple(self._uses)

    def keys(self) -> tuple[str, ...]:
        """s_1 … s_M: what every orchestrator sees."""
        return tuple(entry.key for entry in self._entries)

    def append(self, entry: Entry) -> int:
        """Admit ``entry``; its place in the bank is returned and never changes."""
        self._entries.append(entry)
        return len(self._entries) - 1

    def select(self, places: Sequence[int], team: int, step: int) -> tuple[str, ...]:
        """The values at ``places``, in that order; each is recorded as used by ``team``.

        Raises ``IndexError`` for a place that the bank does not have: a team may only select keys that it was shown.
        """
        for place in places:
            if not 0 <= place < len(self._entries):
                raise IndexError(f"team {team} selected key {place}; the bank has the keys 0 to {len(self) - 1}")
        self._uses += [Use(place, team, step) for place in places]
        return tuple(self._entries[place].value for place in places)


def used_entries(entries: Sequence[Entry], uses: Sequence[Use], by_other_team: bool) -> frozenset[int]:
    """Places of the entries that were selected at least once: U of LTS Eq. 8.

    Args:
        by_other_team: count only uses by a team other than the one whose step it was.
    """
    return frozenset(use.entry for use in uses if not by_other_team or use.team != entries[use.entry].team)
