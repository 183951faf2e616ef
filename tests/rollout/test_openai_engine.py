"""The OpenAI engine against a local server that speaks the API: real HTTP, scripted answers."""

from __future__ import annotations

import asyncio
import io
import logging
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch

from lightning_modules.latentmem import LatentMem
from rollout.engine import Completion, EngineError, Request, Sampling
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.mas.mas import Message
from rollout.openai_engine import OpenAIEngine
from rollout.structure import Choices, JsonSchema
from tests.rollout.loopback_server import HANG_UP, Asked, LoopbackServer, Reply, loopback_server

SECRET = "sk-loopback-0123456789abcdef"
MESSAGES = (Message("system", "You answer."), Message("user", "What is the capital of Peru?"))
ASK = Request("task t7, agent solver", Sampling(0.7, 16, seed=5), messages=MESSAGES)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAS_TEST_KEY", SECRET)


def chat(text: str | None, finish_reason: str = "stop", usage: object = None) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    counted = usage or {"prompt_tokens": 21, "completion_tokens": 3, "total_tokens": 24}
    return Reply(
        body={
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": counted,
        }
    )


def in_turn(*replies: Reply) -> Callable[[Asked], Reply]:
    """One after the other, the last one for ever."""
    left = list(replies)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def connected(
    loop: EventLoopThread, reply: Callable[[Asked], Reply], **settings: Any
) -> Iterator[tuple[OpenAIEngine, LoopbackServer]]:
    with loopback_server(reply) as server:
        settings = {"api_key_env": "MAS_TEST_KEY", "max_retries": 2, **settings}
        engine = OpenAIEngine("small", f"{server.url}/v1", **settings)
        loop.run(engine.start())
        yield engine, server
        loop.run(engine.close())


def answers(loop: EventLoopThread, engine: OpenAIEngine, requests: Sequence[Request]) -> list[Completion]:
    async def together() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(request) for request in requests))

    return loop.run(together())


def test_messages_go_out_as_they_are_and_text_and_counts_come_back(loop: EventLoopThread) -> None:
    usage = {
        "prompt_tokens": 21,
        "completion_tokens": 3,
        "total_tokens": 24,
        "prompt_tokens_details": {"cached_tokens": 16},
    }
    with connected(loop, in_turn(chat("Lima.", usage=usage))) as (engine, server):
        (made,) = answers(loop, engine, [ASK])
        (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.body == {
        "model": "small",
        "messages": [
            {"role": "system", "content": "You answer."},
            {"role": "user", "content": "What is the capital of Peru?"},
        ],
        "temperature": 0.7,
        "top_p": 1.0,
        "max_tokens": 16,
        "seed": 5,
    }
    assert made.wall_s > 0
    expected = Completion("Lima.", (), (), "stop", 16, made.wall_s, None, None, 0, 21, 3)
    assert made == expected


def test_a_greedy_request_has_no_seed(loop: EventLoopThread) -> None:
    with connected(loop, in_turn(chat("Lima."))) as (engine, server):
        answers(loop, engine, [replace(ASK, sampling=Sampling(0.0, 4, seed=5))])
        (body,) = server.bodies("/v1/chat/completions")
    assert body["temperature"] == 0.0
    assert "seed" not in body


def test_a_server_that_does_not_count_is_believed(loop: EventLoopThread) -> None:
    reply = chat("Lima.")
    del reply.body["usage"]
    with connected(loop, in_turn(reply)) as (engine, _):
        (made,) = answers(loop, engine, [ASK])
    assert (made.prompt_tokens, made.completion_tokens, made.cached_tokens) == (None, None, None)


@pytest.mark.parametrize("passing", [Reply(429, {}), Reply(503, {}), Reply(500, "<p>oops</p>"), HANG_UP])
def test_what_passes_is_tried_again_and_counted(loop: EventLoopThread, passing: Reply) -> None:
    soon = replace(passing, headers={"Retry-After-Ms": "1"})
    with connected(loop, in_turn(soon, soon, chat("Lima."))) as (engine, server):
        (made,) = answers(loop, engine, [ASK])
        assert len(server.asked) == 3
    assert (made.text, made.retries) == ("Lima.", 2)


def test_an_attempt_that_takes_too_long_is_tried_again(loop: EventLoopThread) -> None:
    slow = replace(chat("late"), delay_s=1.0)
    with connected(loop, in_turn(slow, chat("Lima.")), timeout_s=0.2) as (engine, _):
        (made,) = answers(loop, engine, [ASK])
    assert (made.text, made.retries) == ("Lima.", 1)


def test_retries_are_bounded_and_the_error_names_task_agent_and_cause(loop: EventLoopThread) -> None:
    busy = Reply(429, {"error": {"message": "too many"}}, {"Retry-After-Ms": "1"})
    with connected(loop, in_turn(busy)) as (engine, server):
        with pytest.raises(EngineError, match=r"^task t7, agent solver: the API failed .*2 retries.*429.*too many"):
            answers(loop, engine, [ASK])
        assert len(server.asked) == 3


def test_what_does_not_pass_is_not_tried_again(loop: EventLoopThread) -> None:
    with connected(loop, in_turn(Reply(400, {"error": {"message": "no such parameter"}}))) as (engine, server):
        with pytest.raises(EngineError, match=r"agent solver: the API failed or refused .*no such parameter"):
            answers(loop, engine, [ASK])
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (chat(None), "returned no token"),
        (chat(""), "returned no token"),
        (chat("I will not", "content_filter"), "gave up .*'content_filter'"),
        (Reply(body="<p>Welcome</p>"), r"no chat completion; does base_url end as it should"),
        (Reply(body={"hello": 1}), r"no chat completion"),
    ],
)
def test_what_is_no_answer_is_an_error(loop: EventLoopThread, reply: Reply, message: str) -> None:
    with (
        connected(loop, in_turn(reply)) as (engine, _),
        pytest.raises(EngineError, match=f"^task t7, agent solver: .*{message}"),
    ):
        answers(loop, engine, [ASK])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (replace(ASK, messages=None), "the request has no messages"),
        (replace(ASK, messages=None, prompt_ids=(1, 2)), "the request has no messages"),
        (replace(ASK, prompt_embeds=torch.zeros(3, 8)), "text only and cannot be sent latents"),
        (replace(ASK, sampling=Sampling(1.0, 0)), "max_tokens is 0"),
    ],
)
def test_what_it_cannot_be_asked_is_refused_before_it_is_sent(
    loop: EventLoopThread, request_: Request, message: str
) -> None:
    with connected(loop, in_turn(chat("Lima."))) as (engine, server):
        with pytest.raises(EngineError, match=f"^task t7, agent solver: .*{message}"):
            answers(loop, engine, [request_])
        assert server.asked == []


def test_many_calls_are_under_way_at_once(loop: EventLoopThread) -> None:
    with connected(loop, in_turn(replace(chat("Lima."), delay_s=0.3))) as (engine, _):
        started = time.monotonic()
        made = answers(loop, engine, [ASK] * 32)
        assert time.monotonic() - started < 5  # 9.6 s one after another
    assert len(made) == 32


def test_a_structure_is_checked_and_asked_for_again_with_all_tokens_counted(loop: EventLoopThread) -> None:
    schema = JsonSchema({"type": "object", "required": ["capital"]})
    replies = in_turn(chat("It is Lima."), chat("{}"), chat('```json\n{"capital": "Lima"}\n```'))
    with connected(loop, replies) as (engine, server):
        (made,) = answers(loop, engine, [replace(ASK, structure=schema)])
        seeds = [body["seed"] for body in server.bodies("/v1/chat/completions")]
    assert (made.text, made.retries) == ('{"capital": "Lima"}', 2)
    assert (made.prompt_tokens, made.completion_tokens) == (63, 9)
    assert len(set(seeds)) == 3


def test_an_answer_that_never_holds_to_its_structure_is_an_error(loop: EventLoopThread) -> None:
    with connected(loop, in_turn(chat("maybe")), structure_attempts=2) as (engine, server):
        with pytest.raises(EngineError, match=r"agent solver: .* after 2 attempt.*'maybe' is none of"):
            answers(loop, engine, [replace(ASK, structure=Choices(("yes", "no")))])
        assert len(server.asked) == 2


def test_closing_ends_what_waits_and_it_can_be_started_again(loop: EventLoopThread) -> None:
    with connected(loop, in_turn(replace(chat("late"), delay_s=1.0), chat("Lima."))) as (engine, _):

        async def close_in_mid_flight() -> BaseException | Completion:
            call = asyncio.ensure_future(engine.generate(ASK))
            await asyncio.sleep(0.2)
            await engine.close()
            return (await asyncio.gather(call, return_exceptions=True))[0]

        assert str(loop.run(close_in_mid_flight())) == (
            "task t7, agent solver: the OpenAI engine was closed before it answered"
        )
        with pytest.raises(EngineError, match="agent solver: the OpenAI engine was not started"):
            answers(loop, engine, [ASK])
        loop.run(engine.start())
        assert answers(loop, engine, [ASK])[0].text == "Lima."


# ------------------------------------------------------------------ the key


def echo_key(status: int) -> Callable[[Asked], Reply]:
    """An answer that quotes what it was sent, as gateways do, and half of it, as OpenAI does."""

    def reply(asked: Asked) -> Reply:
        bearer = asked.headers["Authorization"]
        message = f"Incorrect API key provided: {bearer} ({SECRET[:8]}...{SECRET[-4:]})" if status == 401 else bearer
        return Reply(status, {"error": {"message": message, "headers": {"Authorization": bearer}}})

    return reply


@pytest.mark.parametrize("status", [401, 403, 400, 500])
def test_an_error_that_quotes_the_key_does_not_show_it(
    loop: EventLoopThread, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with connected(loop, echo_key(status), max_retries=0) as (engine, server):
        with pytest.raises(EngineError, match=r"^task t7, agent solver: the API") as failure:
            answers(loop, engine, [ASK])
        assert server.asked[0].headers["Authorization"] == f"Bearer {SECRET}"
        shown = io.StringIO()
        traceback.print_exception(failure.value, file=shown)
        settings = repr({name: value for name, value in vars(engine).items() if not name.startswith("_")})
    for text in (shown.getvalue(), str(failure.value), caplog.text, repr(engine), settings):
        assert SECRET not in text
    assert "MAS_TEST_KEY" in str(failure.value)
    if status in (401, 403):
        assert SECRET[:8] not in shown.getvalue()
        assert f"the API refused the key in $MAS_TEST_KEY (HTTP {status})" in str(failure.value)
    assert failure.value.__context__ is None


def test_a_missing_key_is_said_when_the_engine_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAS_TEST_KEY")
    with pytest.raises(ValueError, match="api_key_env: the environment variable MAS_TEST_KEY is not set"):
        OpenAIEngine("small", api_key_env="MAS_TEST_KEY")


def test_a_server_without_keys_is_asked_without_one(loop: EventLoopThread) -> None:
    with connected(loop, in_turn(chat("Lima.")), api_key_env=None) as (engine, server):
        assert answers(loop, engine, [ASK])[0].text == "Lima."
        assert SECRET not in server.asked[0].headers["Authorization"]


def test_the_limit_goes_by_the_name_that_the_api_takes(loop: EventLoopThread) -> None:
    for settings, name in (({}, "max_tokens"), ({"limit_field": "max_completion_tokens"}, "max_completion_tokens")):
        with connected(loop, in_turn(chat("Lima.")), **settings) as (engine, server):
            answers(loop, engine, [ASK])
            limits = {key: value for key, value in server.asked[0].body.items() if key.startswith("max_")}
            assert limits == {name: ASK.sampling.max_tokens}


def test_latents_and_training_on_it_are_refused_with_the_key_before_any_model_is_loaded() -> None:
    with pytest.raises(ValueError, match=r"^model\.engine: OpenAIEngine takes text only: latents cannot be sent"):
        LatentMem("no such model", OpenAIEngine("small", api_key_env=None), AutoGen())
