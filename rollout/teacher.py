"""Teacher-forced episodes: what every agent of a MAS would read if each of them gave the reference answer.

This makes the supervised warm start independent of the MAS: its own coroutine is run, only the engine is replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from data.task import Task
from data.trajectory import Cost, Step
from memory.memory import Agent
from rollout.mas.mas import MAS, Message
from rollout.prompt import Injection, load_prompts, render
from rollout.structure import Structure

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def teacher_forced_steps(
    mas: MAS, task: Task, tokenizer: PreTrainedTokenizerBase, injection: Injection
) -> tuple[Step, ...]:
    """Every call of ``mas`` on ``task``, its output being ``task.answers[0]`` and the end-of-turn token.

    Raises ``ValueError`` for a task without an answer and for a tokenizer without an end-of-turn token.
    """
    if not task.answers or tokenizer.eos_token_id is None:
        lacking = "the tokenizer has no eos_token" if task.answers else f"task {task.id} has no reference answer"
        raise ValueError(f"{lacking}, so there is nothing to teach; leave the sft stage out with data.sft.steps 0")
    target = task.answers[0]
    output_ids = (*tokenizer.encode(target, add_special_tokens=False), tokenizer.eos_token_id)
    slot = load_prompts(task.domain).memory_slot
    steps: list[Step] = []

    async def act(agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> str:
        prompt = render(tokenizer, messages, injection=injection, memory_slot=slot)
        cost = Cost(len(prompt.prefix_ids) + len(prompt.suffix_ids), len(output_ids), 0, None, 0.0, None, None)
        steps.append(
            Step(
                agent=agent.name,
                role=agent.role,
                prompt=prompt.text,
                output=target,
                prefix_ids=prompt.prefix_ids,
                suffix_ids=prompt.suffix_ids,
                output_ids=tuple(output_ids),
                logprobs=(),
                finish_reason="stop",
                entry_ids=(),
                cost=cost,
            )
        )
        return target

    asyncio.run(mas.run(task, act))
    return tuple(steps)
