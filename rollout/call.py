"""One agent call: recall, render, ask the engine, record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from data.task import Task
from data.trajectory import Cost, Step
from memory.memory import Agent, Memory, Recall
from rollout.counters import prompt_positions, sampled_tokens
from rollout.engine import CallKey, Completion, Engine, EngineError, Request, Sampling
from rollout.mas.mas import Message
from rollout.prompt import Injection, RenderedPrompt, load_prompts, prompt_text, render, with_memory
from rollout.structure import Structure

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Caller:
    """What all agent calls of a runner share.

    Attributes:
        tokenizer: ``None`` for an engine that takes text only.
        embed: token ids ``[seq]`` to input embeddings ``[seq, hidden]``; used for prompts with latents only.
    """

    engine: Engine
    tokenizer: PreTrainedTokenizerBase | None
    embed: Callable[[torch.Tensor], torch.Tensor]
    injection: Injection

    async def call(
        self,
        task: Task,
        agent: Agent,
        messages: Sequence[Message],
        structure: Structure | None,
        memory: Memory | None,
        sampling: Sampling,
        key: CallKey,
    ) -> Step:
        """Raises :class:`rollout.engine.EngineError`, and whatever ``memory`` raises."""
        context = "\n".join(message.content for message in messages)
        recall = memory.recall(task, agent, context) if memory is not None else Recall()
        label, slot = f"task {task.id}, agent {agent.name}", load_prompts(task.domain).memory_slot
        if self.engine.text_only or self.tokenizer is None:
            prompt, request = self._as_text(label, with_memory(messages, recall.text, slot), recall.latents)
        else:
            prompt = render(self.tokenizer, messages, recall.text, injection=self.injection, memory_slot=slot)
            request = self._as_tokens(label, prompt, recall.latents)
        request = replace(request, sampling=sampling, structure=structure, key=key)
        return step_of(agent, prompt, recall, request, await self.engine.generate(request))

    def _as_text(
        self, label: str, turns: tuple[Message, ...], latents: torch.Tensor | None
    ) -> tuple[RenderedPrompt, Request]:
        if latents is not None:
            raise EngineError(f"{label}: the engine takes text only, it cannot be sent the memory's latents")
        return RenderedPrompt(prompt_text(turns), (), ()), Request(label, messages=turns)

    def _as_tokens(self, label: str, prompt: RenderedPrompt, latents: torch.Tensor | None) -> Request:
        if latents is None:
            return Request(label, prompt_ids=prompt.prefix_ids + prompt.suffix_ids)
        return Request(label, prompt_embeds=self._with_latents(prompt, latents))

    def _with_latents(self, prompt: RenderedPrompt, latents: torch.Tensor) -> torch.Tensor:
        """concat(h, m) (LatentMem Eq. 6), with the end of the template after it: ``[seq, hidden]``."""
        with torch.no_grad():
            words = self.embed(torch.tensor(prompt.prefix_ids + prompt.suffix_ids))
        cut = len(prompt.prefix_ids)
        return torch.cat([words[:cut], latents.detach().to(words), words[cut:]])


def step_of(agent: Agent, prompt: RenderedPrompt, recall: Recall, request: Request, completion: Completion) -> Step:
    """The record of one call that came back."""
    latents = 0 if recall.latents is None else int(recall.latents.shape[0])
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
            prompt_tokens=prompt_positions(request, completion) - latents,
            completion_tokens=sampled_tokens(completion),
            latent_tokens=latents,
            cached_tokens=completion.cached_tokens,
            wall_s=completion.wall_s,
            first_token_s=completion.first_token_s,
            queue_s=completion.queue_s,
            retries=completion.retries,
        ),
        call=0 if request.key is None else request.key.call,
    )
