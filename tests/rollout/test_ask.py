"""JSON out of whatever a model says, and a bounded number of attempts."""

from __future__ import annotations

import asyncio

import pytest

from rollout.ask import ATTEMPTS, Asker, json_value, question
from rollout.engine import EngineDiedError, Request, Sampling
from rollout.mas.mas import Message
from rollout.reflection import insights_schema, read_insights
from rollout.structure import Choices
from tests.rollout.question_engine import QuestionEngine
from tests.tiny_model import tiny_tokenizer

INSIGHTS = insights_schema(3, 32)
ASK = (Message("system", "You cook."), Message("user", "What did you learn?"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"score": 3}', {"score": 3}),
        ('```json\n{"score": 3}\n```', {"score": 3}),
        ('Sure! Here it is: {"score": 3}. Anything else?', {"score": 3}),
        ('{oops {"score": 3}', {"score": 3}),
        ('["a", "b"]', ["a", "b"]),
        ('{"score": 3', None),
        ("7", None),
        ("", None),
    ],
)
def test_the_first_json_value_whatever_is_around_it(text: str, value: object) -> None:
    assert json_value(text) == value


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"insights": [" a ", "", "b"]}, ("a", "b")),
        (["a"], ("a",)),
        ({"insights": []}, ()),
        ({"insights": "a"}, None),
        ({"insights": [1]}, None),
        ({"lessons": ["a"]}, None),
        (None, None),
    ],
)
def test_insights_are_read_or_refused(value: object, read: tuple[str, ...] | None) -> None:
    assert read_insights(value) == read


def test_a_question_is_the_whole_templated_prompt() -> None:
    engine = QuestionEngine(tiny_tokenizer(), lambda prompt, request: "salt")
    asked = question(engine.tokenizer, ASK, Sampling(0, 8), Choices(("salt", "oil")), "q")
    reply = asyncio.run(engine.generate(asked))
    ((prompt, request),) = engine.asked
    assert reply.text == "salt"
    assert prompt.endswith(
        "You cook.<|im_end|>\n<|im_start|>user\nWhat did you learn?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert (request.label, request.structure, request.messages) == ("q", Choices(("salt", "oil")), ASK)


def asked(*replies: str | None) -> tuple[tuple[str, ...] | None, Asker, list[Request]]:
    left = list(replies)
    engine = QuestionEngine(tiny_tokenizer(), lambda prompt, request: left.pop(0))
    asker = Asker(engine, engine.tokenizer, run_seed=4)
    found = asyncio.run(asker.ask_json(ASK, INSIGHTS, read_insights, 32, "distil 0 ann"))
    return found, asker, [request for _, request in engine.asked]


def test_a_readable_reply_is_asked_for_once_and_greedily() -> None:
    found, asker, requests = asked('{"insights": ["salt early"]}')
    assert found == ("salt early",)
    assert [request.sampling.temperature for request in requests] == [0.0]
    assert requests[0].structure == INSIGHTS
    assert (asker.calls, asker.completion_tokens, asker.unreadable) == (1, 2, 0)
    assert asker.prompt_tokens == requests[0].length


def test_unreadable_replies_are_asked_for_again_under_other_seeds() -> None:
    found, asker, requests = asked("no idea", None, "```\n[]\n```")
    assert found == ()
    assert [request.sampling.temperature for request in requests] == [0.0, 1.0, 1.0]
    assert len({request.sampling.seed for request in requests}) == 3
    assert (asker.calls, asker.unreadable) == (3, 0)


def test_at_last_it_is_given_up_and_counted() -> None:
    found, asker, requests = asked(*["no idea"] * 9)
    assert found is None
    assert len(requests) == ATTEMPTS
    assert asker.unreadable == 1


def test_an_engine_that_died_ends_the_run() -> None:
    def die(prompt: str, request: Request) -> str:
        raise EngineDiedError("gone")

    engine = QuestionEngine(tiny_tokenizer(), die)
    with pytest.raises(EngineDiedError, match="gone"):
        asyncio.run(Asker(engine, engine.tokenizer, 0).ask_json(ASK, INSIGHTS, read_insights, 32, "d"))
    assert len(engine.asked) == 1
