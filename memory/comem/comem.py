"""CoMem's two tiers behind the memory seam: M = ⟨{M_priv^(i)}, M_coll⟩, read through two parallel streams.

What happens to entries at the end of an episode stands in :mod:`memory.comem.lifecycle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from data.task import Task
from data.trajectory import Trajectory
from memory.comem.baseline import Baseline, baseline_from_dict, baseline_to_dict
from memory.comem.diversity import representatives
from memory.comem.entry import Entry
from memory.comem.episode import Episode, episode_of
from memory.comem.settings import CoMemSettings
from memory.comem.store import EntryStore
from memory.encoder import Encoder, TextEncoder, Vectors
from memory.memory import Agent, Recall

OWN = "Lessons from your own work:"
TEAM = "Lessons that the whole team has proven:"


class CoMem:
    """Private stores and the collective pool. Implements :class:`memory.memory.Memory`.

    Finished episodes wait in :attr:`finished` until the lifecycle takes them (:meth:`open_episodes`): in a training
    run that is the work of the callbacks in ``lightning_modules/callbacks/comem``.

    Args:
        encoder: of tasks and insights (paper: MiniLM).
        settings: every constant.
    """

    def __init__(self, encoder: TextEncoder | None = None, settings: CoMemSettings = CoMemSettings()) -> None:
        self.encoder: TextEncoder = encoder if encoder is not None else Encoder()
        self.settings = settings
        self.private: dict[str, EntryStore] = {}
        self.collective = EntryStore()
        self.baseline = Baseline(settings.baseline, settings.baseline_rate, settings.baseline_window)
        self.episodes = 0
        self.finished: list[Trajectory] = []
        self._recalls: dict[tuple[str, str], Recall] = {}

    # ------------------------------------------------------------------ retrieval (section 3.4)

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None:
        """Both streams for every (task, agent) pair, side by side; it replaces what was prepared before."""
        queries = self.encoder.encode([task.question for task in tasks])
        with ThreadPoolExecutor(max_workers=2) as streams:
            own = streams.submit(self._private_stream, queries, [agent.name for agent in agents])
            team = streams.submit(self._collective_stream, queries)
        self._recalls = {
            (task.id, agent.name): recall_of(own.result()[agent.name][row], team.result()[row])
            for row, task in enumerate(tasks)
            for agent in agents
        }

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        """What was prepared for ``agent`` on ``task``. Raises ``LookupError`` when it was not."""
        if (task.id, agent.name) not in self._recalls:
            raise LookupError(f"CoMem: task {task.id!r}, agent {agent.name!r} was not prepared; call prepare first")
        return self._recalls[task.id, agent.name]

    def end_episode(self, trajectory: Trajectory) -> None:
        """Keep it for the lifecycle."""
        self.finished.append(trajectory)

    def open_episodes(self) -> list[tuple[Trajectory, Episode]]:
        """Take every finished episode, numbered in task order."""
        taken, self.finished = self.finished, []
        first, self.episodes = self.episodes, self.episodes + len(taken)
        return [(each, episode_of(first + place, each, self.settings.reward)) for place, each in enumerate(taken)]

    def _private_stream(self, queries: Vectors, agents: Sequence[str]) -> dict[str, list[list[Entry]]]:
        """Top-k of each agent's own store and of no other."""
        nothing: list[list[Entry]] = [[] for _ in queries]
        found: dict[str, list[list[Entry]]] = {}
        for agent in agents:
            store = self.private.get(agent)
            hits = store.search(queries, self.settings.k) if store is not None else []
            found[agent] = [[entry for entry, _ in row] for row in hits] or nothing
        return found

    def _collective_stream(self, queries: Vectors) -> list[list[Entry]]:
        """Candidates, clustered; one representative a cluster; the k most similar of these."""
        depth = self.settings.k
        return [self._diverse(row) for row in self.collective.search(queries, depth * self.settings.candidates)]

    def _diverse(self, candidates: Sequence[tuple[Entry, float]]) -> list[Entry]:
        if not candidates:
            return []
        vectors = self.collective.vectors([entry.id for entry, _ in candidates])
        similarities = [cosine for _, cosine in candidates]
        rows = representatives(vectors, similarities, self.settings.cluster_cut, self.settings.k)
        return [candidates[row][0] for row in rows]

    # ------------------------------------------------------------------ stores

    def private_store(self, agent: str) -> EntryStore:
        """M_priv of ``agent``, made when first asked for."""
        return self.private.setdefault(agent, EntryStore(agent))

    def stores(self) -> Iterator[EntryStore]:
        """Every private store, then the pool."""
        yield from self.private.values()
        yield self.collective

    def entries(self, ids: Iterable[str]) -> tuple[Entry, ...]:
        """Those of ``ids`` that are in any store, in the order of the stores."""
        wanted = sorted(ids)
        return tuple(entry for store in self.stores() for entry in store.get(wanted))

    def injected_vectors(self, episode: Episode) -> dict[str, Vectors]:
        """``[n_i, dim]`` for each agent that read anything which is still there: its own entries, then the pool's."""
        found: dict[str, Vectors] = {}
        for agent, ids in episode.injected.items():
            parts = [
                store.vectors(here)
                for store in (self.private_store(agent), self.collective)
                if (here := [entry.id for entry in store.get(ids)])
            ]
            if parts:
                found[agent] = np.concatenate(parts)
        return found

    def encode(self, entries: Sequence[Entry]) -> Vectors:
        """``[n, dim]`` unit vectors of their contents."""
        return self.encoder.encode([entry.content for entry in entries])

    def state_dict(self) -> dict[str, object]:
        """Plain values and tensors, for ``torch.load(weights_only=True)``."""
        return {
            "encoder": self.encoder.name,
            "episodes": self.episodes,
            "baseline": baseline_to_dict(self.baseline),
            "private": {agent: store.state_dict() for agent, store in self.private.items()},
            "collective": self.collective.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace everything by ``state``. Raises ``ValueError`` for a state of another encoder."""
        if state["encoder"] != self.encoder.name:
            raise ValueError(
                f"CoMem: the checkpoint's encoder is {state['encoder']!r}, this run's is {self.encoder.name!r}; "
                "set it as it was: vectors of two encoders cannot be compared"
            )
        self.episodes = int(state["episodes"])
        self.baseline = baseline_from_dict(state["baseline"])
        self.private = {agent: EntryStore(agent) for agent in state["private"]}
        for agent, store in self.private.items():
            store.load_state_dict(state["private"][agent])
        self.collective.load_state_dict(state["collective"])
        self.finished, self._recalls = [], {}


def recall_of(own: Sequence[Entry], team: Sequence[Entry]) -> Recall:
    """Both streams as the text of an agent's memory slot; nothing at all when both are empty."""
    parts = [
        "\n".join([title, *(f"- {entry.content}" for entry in entries)])
        for title, entries in ((OWN, own), (TEAM, team))
        if entries
    ]
    return Recall(text="\n".join(parts), entry_ids=tuple(entry.id for entry in (*own, *team)))
