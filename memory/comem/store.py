"""One collection of entries with their vectors: an agent's private store, or the collective pool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from memory.comem.entry import Entry, entry_from_dict, entry_to_dict, words
from memory.encoder import Vectors
from memory.vector_index import VectorIndex

Encode = Callable[[Sequence[Entry]], Vectors]
"""``[n, dim]`` unit vectors of n entries."""


class EntryStore:
    """Entries in order of arrival, found by similarity. Rules see tuples of entries, never this.

    Args:
        owner: the one agent whose entries it takes; ``None`` for the collective pool, which takes anyone's.
    """

    def __init__(self, owner: str | None = None) -> None:
        self.owner = owner
        self._entries: dict[str, Entry] = {}
        self._numbers: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._by_words: dict[str, str] = {}
        self._next = 0
        self._index: VectorIndex | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> tuple[Entry, ...]:
        """All of them, oldest first."""
        return tuple(self._entries.values())

    def get(self, ids: Iterable[str]) -> tuple[Entry, ...]:
        """Those of ``ids`` that are here, in the order asked for."""
        return tuple(self._entries[each] for each in ids if each in self._entries)

    def saying(self, contents: Iterable[str]) -> tuple[Entry, ...]:
        """The entries that say one of ``contents`` word for word."""
        return self.get(dict.fromkeys(self._by_words.get(words(content), "") for content in contents))

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """``[len(ids), dim]``. Raises ``KeyError`` for an entry that is not here."""
        numbers = [self._numbers[each] for each in ids]
        return np.zeros((0, 0), dtype=np.float32) if self._index is None else self._index.vectors(numbers)

    def exchange(self, before: Sequence[Entry], after: Sequence[Entry], encode: Encode) -> None:
        """Put what a rule made of ``before`` into its place: changed entries, removed ones, new ones.

        Args:
            before: entries of this store.
            after: what is to be there instead.
            encode: gives the vectors of the new ones; called only when there are any.

        Raises:
            ValueError: an entry of another agent in a private store.
        """
        for entry in after:
            if self.owner is not None and entry.agent_name != self.owner:
                raise ValueError(f"the private store of {self.owner!r} was given an entry of {entry.agent_name!r}")
        stays = {entry.id for entry in after}
        self._remove([entry.id for entry in before if entry.id not in stays])
        new = [entry for entry in after if entry.id not in self._entries]
        self._entries.update({entry.id: entry for entry in after})
        if new:
            self._place(new, encode(new))

    def search(self, queries: Vectors, k: int) -> list[list[tuple[Entry, float]]]:
        """For each of ``[q, dim]`` the most similar ``min(k, len(self))`` entries with their cosines, nearest first."""
        if self._index is None or len(queries) == 0:
            return [[] for _ in queries]
        found = self._index.search(queries, k)
        return [[(self._entries[self._ids[number]], cosine) for number, cosine in hits] for hits in found]

    def scan(self, query: Vectors, k: int) -> list[tuple[Entry, float]]:
        """:meth:`search` for one query ``[dim]`` that always compares every entry."""
        hits = [] if self._index is None else self._index.scan(query, k)
        return [(self._entries[self._ids[number]], cosine) for number, cosine in hits]

    def state_dict(self) -> dict[str, object]:
        """Plain values and tensors."""
        return {
            "owner": self.owner,
            "entries": [entry_to_dict(entry) for entry in self._entries.values()],
            "numbers": [self._numbers[each] for each in self._entries],
            "next": self._next,
            "dim": 0 if self._index is None else self._index.dim,
            "index": None if self._index is None else self._index.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace everything by ``state``, bit for bit."""
        entries = [entry_from_dict(raw) for raw in state["entries"]]
        self.owner = cast("str | None", state["owner"])
        self._entries = {entry.id: entry for entry in entries}
        self._numbers = {entry.id: int(n) for entry, n in zip(entries, state["numbers"], strict=True)}
        self._ids = {number: each for each, number in self._numbers.items()}
        self._by_words = {words(entry.content): entry.id for entry in entries}
        self._next, self._index = int(state["next"]), None
        if state["index"] is not None:
            self._index = VectorIndex(int(state["dim"]))
            self._index.load_state_dict(state["index"])

    def _place(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        if self._index is None:
            self._index = VectorIndex(vectors.shape[1])
        numbers = range(self._next, self._next + len(entries))
        self._index.add(numbers, vectors)
        self._next = numbers.stop
        self._by_words.update({words(entry.content): entry.id for entry in entries})
        self._numbers.update({entry.id: number for entry, number in zip(entries, numbers, strict=True)})
        self._ids.update({number: entry.id for entry, number in zip(entries, numbers, strict=True)})

    def _remove(self, ids: Sequence[str]) -> None:
        if self._index is None or not ids:
            return
        numbers = [self._numbers.pop(each) for each in ids]
        self._index.remove(numbers)
        for each, number in zip(ids, numbers, strict=True):
            said = words(self._entries[each].content)
            if self._by_words.get(said) == each:
                del self._by_words[said]
            del self._entries[each], self._ids[number]
