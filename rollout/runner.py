"""Many episodes at once on one event loop: recall, render, generate, record, score.

Continuous batching does the rest. Nothing depends on completion order: seeds come from (run, step, task, member, call),
trajectories are returned in the order in which episodes were asked for, and memories are updated by the caller in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch

from data.environment import World
from data.task import Benchmark, Task
from data.trajectory import Trajectory
from memory.memory import Agent, Memory
from rollout.call import Caller
from rollout.engine import Engine
from rollout.episode import Episode, Stage
from rollout.event_loop import EventLoopThread
from rollout.in_order import cancel, in_order
from rollout.mas.mas import MAS
from rollout.settings import Phase, RolloutSettings
from rollout.trace import TraceWriter

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["EpisodeRunner", "OnEpisode", "Phase", "RolloutSettings", "RunInterrupted"]

OnEpisode = Callable[[int, int], None]
"""Called with (episodes finished, episodes in all), on the event loop's thread."""

AHEAD = 4
"""A stream runs ahead of its slowest episode, and of its consumer, by this many times ``max_concurrent`` (ours)."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C. ``finished`` holds the trajectories that were there, in order, and were not handed over before."""

    def __init__(self, finished: Sequence[Trajectory]) -> None:
        super().__init__(f"interrupted; {len(finished)} finished episodes are kept")
        self.finished = tuple(finished)


class EpisodeRunner:
    """Runs a MAS on an engine.

    Args:
        engine: started by the first run.
        mas: which agents act and in what order.
        tokenizer: of the engine's model, with a chat template; ``None`` for an engine that takes text only.
        embed: token ids ``[seq]`` to input embeddings ``[seq, hidden]``; used for prompts with latents only.
        benchmark: scores answers, or is the world that is acted in.
        settings: limits and injection.
        trace: where episodes and their agent calls leave lines, in order, as they finish.
        loop: the thread that drives the engine; one is made when none is given.

    Raises:
        ValueError: a setting that does not go with ``benchmark``.
    """

    def __init__(
        self,
        engine: Engine,
        mas: MAS,
        tokenizer: PreTrainedTokenizerBase | None,
        embed: Callable[[torch.Tensor], torch.Tensor],
        benchmark: Benchmark | World,
        settings: RolloutSettings,
        trace: TraceWriter | None = None,
        loop: EventLoopThread | None = None,
    ) -> None:
        _check(benchmark, settings, getattr(engine, "max_model_len", None))
        self.engine = engine
        self.tokenizer = tokenizer
        self.mas = mas
        self.benchmark = benchmark
        self.settings = settings
        self.trace = trace
        self.loop = loop or EventLoopThread()
        self._caller = Caller(engine, tokenizer, embed, settings.injection)
        self._pool = ThreadPoolExecutor(thread_name_prefix="rollout-blocking")
        self._own_loop = loop is None

    def run(
        self,
        tasks: Sequence[Task],
        group_size: int,
        phase: Phase,
        memory: Memory | None,
        on_episode: OnEpisode | None = None,
    ) -> list[Trajectory]:
        """``group_size`` episodes of every task, in the order task by task, member by member.

        The memory is prepared on the caller's thread, where its autograd and autocast modes hold. A failed episode is
        among the trajectories (:mod:`rollout.failure`).

        Raises:
            EngineDiedError: nobody can be served; the other episodes are cancelled. What had finished is in the trace.
            RunInterrupted: on Ctrl-C, with the finished trajectories.
        """
        finished: list[Trajectory] = []
        stage = self._prepare(tasks, phase, memory)
        room = asyncio.Semaphore(max(1, len(tasks) * group_size))

        def keep(trajectory: Trajectory) -> None:
            finished.append(trajectory)
            room.release()

        try:
            self.loop.run(self._produce(stage, tasks, group_size, on_episode, room, keep))
        except KeyboardInterrupt as interrupt:
            raise RunInterrupted(finished) from interrupt
        return finished

    def stream(
        self,
        tasks: Sequence[Task],
        group_size: int,
        phase: Phase,
        memory: Memory | None,
        on_episode: OnEpisode | None = None,
    ) -> Iterator[Trajectory]:
        """The trajectories of :meth:`run` one by one, none of them kept: memory stays bounded however many there are.

        Leaving the loop over it cancels what still runs. Raises what :meth:`run` raises.
        """
        stage = self._prepare(tasks, phase, memory)
        room = asyncio.Semaphore(AHEAD * self.settings.max_concurrent)
        shelf = _Shelf(room)
        self.loop.run(shelf.fill(self._produce(stage, tasks, group_size, on_episode, room, shelf.put)))
        try:
            while taken := self.loop.run(shelf.take()):
                yield from taken
        except KeyboardInterrupt as interrupt:
            raise RunInterrupted(self.loop.run(shelf.clear())) from interrupt
        finally:
            if not self.loop.closed:
                self.loop.run(shelf.clear())

    def close(self) -> None:
        """Stop the engine, and the event loop if it was made here; idempotent."""
        self._pool.shutdown()
        if self.loop.closed:
            return
        self.loop.run(self.engine.close())
        if self._own_loop:
            self.loop.close()

    def _prepare(self, tasks: Sequence[Task], phase: Phase, memory: Memory | None) -> Stage:
        agents = _agents(self.mas, tasks)
        if memory is not None:
            memory.prepare(tasks, agents)
        return Stage(self.mas, self.benchmark, self._caller, self.settings, self._pool, phase, memory)

    async def _produce(
        self,
        stage: Stage,
        tasks: Sequence[Task],
        group_size: int,
        on_episode: OnEpisode | None,
        room: asyncio.Semaphore,
        hand_over: Callable[[Trajectory], None],
    ) -> None:
        """Run all episodes; each goes to the trace and then to ``hand_over`` once all before it have."""
        total, done = len(tasks) * group_size, 0

        async def episode(task: Task, member: int) -> Trajectory:
            nonlocal done
            trajectory = await Episode(stage, task, member).run()
            done += 1
            if on_episode is not None:
                on_episode(done, total)
            return trajectory

        def emit(trajectory: Trajectory) -> None:
            if self.trace is not None:
                self.trace.write(stage.phase.name, stage.phase.step, [trajectory])
            hand_over(trajectory)

        await self.engine.start()
        jobs = (episode(task, member) for task in tasks for member in range(group_size))
        await in_order(jobs, min(self.settings.max_concurrent, total), room, emit)


class _Shelf:
    """Where finished trajectories lie until the caller takes them. All coroutines run on the event loop."""

    def __init__(self, room: asyncio.Semaphore) -> None:
        self._room = room
        self._finished: list[Trajectory] = []
        self._changed = asyncio.Event()

    async def fill(self, producer: Coroutine[Any, Any, None]) -> None:
        """Let ``producer`` put trajectories here."""
        self._producer = asyncio.create_task(producer)
        self._producer.add_done_callback(lambda _: self._changed.set())

    def put(self, trajectory: Trajectory) -> None:
        self._finished.append(trajectory)
        self._changed.set()

    async def take(self) -> list[Trajectory]:
        """What has finished, at least one; nothing when there will be no more. Raises what the producer raised."""
        await self._changed.wait()
        taken, self._finished = self._finished, []
        if not taken:
            await self._producer
        if not self._producer.done():
            self._changed.clear()
        for _ in taken:
            self._room.release()
        return taken

    async def clear(self) -> list[Trajectory]:
        """Cancel the producer; what is left."""
        await cancel([self._producer])
        left, self._finished = self._finished, []
        return left


def _agents(mas: MAS, tasks: Sequence[Task]) -> tuple[Agent, ...]:
    """All agents that ``tasks`` need, each once. Asked for before the engine is started.

    Raises ``ValueError`` for such a domain, for an agent without a name, a role or a profile, and for a name that comes
    twice.
    """
    found: dict[Agent, None] = {}
    for domain in dict.fromkeys(task.domain for task in tasks):
        agents = mas.agents(domain)
        names = [agent.name for agent in agents]
        for agent in agents:
            if not (agent.name.strip() and agent.role.strip() and agent.profile.strip()):
                raise ValueError(f"MAS {mas.name!r}, domain {domain}: {agent} needs a name, a role and a profile")
            if names.count(agent.name) > 1:
                raise ValueError(
                    f"MAS {mas.name!r}, domain {domain}: {names.count(agent.name)} agents are {agent.name!r}"
                )
        found |= dict.fromkeys(agents)
    return tuple(found)


def _check(benchmark: Benchmark | World, settings: RolloutSettings, max_model_len: int | None) -> None:
    if max_model_len is not None and settings.max_tokens >= max_model_len:
        raise ValueError(
            f"rollout.max_tokens is {settings.max_tokens}, which leaves no room for a prompt in the engine's "
            f"max_model_len of {max_model_len}; raise that, or lower max_tokens"
        )
    if not benchmark.metrics:
        raise ValueError(f"benchmark {benchmark.name!r} has no metrics; name the keys of its scores")
    if isinstance(benchmark, World):
        if benchmark.max_steps < 1:
            raise ValueError(f"the world {benchmark.name!r} has max_steps {benchmark.max_steps}; give at least 1")
    elif settings.constrained_actions:
        raise ValueError(
            f"rollout.constrained_actions is on, but benchmark {benchmark.name!r} lists no actions; it is no world"
        )
