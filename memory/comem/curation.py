"""The hybrid utility U_t(m) of a collective entry and its long-term score S (section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.comem.entry import Entry
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.settings import CoMemSettings


def utility(reward: float, judgements: Sequence[float], w: float, l_max: float) -> float:
    """U_t(m) = w·R_norm + (1 − w)·(1/|A_m|)·Σ_a LLM_a(m)/L_max, in [0, 1].

    With nobody in A_m (no judge, or no readable judgement) it is R_norm alone (ours).
    """
    if not judgements:
        return reward
    judged = sum(judgements) / (len(judgements) * l_max)
    return w * reward + (1 - w) * judged


def moving_average(score: float, u: float, alpha: float, s_max: float) -> float:
    """S_{t+1} = (1 − α)·S_t + α·S_max·U_t, capped at S_max."""
    return min(s_max, (1 - alpha) * score + alpha * s_max * u)


def score_entries(
    entries: Sequence[Entry], episode: Episode, settings: CoMemSettings
) -> tuple[tuple[Entry, ...], tuple[Event, ...]]:
    """A new S for every collective entry that the episode retrieved; the others keep theirs."""
    after: list[Entry] = []
    events: list[Event] = []
    for entry in entries:
        if entry.id in episode.used:
            judgements = episode.judgements.get(entry.id, ())
            u = utility(episode.reward, judgements, settings.w, settings.l_max)
            score = moving_average(entry.score, u, settings.alpha, settings.s_max)
            events.append(_event(entry, episode, score, u, judgements))
            entry = replace(entry, score=score)
        after.append(entry)
    return tuple(after), tuple(events)


def _event(entry: Entry, episode: Episode, score: float, u: float, judgements: Sequence[float]) -> Event:
    why = f"S {entry.score:.1f} -> {score:.1f} by U {u:.2f}: reward {episode.reward:.2f}, {len(judgements)} judgements"
    return Event(episode.index, "scored", entry.id, entry.agent_name, why, {"score": score, "utility": u})
