"""One episode: a MAS on one task, from the first call to the score, or to the reason why there is none."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from data.environment import World
from data.task import Benchmark, Task
from data.trajectory import Step, Trajectory
from memory.memory import Agent, Memory
from rollout.call import Caller
from rollout.engine import CallKey, Sampling
from rollout.failure import EpisodeError, blame
from rollout.in_order import cancel
from rollout.mas.mas import MAS, Message
from rollout.seeds import call_seed, enter_episode, episode_seed
from rollout.settings import Phase, RolloutSettings
from rollout.structure import Structure
from rollout.threads import in_thread
from rollout.world import Ending, act_out


@dataclass(frozen=True)
class Stage:
    """What all episodes of a batch share. ``pool`` has the threads for worlds and slow scoring rules."""

    mas: MAS
    benchmark: Benchmark | World
    caller: Caller
    settings: RolloutSettings
    pool: Executor
    phase: Phase
    memory: Memory | None


@dataclass
class Episode:
    """One member of the group of one task, and what it has done so far."""

    stage: Stage
    task: Task
    member: int
    steps: dict[int, Step] = field(default_factory=dict)
    calls: itertools.count[int] = field(default_factory=itertools.count)

    async def run(self) -> Trajectory:
        """The trajectory, failed or not. Raises :class:`rollout.engine.EngineDiedError` only."""
        phase = self.stage.phase
        enter_episode(episode_seed(phase.run_seed, phase.step, self.task.id, self.member))
        started = time.perf_counter()
        try:
            ending = await self._end()
        except EpisodeError as failed:
            zero = dict.fromkeys(self.stage.benchmark.metrics, 0.0)
            ending = Ending(answer="", score=zero, failure=str(failed))
        return Trajectory(
            task=self.task,
            mas=self.stage.mas.name,
            member=self.member,
            steps=tuple(self.steps[call] for call in sorted(self.steps)),
            answer=ending.answer,
            score=ending.score,
            failure=ending.failure,
            wall_s=time.perf_counter() - started,
        )

    async def _end(self) -> Ending:
        benchmark, pool = self.stage.benchmark, self.stage.pool
        if isinstance(benchmark, World):
            return await act_out(self.task, benchmark, self.stage.settings, self._play, pool)
        answer = await self._play(self.task)
        with blame("scoring"):
            if getattr(benchmark, "slow_scoring", False):
                return Ending(answer, await in_thread(pool, benchmark.score, self.task, answer))
            return Ending(answer, benchmark.score(self.task, answer))

    async def _play(self, task: Task) -> str:
        """One run of the MAS. What it asked for and never waited for ends with it."""
        calls: list[asyncio.Task[str]] = []

        def act(agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> asyncio.Task[str]:
            calls.append(asyncio.create_task(self._speak(next(self.calls), agent, messages, structure)))
            return calls[-1]

        try:
            with blame("agents"):
                return await self.stage.mas.run(task, act)
        finally:
            await cancel(calls)

    async def _speak(self, call: int, agent: Agent, messages: Sequence[Message], structure: Structure | None) -> str:
        phase, task = self.stage.phase, self.task
        seed = call_seed(phase.run_seed, phase.step, task.id, self.member, call)
        sampling = Sampling(phase.temperature, self.stage.settings.max_tokens, seed)
        key = CallKey(phase.name, phase.step, task.id, self.member, call, agent.name)
        memory = self.stage.memory
        self.steps[call] = await self.stage.caller.call(task, agent, messages, structure, memory, sampling, key)
        return self.steps[call].output
