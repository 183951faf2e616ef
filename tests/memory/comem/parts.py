"""Short forms for entries, episodes, and a memory whose agents write what a test says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory.comem.comem import CoMem
from memory.comem.entry import Entry
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.lifecycle import ORDER, Step, end_episode
from memory.comem.settings import CoMemSettings
from memory.memory import Agent
from tests.memory.parts import BagOfWords, a_task

ANN, BOB = Agent("ann", "cook", "You cook."), Agent("bob", "waiter", "You serve.")


def an_entry(entry_id: str = "m0-ann-0", agent: str = "ann", **values: Any) -> Entry:
    return Entry(**{"id": entry_id, "content": f"insight {entry_id}", "agent_name": agent, "score": 50.0,
                    "created_episode": 0, **values})  # fmt: skip


def an_episode(index: int = 1, reward: float = 1.0, **values: Any) -> Episode:
    return Episode(index, reward, **values)


def reading(index: int, reward: float, *ids: str, agent: str = "ann") -> Episode:
    """An episode in which ``agent`` read ``ids``."""
    return Episode(index, reward, injected={agent: ids})


def a_memory(**settings: Any) -> CoMem:
    return CoMem(BagOfWords(dim=256), CoMemSettings(reward="exact_match", **settings))


class Scripted:
    """Drives a memory: what is injected comes from its own retrieval, the outcome and the insights from the test."""

    def __init__(self, memory: CoMem, agents: Sequence[Agent] = (ANN, BOB), steps: Sequence[Step] = ORDER) -> None:
        self.memory, self.agents, self.steps = memory, agents, steps
        self.events: list[Event] = []

    def play(self, question: str, reward: float, judge: float | None = None, **insights: Sequence[str]) -> Episode:
        """One episode: retrieve, act, end."""
        index, self.memory.episodes = self.memory.episodes, self.memory.episodes + 1
        task = a_task(question, f"t{index}")
        self.memory.prepare([task], self.agents)
        injected = {agent.name: self.memory.recall(task, agent, "").entry_ids for agent in self.agents}
        pool = {entry.id for entry in self.memory.collective.entries()}
        judgements = {each: (judge,) for ids in injected.values() for each in ids if each in pool and judge is not None}
        written = {agent: tuple(texts) for agent, texts in insights.items()}
        episode = Episode(index, reward, injected, judgements=judgements, insights=written)
        self.events += end_episode(self.memory, episode, self.steps)
        return episode

    def kinds(self, kind: str) -> list[tuple[int, str]]:
        return [(event.episode, event.entry_id) for event in self.events if event.kind == kind]
