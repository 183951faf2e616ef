from __future__ import annotations

import json

import pytest
import torch

from rollout.completions_api import completion_body, completion_of
from rollout.engine import Completion, Request, Sampling
from rollout.replica_check import are_processed
from rollout.structure import Choices, JsonSchema
from tests.rollout.scripted_replica import read_embeds

NEUTRAL = {
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


def body_of(request: Request) -> dict[str, object]:
    return dict(json.loads(completion_body(request)))


def test_a_token_prompt_samples_as_asked_and_not_as_the_checkpoint_advises() -> None:
    assert body_of(Request("t", Sampling(0.7, 9, seed=2**63 - 1), prompt_ids=(5, 6))) == {
        "prompt": [5, 6],
        "temperature": 0.7,
        "max_tokens": 9,
        "seed": 2**63 - 1,
        "logprobs": 0,
        "return_token_ids": True,
        **NEUTRAL,
    }


def test_a_greedy_request_has_no_seed() -> None:
    assert "seed" not in body_of(Request("t", Sampling(0.0, 9, seed=4), prompt_ids=(5,)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_embeddings_arrive_as_they_were_without_what_they_are_a_view_of(dtype: torch.dtype) -> None:
    whole = torch.randn(1000, 8, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    body = body_of(Request("t", Sampling(), prompt_embeds=whole[3:6]))
    assert "prompt" not in body
    text = str(body["prompt_embeds"])
    assert len(text) < 4000
    arrived = read_embeds(text)
    assert arrived.dtype == dtype
    assert torch.equal(arrived, whole[3:6].detach())


def test_a_structure_becomes_what_vllm_calls_it() -> None:
    held = Request("t", Sampling(), (5,), structure=Choices(("yes", "no")))
    assert body_of(held)["structured_outputs"] == {"choice": ["yes", "no"]}
    held = Request("t", Sampling(), (5,), structure=JsonSchema({"type": "string"}))
    assert body_of(held)["structured_outputs"] == {"json": {"type": "string"}}


def test_an_answer_with_all_it_may_tell_and_with_the_least() -> None:
    choice = {"text": "Lima", "token_ids": [7, 2], "logprobs": {"token_logprobs": [-0.5, 0.0]}, "finish_reason": "stop"}
    told = {
        "choices": [choice],
        "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}},
        "metrics": {"time_to_first_token_ms": 500.0, "queue_time_ms": 250.0},
    }
    assert completion_of(told, 2.0, 1) == Completion("Lima", (7, 2), (-0.5, 0.0), "stop", 8, 2.0, 0.5, 0.25, retries=1)
    silent = {"choices": [choice], "usage": {"prompt_tokens": 9, "prompt_tokens_details": None}, "metrics": None}
    assert completion_of(silent, 2.0, 0) == Completion("Lima", (7, 2), (-0.5, 0.0), "stop", None, 2.0, None, None)


def test_temperature_halves_the_gaps_of_processed_log_probabilities() -> None:
    logits = torch.tensor([3.0, 1.0, 0.0])

    def top(temperature: float) -> dict[str, float]:
        return dict(zip("abc", torch.log_softmax(logits / temperature, 0).tolist(), strict=True))

    assert are_processed(top(1.0), top(2.0))
    assert not are_processed(top(1.0), top(1.0))


def test_a_sampled_token_beside_the_best_ones_does_not_matter() -> None:
    assert are_processed({"a": -0.1, "b": -2.1, "x": -9.0}, {"a": -0.4, "b": -1.4, "y": -3.0})
    assert not are_processed({"a": -0.1, "b": -2.1, "x": -9.0}, {"a": -0.1, "b": -2.1, "y": -8.0})
