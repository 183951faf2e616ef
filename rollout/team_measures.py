"""What the LTS paper reports of a set of episodes (Tables 1 to 7): score, time, and how the bank was used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rollout.teams_episode import TeamsEpisode


@dataclass(frozen=True)
class Measures:
    """Means over episodes.

    Attributes:
        score, score_first: R_agg and R_first.
        runtime_s: on the episodes' clock, simulated or not.
        saved: admitted / decided, in %; ``None`` without decisions.
        recall: entries ever selected / entries, in %; ``None`` without entries.
        cross_team_recall: entries selected by another team / entries selected, in %; ``None`` if none was.
        steps: agent steps an episode, all teams together.
        tokens: an episode: of its teams, with their summaries and decisions.
        decision_s: wall clock of one decision; ``None`` without decisions.
        decision_share: wall clock of decisions / wall clock of episodes, in %: the controller's share of a run whose
            episodes are played one at a time, less than it where they overlap.
        failed: episodes without an aggregate.
        failed_teams: teams that broke off, of all episodes together.
    """

    episodes: int
    score: float
    score_first: float
    runtime_s: float
    simulated: bool
    saved: float | None
    recall: float | None
    cross_team_recall: float | None
    steps: float
    tokens: float
    decision_s: float | None
    decision_share: float
    failed: int
    failed_teams: int


def measure(episodes: Sequence[TeamsEpisode], metric: str) -> Measures:
    """Everything at once. Raises ``ValueError`` for no episodes, or simulated and real ones together."""
    if not episodes or len({episode.simulated for episode in episodes}) > 1:
        raise ValueError("measures need at least one episode, and never mix simulated with real ones")
    entries = sum(len(episode.entries) for episode in episodes)
    selected = sum(len({use.entry for use in episode.uses}) for episode in episodes)
    crossed = sum(len(episode.used(by_other_team=True)) for episode in episodes)
    decisions = [step for episode in episodes for step in episode.admissions]
    decided_s = sum(step.wall_s for step in decisions)
    return Measures(
        episodes=len(episodes),
        score=fmean(episode.score[metric] for episode in episodes),
        score_first=fmean(episode.score_first[metric] for episode in episodes),
        runtime_s=fmean(episode.runtime_s for episode in episodes),
        simulated=episodes[0].simulated,
        saved=_percent(sum(step.admitted for step in decisions), len(decisions)),
        recall=_percent(selected, entries),
        cross_team_recall=_percent(crossed, selected),
        steps=fmean(sum(len(result.steps) for result in episode.results) for episode in episodes),
        tokens=fmean(sum(result.tokens for result in episode.results) for episode in episodes),
        decision_s=decided_s / len(decisions) if decisions else None,
        decision_share=100 * decided_s / (sum(episode.wall_s for episode in episodes) or 1.0),
        failed=sum(episode.failure is not None for episode in episodes),
        failed_teams=sum(result.failure is not None for episode in episodes for result in episode.results),
    )


def runtime_cdf(episodes: Sequence[TeamsEpisode]) -> list[tuple[float, float]]:
    """(seconds, share of episodes that took at most so long), ascending (paper, Figure 3)."""
    times = sorted(episode.runtime_s for episode in episodes)
    return [(seconds, (place + 1) / len(times)) for place, seconds in enumerate(times)]


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
