"""The end of an episode: CoMem's mechanisms on its stores, in one fixed order.

Each step takes the entries out of the stores, lets a pure rule decide, puts the result back and returns the events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory.comem.comem import CoMem
from memory.comem.curation import score_entries
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.forgetting import forget, forgetting_threshold
from memory.comem.promotion import promote
from memory.comem.pruning import prune
from memory.comem.sedimentation import sediment
from memory.comem.store import Encode
from memory.comem.usage import count_usage
from memory.encoder import Vectors
from memory.write_gate import admits

Step = Callable[[CoMem, Episode], list[Event]]


def count_uses(memory: CoMem, episode: Episode) -> list[Event]:
    """Usage counters of whatever was injected, and with them R̄_m; then R̄."""
    memory.baseline = memory.baseline.after(episode.reward)
    figures = {"reward": episode.reward, "baseline": memory.baseline.value}
    events = [Event(episode.index, "episode", values=figures)]
    for store in memory.stores():
        before = store.get(sorted(episode.used))
        after, used = count_usage(before, episode)
        store.exchange(before, after, memory.encode)
        events += used
    return events


def curate(memory: CoMem, episode: Episode) -> list[Event]:
    """U, S and forgetting for the collective entries that the episode retrieved."""
    settings = memory.settings
    before = memory.collective.get(sorted(episode.used))
    scored, events = score_entries(before, episode, settings)
    memory.collective.exchange(before, scored, memory.encode)
    threshold = settings.forgetting_threshold
    if settings.forgetting_quantile is not None:
        scores = [entry.score for entry in memory.collective.entries()]
        threshold = forgetting_threshold(scores, threshold, settings.forgetting_quantile)
    kept, forgotten = forget(scored, episode, threshold, settings.forgetting_updates)
    memory.collective.exchange(scored, kept, memory.encode)
    return [*events, *forgotten]


def promote_proven(memory: CoMem, episode: Episode) -> list[Event]:
    """Private entries through the gateway into the pool."""
    events: list[Event] = []
    for store in memory.private.values():
        before = store.entries()
        outcome = promote(before, episode, memory.baseline.value, memory.settings.n_min)
        vectors = store.vectors([entry.parent_id for entry in outcome.admitted])
        memory.collective.exchange((), outcome.admitted, _known(vectors))
        store.exchange(before, outcome.kept, memory.encode)
        events += outcome.events
    return events


def _known(vectors: Vectors) -> Encode:
    """A promoted entry says what its parent said: nothing is encoded again."""
    return lambda _: vectors


def prune_unused(memory: CoMem, episode: Episode) -> list[Event]:
    """Rolling pruning of every private store."""
    events: list[Event] = []
    for store in memory.private.values():
        before = store.entries()
        after, pruned = prune(before, episode, memory.settings.k_max)
        store.exchange(before, after, memory.encode)
        events += pruned
    return events


def sediment_insights(memory: CoMem, episode: Episode) -> list[Event]:
    """Each agent's insights into its own store, or straight into the pool in the ablation without private stores."""
    settings = memory.settings
    events: list[Event] = []
    if not admits(settings.write_gate, episode.reward):
        return events
    for agent, insights in episode.insights.items():
        store = memory.collective if settings.distil_into == "collective" else memory.private_store(agent)
        before = store.saying(insights)
        after, born = sediment(before, episode, agent, settings.s_0, settings.max_insights)
        store.exchange(before, after, memory.encode)
        events += born
    return events


ORDER: tuple[Step, ...] = (count_uses, curate, promote_proven, prune_unused, sediment_insights)
"""Fixed: a promotion sees this episode's counters, and a new insight is not a miss of the episode that bore it."""


def end_episode(memory: CoMem, episode: Episode, steps: Sequence[Step] = ORDER) -> list[Event]:
    """Those of ``steps`` that are wanted, in the fixed order whatever the order given."""
    return [event for step in sorted(steps, key=ORDER.index) for event in step(memory, episode)]
