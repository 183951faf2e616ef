"""Private experience sedimentation: an agent's distilled insights become entries of its own (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from memory.comem.entry import Entry, words
from memory.comem.episode import Episode
from memory.comem.event import Event


def sediment(
    entries: Sequence[Entry], episode: Episode, agent: str, s_0: float, max_insights: int
) -> tuple[tuple[Entry, ...], tuple[Event, ...]]:
    """``entries`` and a new one for each of the first ``max_insights`` insights of ``agent``.

    What ``entries`` already say word for word, but for case and spaces, is not stored again (ours). Only entries with
    the words of an insight matter: a large store need not bring all of its own.
    """
    known = {words(entry.content) for entry in entries}
    born: list[Entry] = []
    for insight in episode.insights.get(agent, ())[:max_insights]:
        content = " ".join(insight.split())
        if content and words(content) not in known:
            known.add(words(content))
            born.append(Entry(f"m{episode.index}-{agent}-{len(born)}", content, agent, s_0, episode.index))
    return (*entries, *born), tuple(_event(entry, episode) for entry in born)


def _event(entry: Entry, episode: Episode) -> Event:
    why = f"distilled from an episode with reward {episode.reward:.2f}"
    return Event(episode.index, "born", entry.id, entry.agent_name, why, {"score": entry.score}, entry.content)
