from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rollout.engine import (
    Completion,
    EngineError,
    Request,
    Sampling,
    check_completion,
    check_grammar,
    check_request,
    check_text_request,
)
from rollout.mas.mas import Message
from rollout.structure import JsonSchema

LABEL = "task t7, agent critic"
SAMPLING = Sampling(max_tokens=4)
HELLO = (Message("user", "Hello"),)


def by_ids(*ids: int) -> Request:
    return Request(LABEL, SAMPLING, prompt_ids=ids)


def by_embeds(embeds: torch.Tensor) -> Request:
    return Request(LABEL, SAMPLING, prompt_embeds=embeds)


def answer(**changes: object) -> Completion:
    made = Completion("Lima", (5, 2), (-0.5, -0.1), "stop", None, 0.1, None, None)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_both_prompt_forms_are_accepted() -> None:
    check_request(by_ids(1, 2, 3), 7)
    check_request(by_embeds(torch.zeros(3, 8)), 7)
    check_request(by_embeds(torch.zeros(3, 8)), 7, hidden_size=8)


def test_length_counts_positions() -> None:
    assert by_ids(4, 4, 4).length == 3
    assert by_embeds(torch.zeros(5, 8)).length == 5


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(LABEL, SAMPLING), "give exactly one of prompt_ids and prompt_embeds"),
        (Request(LABEL, SAMPLING, (1,), torch.zeros(1, 8)), "give exactly one of prompt_ids and prompt_embeds"),
        (by_ids(), "the prompt is empty"),
        (by_embeds(torch.zeros(0, 8)), "the prompt is empty"),
        (by_embeds(torch.full((2, 8), math.nan)), r"NaN or infinity.*learning rate"),
        (by_embeds(torch.tensor([[0.0] * 7 + [-math.inf]])), "NaN or infinity"),
        (by_embeds(torch.zeros(8)), r"have shape \[8\], the engine takes \[seq, 8\]"),
        (by_embeds(torch.zeros(1, 2, 8)), r"have shape \[1, 2, 8\]"),
        (by_embeds(torch.zeros(2, 9)), r"have shape \[2, 9\], the engine takes \[seq, 8\]"),
        (by_ids(*range(17)), r"17 prompt positions plus a response limit of 4 are 21.*max_model_len of 20"),
        (replace(by_ids(1), sampling=Sampling(max_tokens=0)), "max_tokens is 0"),
        (replace(by_ids(1), sampling=Sampling(-1.0, 4)), r"the temperature is -1.0; give 0"),
        (replace(by_ids(1), sampling=Sampling(0.001, 4)), r"the temperature is 0.001; give 0.*from 0.01 on"),
        (replace(by_ids(1), sampling=Sampling(math.nan, 4)), "the temperature is nan"),
    ],
)
def test_what_no_engine_should_see_is_refused_by_task_and_agent(request_: Request, message: str) -> None:
    with pytest.raises(EngineError, match=f"^{LABEL}: .*{message}"):
        check_request(request_, 20, hidden_size=8)


@given(prompt=st.integers(1, 40), limit=st.integers(1, 40), room=st.integers(1, 60))
def test_prompt_and_response_must_fit_exactly(prompt: int, limit: int, room: int) -> None:
    request = Request(LABEL, Sampling(max_tokens=limit), tuple(range(prompt)))
    if prompt + limit <= room:
        check_request(request, room)
    else:
        with pytest.raises(EngineError, match=f"are {prompt + limit}, over"):
            check_request(request, room)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (by_ids(1), "the request has no messages"),
        (replace(by_ids(1), messages=()), "the request has no messages"),
        (replace(by_embeds(torch.zeros(3, 8)), messages=HELLO), "takes text only and cannot be sent latents"),
        (Request(LABEL, Sampling(-1.0, 4), messages=HELLO), r"the temperature is -1.0; give 0"),
    ],
)
def test_what_a_text_only_engine_cannot_be_asked_is_refused(request_: Request, message: str) -> None:
    with pytest.raises(EngineError, match=f"^{LABEL}: .*{message}"):
        check_text_request(request_)


def test_messages_are_all_that_a_text_only_engine_needs_and_tokens_need_none() -> None:
    check_text_request(Request(LABEL, SAMPLING, messages=HELLO))
    check_text_request(replace(by_ids(1, 2), messages=HELLO))
    check_request(replace(by_ids(1, 2), messages=HELLO), 7)


def test_a_schema_that_cannot_constrain_decoding_is_refused_with_its_path() -> None:
    check_grammar(by_ids(1))
    check_grammar(replace(by_ids(1), structure=JsonSchema({"type": "string"})))
    with pytest.raises(EngineError, match=rf"^{LABEL}: the keyword \$\.items\.not cannot constrain decoding"):
        check_grammar(replace(by_ids(1), structure=JsonSchema({"items": {"not": {}}})))


def test_a_text_only_answer_needs_text_and_no_tokens() -> None:
    made = answer(token_ids=(), logprobs=())
    assert check_completion(by_ids(1), made, text_only=True) is made
    with pytest.raises(EngineError, match=f"^{LABEL}: the engine returned no token"):
        check_completion(by_ids(1), replace(made, text=""), text_only=True)


def test_a_real_answer_passes_unchanged() -> None:
    for made in (answer(), answer(text="", token_ids=(2,), logprobs=(-0.5,)), answer(finish_reason="length")):
        assert check_completion(by_ids(1), made) is made


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (answer(token_ids=(), logprobs=()), "returned no token"),
        (answer(finish_reason="abort"), "gave up .*'abort'"),
        (answer(finish_reason="None"), "gave up"),
        (answer(logprobs=(-0.5, math.nan)), "log-probabilities hold NaN"),
        (answer(logprobs=(-math.inf, -0.5)), "log-probabilities hold NaN or infinity"),
    ],
)
def test_what_is_no_answer_is_an_error(made: Completion, message: str) -> None:
    with pytest.raises(EngineError, match=f"^{LABEL}: .*{message}"):
        check_completion(by_ids(1), made)
