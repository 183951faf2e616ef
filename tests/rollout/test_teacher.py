from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from data.trajectory import Trajectory
from rollout.mas.autogen import AutoGen
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS
from rollout.prompt import Injection, load_prompts, render
from rollout.teacher import teacher_forced_steps
from tests.rollout.scripted import TASK
from tests.tiny_model import tiny_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TOKENIZER: PreTrainedTokenizerBase = tiny_tokenizer()


@pytest.mark.parametrize("mas", [AutoGen(), MacNet()], ids=lambda mas: mas.name)
def test_every_agent_gives_the_reference_answer_once(mas: MAS) -> None:
    steps = teacher_forced_steps(mas, TASK, TOKENIZER, "before_generation_prompt")
    assert {step.agent for step in steps} == {agent.name for agent in mas.agents("qa")}
    assert len(steps) == len(mas.agents("qa"))
    assert {step.output for step in steps} == {"Lima"}
    assert steps == teacher_forced_steps(mas, TASK, TOKENIZER, "before_generation_prompt")


def test_the_target_is_the_answer_and_the_end_of_turn_token() -> None:
    for step in teacher_forced_steps(AutoGen(), TASK, TOKENIZER, "before_generation_prompt"):
        assert TOKENIZER.decode(list(step.output_ids)) == "Lima<|im_end|>"
        assert step.output_ids[-1] == TOKENIZER.eos_token_id
        assert step.cost.completion_tokens == len(step.output_ids)
        assert step.cost.prompt_tokens == len(step.prefix_ids) + len(step.suffix_ids)
        assert (step.finish_reason, step.logprobs, step.cost.latent_tokens) == ("stop", (), 0)


def test_the_first_of_several_answers_is_taught() -> None:
    task = replace(TASK, answers=("Ciudad de los Reyes", "Lima"))
    steps = teacher_forced_steps(AutoGen(), task, TOKENIZER, "before_generation_prompt")
    assert {step.output for step in steps} == {"Ciudad de los Reyes"}


@pytest.mark.parametrize("injection", ["before_generation_prompt", "after_generation_prompt"])
def test_prompts_are_those_of_a_rollout_whose_agents_gave_that_answer(injection: Injection) -> None:
    assistant, proxy = teacher_forced_steps(AutoGen(), TASK, TOKENIZER, injection)
    prompts = load_prompts("qa")
    ask = prompts.role("autogen", "assistant").messages("answer", question=TASK.question)
    check = prompts.role("autogen", "user_proxy").messages("finish", question=TASK.question, reply="Lima")
    for step, messages in ((assistant, ask), (proxy, check)):
        expected = render(TOKENIZER, messages, injection=injection)
        assert (step.prefix_ids, step.suffix_ids) == (expected.prefix_ids, expected.suffix_ids)
        assert step.prompt == expected.text


def said(*replies: str, finish_reason: str = "stop") -> Trajectory:
    """An AutoGen episode on record."""
    steps = teacher_forced_steps(AutoGen(), TASK, TOKENIZER, "before_generation_prompt")
    spoken = [
        replace(step, output=reply, finish_reason=finish_reason) for step, reply in zip(steps, replies, strict=True)
    ]
    return Trajectory(TASK, "autogen", 0, tuple(spoken), replies[-1], {"exact_match": 0.0})


@pytest.mark.parametrize(
    ("record", "assistant", "proxy"),
    [
        (said("The capital is Lima.", "Lima it is."), "The capital is Lima.", "Lima"),
        (said("The capital is Quito.", "Lima it is."), "Lima", "Lima"),
        (said("The capital is Lima, which", "Lima", finish_reason="length"), "Lima", "Lima"),
    ],
    ids=["right, so it is kept", "wrong", "cut off"],
)
def test_who_was_right_on_the_way_goes_on_saying_it(record: Trajectory, assistant: str, proxy: str) -> None:
    steps = teacher_forced_steps(AutoGen(), TASK, TOKENIZER, "before_generation_prompt", record)
    assert [step.output for step in steps] == [assistant, proxy]
    assert f"Colleague: {assistant}" in steps[1].prompt
    assert TOKENIZER.decode(list(steps[0].output_ids)) == f"{assistant}<|im_end|>"


def test_a_task_without_an_answer_is_named() -> None:
    with pytest.raises(ValueError, match="task t0 has no reference answer"):
        teacher_forced_steps(AutoGen(), replace(TASK, answers=()), TOKENIZER, "before_generation_prompt")


def test_a_tokenizer_that_cannot_end_a_turn_is_refused() -> None:
    endless = tiny_tokenizer()
    endless.eos_token = None
    with pytest.raises(ValueError, match="no eos_token"):
        teacher_forced_steps(AutoGen(), TASK, endless, "before_generation_prompt")
