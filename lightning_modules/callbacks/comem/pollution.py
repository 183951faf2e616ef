"""Memory pollution over the stream: noise and homogenisation, as the paper argues and never plots."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from lightning_modules.callbacks.comem.mechanism import Mechanism
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.pollution import action_similarity, memory_similarity, noise


class Pollution(Mechanism):
    """Measures, changes nothing. It stands right behind the counters, while every injected entry is still there.

    Args:
        window: episodes over which action frequencies are counted (ours).
    """

    place = 1
    learns = False

    def __init__(self, window: int = 50) -> None:
        super().__init__()
        self.recent: deque[Mapping[str, Sequence[str]]] = deque(maxlen=window)

    def apply(self, memory: CoMem, episode: Episode) -> Sequence[Event]:
        """One ``measured`` event with the figures that there are."""
        self.recent.append(episode.actions)
        agents = {agent for actions in self.recent for agent in actions}
        taken = {agent: [a for actions in self.recent for a in actions.get(agent, ())] for agent in sorted(agents)}
        figures = {
            "noise": noise(memory.entries(episode.used), memory.baseline.value),
            "memory_similarity": memory_similarity(memory.injected_vectors(episode)),
            "action_similarity": action_similarity(taken),
        }
        values = {name: value for name, value in figures.items() if value is not None}
        return [Event(episode.index, "measured", values=values)] if values else []

    def state_dict(self) -> dict[str, Any]:
        """The window too."""
        recent = [{agent: list(words) for agent, words in actions.items()} for actions in self.recent]
        return {**super().state_dict(), "recent": recent}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue the window."""
        super().load_state_dict(state_dict)
        self.recent.clear()
        self.recent.extend(state_dict["recent"])
