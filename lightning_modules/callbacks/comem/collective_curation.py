"""Quality control of the collective pool: judgements by the agents, utility, moving average, forgetting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import lightning as L

from lightning_modules.callbacks.comem.mechanism import Finished, Mechanism
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.event import Event
from memory.comem.lifecycle import curate
from rollout.ask import Asker
from rollout.reflection import Judge, LLMJudge
from rollout.runner import EpisodeRunner


class CollectiveCuration(Mechanism):
    """U, S and forgetting of section 3.3.

    Args:
        judge: gives LLM_a(m) for every agent that read the entry; ``None`` leaves U to the reward alone.
    """

    place = 2

    def __init__(self, judge: Judge | None = LLMJudge()) -> None:
        super().__init__()
        self.judge = judge

    def setup(self, trainer: L.Trainer, pl_module: Any, stage: str) -> None:
        """Refuse a judge with another scale than the memory's."""
        super().setup(trainer, pl_module, stage)
        l_max = pl_module.comem.settings.l_max
        if isinstance(self.judge, LLMJudge) and self.judge.l_max != l_max:
            raise ValueError(
                f"CollectiveCuration.judge.l_max is {self.judge.l_max}, the memory's settings.l_max {l_max}; "
                "judgements would be divided by another scale than they were given on"
            )

    async def consult(self, asker: Asker, runner: EpisodeRunner, memory: CoMem, each: Finished) -> Finished:
        """A_m: the agents that read a collective entry judge it."""
        trajectory, episode = each
        judge = self.judge
        if judge is None:
            return each
        agents = {agent.name: agent for agent in runner.mas.agents(trajectory.task.domain)}
        asked = [(name, entry) for name, ids in episode.injected.items() for entry in memory.collective.get(ids)]
        scores = await asyncio.gather(
            *(
                judge.judge(asker, agents[name], entry.content, trajectory, f"judge {episode.index} {name} {entry.id}")
                for name, entry in asked
            )
        )
        judgements: dict[str, tuple[float, ...]] = {}
        for (_, entry), score in zip(asked, scores, strict=True):
            if score is not None:
                judgements[entry.id] = (*judgements.get(entry.id, ()), score)
        return trajectory, replace(episode, judgements=judgements)

    def apply(self, memory: CoMem, episode: Episode) -> Sequence[Event]:
        """See :func:`memory.comem.curation.score_entries` and :func:`memory.comem.forgetting.forget`."""
        return curate(memory, episode)
