"""The engine over scripted replicas: real HTTP, and every failure that there is."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rollout.engine import Completion, Engine, EngineDiedError, EngineError, Request, Sampling
from rollout.event_loop import EventLoopThread
from rollout.structure import Choices, JsonSchema
from rollout.vllm_server_engine import VLLMServerEngine
from tests.rollout.loopback_server import HANG_UP, Asked, LoopbackServer, Reply, loopback_server
from tests.rollout.scripted_replica import ScriptedReplica
from tests.rollout.test_structure import LEDGER

ASK = Request("task t7, agent solver", Sampling(0.7, 16, seed=5), prompt_ids=(1, 2))
SECRET = "sk-replica-0123456789abcdef"


def answers(loop: EventLoopThread, engine: Engine, requests: Sequence[Request]) -> list[Completion]:
    async def together() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(request) for request in requests))

    return loop.run(together())


def requests_of(count: int) -> list[Request]:
    return [replace(ASK, label=f"task t{n}, agent solver", prompt_ids=(n,)) for n in range(count)]


@contextmanager
def connected(
    loop: EventLoopThread, model: Path, *replicas: Callable[[Asked], Reply], **settings: Any
) -> Iterator[tuple[VLLMServerEngine, list[LoopbackServer]]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(loopback_server(replica)) for replica in replicas]
        engine = VLLMServerEngine(str(model), [server.url for server in servers], **settings)
        stack.callback(lambda: loop.run(engine.close()))
        loop.run(engine.start())
        yield engine, servers


def replicas_of(model: Path, count: int = 2, **settings: Any) -> list[ScriptedReplica]:
    return [ScriptedReplica(name, model=str(model), **settings) for name in "abc"[:count]]


def eventually(happened: Callable[[], bool], within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ------------------------------------------------------------------ one request


def test_both_prompt_forms_are_answered_with_all_that_the_server_tells(
    loop: EventLoopThread, tiny_model_dir: Path
) -> None:
    (replica,) = replicas_of(tiny_model_dir, 1)
    embeds = replace(ASK, prompt_ids=None, prompt_embeds=torch.zeros(9, 32))
    with connected(loop, tiny_model_dir, replica) as (engine, _):
        by_ids, by_embeds = answers(loop, engine, [ASK, embeds])
    assert by_ids == Completion("a3", (3, 2), (-0.5, -0.25), "stop", 16, by_ids.wall_s, 0.25, 0.125)
    assert by_embeds.text == "a9"
    (sent,) = (body for body in replica.answered if "prompt" in body)
    assert (sent["seed"], sent["temperature"], sent["top_p"], sent["max_tokens"]) == (5, 0.7, 1.0, 16)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (replace(ASK, prompt_ids=tuple(range(49))), r"are 65, over the engine's max_model_len of 64"),
        (replace(ASK, prompt_ids=None, prompt_embeds=torch.zeros(3, 31)), r"\[3, 31\], the engine takes \[seq, 32\]"),
        (
            replace(ASK, structure=JsonSchema({"multipleOf": 3})),
            r"the keyword \$\.multipleOf cannot constrain decoding",
        ),
    ],
)
def test_what_it_cannot_be_asked_is_refused_before_it_is_sent(
    loop: EventLoopThread, tiny_model_dir: Path, request_: Request, message: str
) -> None:
    (replica,) = replicas_of(tiny_model_dir, 1)
    with (
        connected(loop, tiny_model_dir, replica) as (engine, _),
        pytest.raises(EngineError, match=f"^task t7, agent solver: .*{message}"),
    ):
        answers(loop, engine, [request_])
    assert replica.answered == []


def test_a_refused_request_is_its_own_fault_and_asked_once(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    replicas = replicas_of(tiny_model_dir, 2, fail_with=Reply(400, {"error": {"message": "token id 99 is too large"}}))
    with connected(loop, tiny_model_dir, *replicas) as (engine, servers):
        with pytest.raises(EngineError, match=r"^task t7, agent solver: vLLM refused .*HTTP 400.*token id 99"):
            answers(loop, engine, [ASK])
        assert sum(len(server.bodies("/v1/completions")) for server in servers) == 4 + 1  # probes of the start
        assert all(replica.live for replica in engine.replicas.all)


def test_a_structure_goes_along_and_a_cut_answer_is_an_error(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    (replica,) = replicas_of(tiny_model_dir, 1)
    with connected(loop, tiny_model_dir, replica) as (engine, _):
        (made,) = answers(loop, engine, [replace(ASK, structure=Choices(("a3", "b3")))])
        assert made.text == "a3"
        assert replica.answered[-1]["structured_outputs"] == {"choice": ["a3", "b3"]}
        with pytest.raises(EngineError, match=r"agent solver: .* after 1 attempt.*'a3' is no JSON"):
            answers(loop, engine, [replace(ASK, structure=JsonSchema(LEDGER))])


# ------------------------------------------------------------------ several replicas


def test_requests_spread_over_all_replicas(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    replicas = replicas_of(tiny_model_dir, 3, delay_s=0.3)
    with connected(loop, tiny_model_dir, *replicas) as (engine, _):
        made = answers(loop, engine, requests_of(12))
    assert [len(replica.answered) for replica in replicas] == [4, 4, 4]
    assert sorted(answer.text[0] for answer in made) == list("aaaabbbbcccc")
    assert {answer.retries for answer in made} == {0}


def test_a_replica_that_dies_is_out_its_requests_go_to_another_and_it_returns(
    loop: EventLoopThread, tiny_model_dir: Path
) -> None:
    first, second = replicas_of(tiny_model_dir)
    with connected(loop, tiny_model_dir, first, second) as (engine, _):
        first.down = True
        made = answers(loop, engine, requests_of(8))
        assert [answer.text for answer in made] == [f"b{n}" for n in range(8)]
        assert {answer.retries for answer in made} == {0, 1}
        assert [replica.live for replica in engine.replicas.all] == [False, True]
        assert "disconnected" in engine.replicas.all[0].last_error
        assert {answer.retries for answer in answers(loop, engine, requests_of(8))} == {0}

        first.down = False
        eventually(lambda: engine.replicas.all[0].live)
        made = answers(loop, engine, requests_of(8))
        assert {answer.text[0] for answer in made} == {"a", "b"}


def test_a_replica_that_comes_back_as_another_model_stays_out(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    first, second = replicas_of(tiny_model_dir)
    with connected(loop, tiny_model_dir, first, second) as (engine, _):
        first.down = True
        answers(loop, engine, [ASK])
        first.model, first.down = "another", False
        eventually(lambda: "it serves 'served', not" in engine.replicas.all[0].last_error)
        assert not engine.replicas.all[0].live
        assert answers(loop, engine, [ASK])[0].text == "b3"


def test_when_none_is_left_the_error_names_every_replica(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    replicas = replicas_of(tiny_model_dir)
    with connected(loop, tiny_model_dir, *replicas, outage_s=0.2) as (engine, servers):
        for replica in replicas:
            replica.down = True
        with pytest.raises(EngineDiedError, match=r"^task t7, agent solver: no replica is left") as failure:
            answers(loop, engine, [ASK])
        for server in servers:
            assert f"{server.url}: RemoteProtocolError: Server disconnected" in str(failure.value)


def test_requests_wait_for_the_only_replica_to_start_again(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    (replica,) = replicas_of(tiny_model_dir, 1)
    with connected(loop, tiny_model_dir, replica, max_retries=1) as (engine, _):
        replica.down = True
        threading.Timer(0.8, lambda: setattr(replica, "down", False)).start()
        made = answers(loop, engine, requests_of(6))
    assert [(answer.text, answer.retries) for answer in made] == [(f"a{n}", 1) for n in range(6)]


def test_a_request_that_fails_on_well_replicas_is_bounded_and_takes_none_out(
    loop: EventLoopThread, tiny_model_dir: Path
) -> None:
    replicas = replicas_of(tiny_model_dir, 2, fail_with=Reply(500, {"error": {"message": "nan is not JSON"}}))
    with connected(loop, tiny_model_dir, *replicas, max_retries=1) as (engine, _):
        with pytest.raises(
            EngineError, match=r"agent solver: 2 attempts failed, the last one on http.*HTTP 500.*nan is"
        ):
            answers(loop, engine, [ASK])
        assert all(replica.live for replica in engine.replicas.all)


@pytest.mark.parametrize("body", ["<p>Busy</p>", {}, {"choices": []}, {"choices": [{"text": "Lima"}], "usage": {}}])
def test_an_answer_that_is_no_completion_is_an_engines_error(
    loop: EventLoopThread, tiny_model_dir: Path, body: Any
) -> None:
    (replica,) = replicas_of(tiny_model_dir, 1, fail_with=Reply(body=body))
    with (
        connected(loop, tiny_model_dir, replica) as (engine, _),
        pytest.raises(EngineError, match=r"agent solver: what http://.*/v1/completions answered is no completion"),
    ):
        answers(loop, engine, [ASK])


def test_a_broken_connection_to_a_well_replica_is_tried_again_there(
    loop: EventLoopThread, tiny_model_dir: Path
) -> None:
    (replica,) = replicas_of(tiny_model_dir, 1, fail_with=HANG_UP)
    with connected(loop, tiny_model_dir, replica) as (engine, _):
        threading.Timer(0.2, lambda: setattr(replica, "fail_with", None)).start()
        (made,) = answers(loop, engine, [ASK])
        assert (made.text, made.retries) == ("a3", 1)
        assert engine.replicas.all[0].live


def test_an_answer_that_the_server_gave_up_goes_to_another(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    first, second = replicas_of(tiny_model_dir)
    first.finish_reason = "abort"  # what vLLM says while it shuts down
    with connected(loop, tiny_model_dir, first, second) as (engine, _):
        (made,) = answers(loop, engine, [ASK])
    assert (made.text, made.retries) == ("b3", 1)


def test_whatever_fails_at_random_every_request_has_its_own_answer(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    chance = random.Random(3)
    replicas = replicas_of(tiny_model_dir)

    def shaky(replica: ScriptedReplica) -> Callable[[Asked], Reply]:
        def reply(asked: Asked) -> Reply:
            fails = asked.path == "/v1/completions" and asked.body["logprobs"] == 0 and chance.random() < 0.2
            return chance.choice([HANG_UP, Reply(500, {}), Reply(503, {})]) if fails else replica(asked)

        return reply

    with connected(loop, tiny_model_dir, *map(shaky, replicas), max_retries=10) as (engine, _):
        made = answers(loop, engine, requests_of(48))
    assert [int(answer.text[1:]) for answer in made] == list(range(48))
    answered = [body["prompt"][0] for replica in replicas for body in replica.answered]
    assert sorted(answered) == list(range(48))
    assert sum(answer.retries for answer in made) > 0


# ------------------------------------------------------------------ starting and closing


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"model": "another"}, r"it serves 'served', not .*tiny-model"),
        ({"embeds": False}, "does not take prompt embeddings; start it with --enable-prompt-embeds"),
        ({"processed": False}, "start it with --logprobs-mode processed_logprobs"),
        ({"down": True}, "RemoteProtocolError"),
    ],
)
def test_every_replica_is_checked_at_the_start(
    loop: EventLoopThread, tiny_model_dir: Path, fault: dict[str, object], message: str
) -> None:
    good, bad = replicas_of(tiny_model_dir)
    for name, value in fault.items():
        setattr(bad, name, value)
    faults = rf"not every replica can serve .*: no error; http://127\.0\.0\.1:\d+: .*{message}"
    with pytest.raises(EngineError, match=faults), connected(loop, tiny_model_dir, good, bad):
        pass


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(404, {}), "HTTP 404 from /v1/models"),
        (Reply(body="<p>Hi</p>"), "/v1/models does not answer in JSON"),
        (Reply(body={}), "/v1/models does not list models as vLLM does"),
        (Reply(body=[1]), "/v1/models does not list models as vLLM does"),
        (Reply(body={"data": [{"id": "served"}]}), "/v1/models does not list models as vLLM does"),
    ],
)
def test_a_server_that_is_no_vllm_is_said_to_be_none(
    loop: EventLoopThread, tiny_model_dir: Path, reply: Reply, message: str
) -> None:
    with pytest.raises(EngineError, match=message), connected(loop, tiny_model_dir, lambda asked: reply):
        pass


def test_the_smallest_window_rules(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    first, second = replicas_of(tiny_model_dir)
    second.max_model_len = 20
    with (
        connected(loop, tiny_model_dir, first, second) as (engine, _),
        pytest.raises(EngineError, match="over the engine's max_model_len of 20"),
    ):
        answers(loop, engine, [replace(ASK, prompt_ids=(1,) * 5)])


def test_closing_ends_what_waits_and_it_can_be_started_again(loop: EventLoopThread, tiny_model_dir: Path) -> None:
    (replica,) = replicas_of(tiny_model_dir, 1, delay_s=1.0)
    with connected(loop, tiny_model_dir, replica) as (engine, _):

        async def close_in_mid_flight() -> list[BaseException | Completion]:
            calls = [asyncio.ensure_future(engine.generate(request)) for request in requests_of(2)]
            await asyncio.sleep(0.2)
            await engine.close()
            return await asyncio.gather(*calls, return_exceptions=True)

        messages = [str(failure) for failure in loop.run(close_in_mid_flight())]
        ended = "agent solver: the vLLM server engine was closed before it answered"
        assert messages == [f"task t0, {ended}", f"task t1, {ended}"]
        with pytest.raises(EngineError, match="agent solver: the vLLM server engine was not started"):
            answers(loop, engine, [ASK])
        loop.run(engine.start())
        replica.delay_s = 0.0
        assert answers(loop, engine, [ASK])[0].text == "a3"
        with pytest.raises(EngineError, match="another event loop"):
            asyncio.run(engine.start())


def test_a_key_goes_into_the_header_and_nowhere_else(
    loop: EventLoopThread, tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAS_TEST_KEY", SECRET)
    (replica,) = replicas_of(tiny_model_dir, 1)
    with connected(loop, tiny_model_dir, replica, api_key_env="MAS_TEST_KEY") as (engine, servers):
        assert {asked.headers["Authorization"] for asked in servers[0].asked} == {f"Bearer {SECRET}"}
        for status in (401, 500):
            replica.fail_with = Reply(status, {"error": f"bad key: Bearer {SECRET}"})
            with pytest.raises(EngineError, match=r"bad key: Bearer \$MAS_TEST_KEY") as failure:
                answers(loop, replace_retries(engine), [ASK])
            assert SECRET not in str(failure.value)
        assert SECRET not in engine.replicas.report()


def replace_retries(engine: VLLMServerEngine) -> VLLMServerEngine:
    engine.max_retries = 0
    return engine
