"""Many episodes at once on one event loop: recall, render, generate, record, score.

Continuous batching does the rest. Nothing depends on completion order: seeds come from (run, step, task, member, call),
trajectories are returned in the order in which episodes were asked for, and memories are updated by the caller in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from data.task import Score, Task
from data.trajectory import Cost, Step, Trajectory
from memory.memory import Agent, Memory, Recall
from rollout.engine import Completion, Engine, Request, Sampling
from rollout.event_loop import EventLoopThread
from rollout.mas.mas import MAS, Message
from rollout.prompt import Injection, RenderedPrompt, load_prompts, render
from rollout.seeds import call_seed
from rollout.structure import Structure
from rollout.trace import TraceWriter

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

T = TypeVar("T")

OnEpisode = Callable[[int, int], None]
"""Called with (episodes finished, episodes in all), on the event loop's thread."""


@dataclass(frozen=True)
class RolloutSettings:
    """How agents sample.

    Attributes:
        max_tokens: response limit (paper, LatentMem Table 3).
        max_concurrent: episodes in flight at once (ours).
        injection: where latents go in a prompt (ours: before the generation prompt).
    """

    max_tokens: int = 4096
    max_concurrent: int = 256
    injection: Injection = "before_generation_prompt"

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.max_concurrent < 1:
            raise ValueError(
                f"rollout.max_tokens is {self.max_tokens} and rollout.max_concurrent {self.max_concurrent}; "
                "both must be at least 1"
            )


@dataclass(frozen=True)
class Phase:
    """What a batch of episodes is for: goes into seeds and into the trace.

    Attributes:
        name: ``collect``, ``lmpo``, ``validate`` or ``eval/<memory>``.
        step: training iteration.
        run_seed: of the whole run.
        temperature: 0 is greedy (paper: 1.0 in training, 0 at evaluation).
    """

    name: str
    step: int
    run_seed: int
    temperature: float


class EpisodeRunner:
    """Runs a MAS on an engine.

    Args:
        engine: started by the first run.
        mas: which agents act and in what order.
        tokenizer: of the engine's model, with a chat template.
        embed: token ids ``[seq]`` to input embeddings ``[seq, hidden]``; used for prompts with latents only.
        score: the benchmark's rule.
        settings: limits and injection.
        trace: where each agent call leaves a line, if anywhere.
        loop: the thread that drives the engine; one is made when none is given.
    """

    def __init__(
        self,
        engine: Engine,
        mas: MAS,
        tokenizer: PreTrainedTokenizerBase,
        embed: Callable[[torch.Tensor], torch.Tensor],
        score: Callable[[Task, str], Score],
        settings: RolloutSettings,
        trace: TraceWriter | None = None,
        loop: EventLoopThread | None = None,
    ) -> None:
        self.engine = engine
        self.mas = mas
        self.tokenizer = tokenizer
        self.embed = embed
        self.score = score
        self.settings = settings
        self.trace = trace
        self.loop = loop or EventLoopThread()
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

        The memory is prepared on the caller's thread, where its autograd and autocast modes hold.

        Raises:
            EngineError: the first one that an episode met; the other episodes are cancelled.
        """
        if memory is not None:
            memory.prepare(tasks, self._agents(tasks))
        trajectories = self.loop.run(self._run_all(tasks, group_size, phase, memory, on_episode))
        if self.trace is not None:
            self.trace.write(phase.name, phase.step, trajectories)
        return trajectories

    def close(self) -> None:
        """Stop the engine, and the event loop if it was made here; idempotent."""
        if self.loop.closed:
            return
        self.loop.run(self.engine.close())
        if self._own_loop:
            self.loop.close()

    async def _run_all(
        self,
        tasks: Sequence[Task],
        group_size: int,
        phase: Phase,
        memory: Memory | None,
        on_episode: OnEpisode | None,
    ) -> list[Trajectory]:
        await self.engine.start()
        places = asyncio.Semaphore(self.settings.max_concurrent)
        total, finished = len(tasks) * group_size, 0

        async def episode(task: Task, member: int) -> Trajectory:
            nonlocal finished
            async with places:
                trajectory = await self._episode(task, member, phase, memory)
            finished += 1
            if on_episode is not None:
                on_episode(finished, total)
            return trajectory

        return await _all_or_none([episode(task, member) for task in tasks for member in range(group_size)])

    def _agents(self, tasks: Sequence[Task]) -> tuple[Agent, ...]:
        agents = {agent: None for domain in {task.domain: None for task in tasks} for agent in self.mas.agents(domain)}
        return tuple(agents)

    async def _episode(self, task: Task, member: int, phase: Phase, memory: Memory | None) -> Trajectory:
        steps: dict[int, Step] = {}
        calls: list[asyncio.Task[str]] = []

        def act(agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> asyncio.Task[str]:
            calls.append(asyncio.create_task(speak(len(calls), agent, messages, structure)))
            return calls[-1]

        async def speak(call: int, agent: Agent, messages: Sequence[Message], structure: Structure | None) -> str:
            seed = call_seed(phase.run_seed, phase.step, task.id, member, call)
            sampling = Sampling(phase.temperature, self.settings.max_tokens, seed)
            steps[call] = await self._call(task, agent, messages, sampling, structure, memory)
            return steps[call].output

        try:
            answer = await self.mas.run(task, act)
        finally:
            await _cancel(calls)  # when one call failed, its siblings would go on for nobody
        return Trajectory(
            task=task,
            mas=self.mas.name,
            member=member,
            steps=tuple(steps[call] for call in sorted(steps)),
            answer=answer,
            score=self.score(task, answer),
        )

    async def _call(
        self,
        task: Task,
        agent: Agent,
        messages: Sequence[Message],
        sampling: Sampling,
        structure: Structure | None,
        memory: Memory | None,
    ) -> Step:
        context = "\n".join(message.content for message in messages)
        recall = memory.recall(task, agent, context) if memory is not None else Recall()
        prompt = render(
            self.tokenizer,
            messages,
            recall.text,
            injection=self.settings.injection,
            memory_slot=load_prompts(task.domain).memory_slot,
        )
        request = self._request(f"task {task.id}, agent {agent.name}", prompt, recall.latents, sampling)
        completion = await self.engine.generate(replace(request, structure=structure))
        return _step(agent, prompt, recall, completion)

    def _request(self, label: str, prompt: RenderedPrompt, latents: torch.Tensor | None, sampling: Sampling) -> Request:
        ids = prompt.prefix_ids + prompt.suffix_ids
        if latents is None:
            return Request(label, sampling, prompt_ids=ids)
        with torch.no_grad():
            words = self.embed(torch.tensor(ids))
        cut = len(prompt.prefix_ids)
        embeds = torch.cat([words[:cut], latents.detach().to(words), words[cut:]])
        return Request(label, sampling, prompt_embeds=embeds)


async def _all_or_none(episodes: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in the order given. The first exception, or a cancellation from outside, cancels the rest."""
    running = [asyncio.create_task(episode) for episode in episodes]
    try:
        return list(await asyncio.gather(*running))
    finally:
        await _cancel(running)


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """End what still runs and wait for it to clean up."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _step(agent: Agent, prompt: RenderedPrompt, recall: Recall, completion: Completion) -> Step:
    latent_tokens = 0 if recall.latents is None else int(recall.latents.shape[0])
    return Step(
        agent=agent.name,
        role=agent.role,
        prompt=prompt.text,
        output=completion.text,
        prefix_ids=prompt.prefix_ids,
        suffix_ids=prompt.suffix_ids,
        output_ids=completion.token_ids,
        logprobs=completion.logprobs,
        finish_reason=completion.finish_reason,
        entry_ids=recall.entry_ids,
        cost=Cost(
            prompt_tokens=len(prompt.prefix_ids) + len(prompt.suffix_ids),
            completion_tokens=len(completion.token_ids),
            latent_tokens=latent_tokens,
            cached_tokens=completion.cached_tokens,
            wall_s=completion.wall_s,
            first_token_s=completion.first_token_s,
            queue_s=completion.queue_s,
            retries=completion.retries,
        ),
    )
