"""Private experience sedimentation: every agent reflects on its own trace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from lightning_modules.callbacks.comem.mechanism import Finished, Mechanism
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.lifecycle import sediment_insights
from memory.write_gate import admits
from rollout.ask import Asker
from rollout.reflection import Distil, LLMDistiller
from rollout.runner import EpisodeRunner


class Sedimentation(Mechanism):
    """The reflection of section 3.2, after every episode, failed ones too (ours).

    Args:
        distiller: what turns an agent's trace into insights.
    """

    place = 5

    def __init__(self, distiller: Distil = LLMDistiller()) -> None:
        super().__init__()
        self.distiller = distiller

    async def consult(self, asker: Asker, runner: EpisodeRunner, memory: CoMem, each: Finished) -> Finished:
        """Agents that had a call reflect, all at once; nobody is asked what the write gate would not let in."""
        trajectory, episode = each
        if not admits(memory.settings.write_gate, episode.reward):
            return each
        acted = {step.agent for step in trajectory.steps}
        agents = [agent for agent in runner.mas.agents(trajectory.task.domain) if agent.name in acted]
        insights = await asyncio.gather(
            *(
                self.distiller.distil(asker, agent, trajectory, f"distil {episode.index} {agent.name}")
                for agent in agents
            )
        )
        found = {agent.name: texts for agent, texts in zip(agents, insights, strict=True)}
        return trajectory, replace(episode, insights=found)

    def apply(self, memory: CoMem, episode: Episode) -> Sequence[Event]:
        """See :func:`memory.comem.sedimentation.sediment`."""
        return sediment_insights(memory, episode)
