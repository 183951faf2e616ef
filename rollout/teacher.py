"""Teacher-forced episodes: what every agent of a MAS would read and should say, for the supervised warm start.

Independent of the MAS: its own coroutine is run, only the engine is replaced. An agent that has already said something
that holds the answer goes on saying it, so that the warm start does not untrain what works; the last call, whose reply
is the answer, and everyone who was wrong say the reference answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from data.scoring.short_answer import lax_match
from data.task import Task
from data.trajectory import Cost, Step, Trajectory
from memory.memory import Agent
from rollout.mas.mas import MAS, Message
from rollout.prompt import Injection, load_prompts, render
from rollout.structure import Structure

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def teacher_forced_steps(
    mas: MAS, task: Task, tokenizer: PreTrainedTokenizerBase, injection: Injection, said: Trajectory | None = None
) -> tuple[Step, ...]:
    """Every call of ``mas`` on ``task``; the outputs end with the end-of-turn token.

    Args:
        mas: whose coroutine runs.
        task: its ``answers[0]`` is the reference answer.
        tokenizer: of the agents' model.
        injection: where latents will go.
        said: an episode of the same MAS and task, if one is on record; else everyone says the reference answer.

    Raises ``ValueError`` for a task without an answer and for a tokenizer without an end-of-turn token.
    """
    if not task.answers or tokenizer.eos_token_id is None:
        lacking = "the tokenizer has no eos_token" if task.answers else f"task {task.id} has no reference answer"
        raise ValueError(f"{lacking}, so there is nothing to teach; leave the sft stage out with data.sft.steps 0")
    target = task.answers[0]
    kept = _worth_keeping(said, task) if said is not None else {}
    slot = load_prompts(task.domain).memory_slot
    steps: list[Step] = []

    async def act(agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> str:
        output = kept.get((len(steps), agent.name), target)
        output_ids = (*tokenizer.encode(output, add_special_tokens=False), tokenizer.eos_token_id)
        prompt = render(tokenizer, messages, injection=injection, memory_slot=slot)
        cost = Cost(len(prompt.prefix_ids) + len(prompt.suffix_ids), len(output_ids), 0, None, 0.0, None, None)
        steps.append(
            Step(
                agent=agent.name,
                role=agent.role,
                prompt=prompt.text,
                output=output,
                prefix_ids=prompt.prefix_ids,
                suffix_ids=prompt.suffix_ids,
                output_ids=tuple(output_ids),
                logprobs=(),
                finish_reason="stop",
                entry_ids=(),
                cost=cost,
                call=len(steps),
            )
        )
        return output

    asyncio.run(mas.run(task, act))
    return tuple(steps)


def _worth_keeping(said: Trajectory, task: Task) -> dict[tuple[int, str], str]:
    """By (call, agent): replies that hold an accepted answer and came to an end of their own, all but the last."""
    return {
        (call, step.agent): step.output.strip()
        for call, step in enumerate(said.steps[:-1])
        if step.finish_reason == "stop" and lax_match(step.output, task.answers)
    }
