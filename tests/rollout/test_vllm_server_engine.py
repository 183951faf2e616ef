"""A real ``vllm serve`` process with the small model: its answers, and a way to it killed in mid-run."""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from eval.bench.tcp_proxy import ProxyProcess, free_port
from eval.bench.vllm_serve import vllm_serve
from rollout.counters import Counters
from rollout.engine import Completion, Engine, Request, Sampling
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.mas.mas import Message
from rollout.prompt import render
from rollout.runner import EpisodeRunner, RolloutSettings
from rollout.structure import Choices, JsonSchema
from rollout.transformers_engine import TransformersEngine
from rollout.vllm_server_engine import VLLMServerEngine
from tests.rollout.parts import PHASE, TASKS, Facts, FixedMemory, difference, sums

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

pytestmark = [pytest.mark.slow, pytest.mark.vllm]

QUESTIONS = ("What is the capital of Peru?", "Who wrote the novel Emma?", "In which year did the Second World War end?")


def answers(loop: EventLoopThread, engine: Engine, requests: Sequence[Request]) -> list[Completion]:
    async def together() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(request) for request in requests))

    return loop.run(together())


def eventually(happened: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def server_port(smollm_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """One ``vllm serve`` with the small model for all that follows."""
    with vllm_serve(smollm_path, 512, 32, tmp_path_factory.mktemp("serve") / "vllm.log") as port:
        yield port


@pytest.fixture(scope="module")
def served(loop: EventLoopThread, smollm_path: str, server_port: int) -> Iterator[VLLMServerEngine]:
    engine = VLLMServerEngine(smollm_path, [f"http://127.0.0.1:{server_port}"])
    loop.run(engine.start())
    yield engine
    loop.run(engine.close())


@pytest.fixture(scope="module")
def model(smollm_path: str) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(smollm_path, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer(smollm_path: str) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(smollm_path)


def prompt_of(tokenizer: PreTrainedTokenizerBase, question: str) -> tuple[int, ...]:
    rendered = render(tokenizer, [Message("user", question)])
    return rendered.prefix_ids + rendered.suffix_ids


def test_token_and_embedding_prompts_are_answered_as_by_transformers(
    served: VLLMServerEngine, loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    reference = TransformersEngine("shared", max_model_len=512)
    reference.share(model, tokenizer)
    loop.run(reference.start())
    prompts = [prompt_of(tokenizer, question) for question in QUESTIONS]
    by_ids = [Request(f"task q{n}, agent a", Sampling(0.0, 16), ids) for n, ids in enumerate(prompts)]
    table = model.get_input_embeddings()
    by_embeds = [
        replace(request, prompt_ids=None, prompt_embeds=table(torch.tensor(request.prompt_ids)).detach())
        for request in by_ids
    ]
    expected = answers(loop, reference, by_ids)
    assert "Lima" in expected[0].text
    for made in (answers(loop, served, by_ids), answers(loop, served, by_embeds)):
        for one, other in zip(made, expected, strict=True):
            assert (one.text, one.token_ids, one.finish_reason) == (other.text, other.token_ids, other.finish_reason)
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)
            assert one.cached_tokens is not None
            assert one.first_token_s is not None
            assert one.queue_s is not None
            assert 0 <= one.queue_s <= one.first_token_s <= one.wall_s
    loop.run(reference.close())


def counted_by_server(port: int) -> Counters:
    """From its ``/metrics`` page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page = answer.read().decode()

    def total(name: str) -> int:
        found = re.findall(rf"^vllm:{name}_total{{.*}} (\S+)$", page, re.MULTILINE)
        assert found, f"the page has no vllm:{name}_total"
        return int(sum(map(float, found)))

    names = ("request_success", "prompt_tokens", "generation_tokens", "prompt_tokens_cached")
    return Counters(*map(total, names))


def test_sums_equal_the_servers_own_counters(
    served: VLLMServerEngine,
    server_port: int,
    loop: EventLoopThread,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    """Two episodes with token prompts, two with latents."""
    before = counted_by_server(server_port)
    runner = EpisodeRunner(
        served, AutoGen(), tokenizer, model.get_input_embeddings(), Facts(), RolloutSettings(max_tokens=12), loop=loop
    )
    memories = FixedMemory("Lima"), FixedMemory(latents=torch.full((5, 576), 0.1))
    made = [each for memory in memories for each in runner.run(TASKS[:2], 1, PHASE, memory)]
    assert not [trajectory.failure for trajectory in made if trajectory.failure]
    assert sums(made) == difference(counted_by_server(server_port), before)
    assert sums(made).requests == 2 * 2 * 2


def test_log_probabilities_of_a_seeded_sample_are_those_at_its_temperature(
    served: VLLMServerEngine, loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    prompt = prompt_of(tokenizer, QUESTIONS[1])
    request = Request("task q0, agent a", Sampling(0.7, 12, seed=2**63 - 1), prompt)
    (made,), (again,) = answers(loop, served, [request]), answers(loop, served, [request])
    assert made.token_ids == again.token_ids
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *made.token_ids]])).logits[0, len(prompt) - 1 : -1]
    taken = torch.log_softmax(logits / 0.7, -1).gather(-1, torch.tensor(made.token_ids)[:, None])[:, 0]
    assert torch.tensor(made.logprobs) == pytest.approx(taken, abs=1e-3)


def test_structures_constrain_decoding_for_both_prompt_forms(
    served: VLLMServerEngine, loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    ids = prompt_of(tokenizer, "What is the capital of Peru? Name every fact you used.")
    embeds = model.get_input_embeddings()(torch.tensor(ids)).detach()
    for prompt in ({"prompt_ids": ids}, {"prompt_embeds": embeds}):
        request = Request("task q0, agent a", Sampling(1.0, 80, seed=3), **prompt)
        (choice,) = answers(loop, served, [replace(request, structure=Choices(("go to desk 1", "look")))])
        assert choice.text in ("go to desk 1", "look")
        (made,) = answers(loop, served, [replace(request, structure=JsonSchema(bounded_ledger()))])
        ledger = json.loads(made.text)
        assert isinstance(ledger["done"], bool)
        assert made.text == json.dumps(ledger, separators=(",", ":"), ensure_ascii=False)  # no white space


def test_log_probabilities_under_a_constraint_are_of_the_constrained_distribution(
    served: VLLMServerEngine, loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase
) -> None:
    """A single choice leaves no choice: every token has probability 1."""
    request = Request("task q0, agent a", Sampling(1.0, 16, seed=3), prompt_of(tokenizer, QUESTIONS[0]))
    (made,) = answers(loop, served, [replace(request, structure=Choices(("Quito",)))])
    assert made.text == "Quito"
    # Several tokenisations of one word are left, so that only the sum over them is 1.
    assert made.logprobs[-1] == pytest.approx(0.0, abs=1e-5)


def bounded_ledger() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "facts": {"type": "array", "maxItems": 1, "items": {"type": "string", "maxLength": 12}},
            "done": {"type": "boolean"},
        },
        "required": ["facts", "done"],
        "additionalProperties": False,
    }


def test_a_replica_killed_in_the_middle_of_a_run_loses_and_doubles_nothing(
    loop: EventLoopThread, smollm_path: str, server_port: int, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Two proxy processes stand before the one server; SIGKILL takes one of them with its connections."""
    victim, other = (ProxyProcess(free_port(), server_port) for _ in range(2))
    victim.start()
    other.start()
    engine = VLLMServerEngine(smollm_path, [victim.url, other.url])
    prompts = [prompt_of(tokenizer, f"Name {n} fruits.") for n in range(2, 10)]
    requests = [Request(f"task q{n}, agent a", Sampling(0.0, 16), ids) for n, ids in enumerate(prompts)]

    async def kill_in_mid_flight() -> list[Completion]:
        calls = [asyncio.ensure_future(engine.generate(request)) for request in requests]
        await asyncio.wait(calls, timeout=0.4)
        assert engine.replicas.all[0].in_flight > 0
        await asyncio.to_thread(victim.kill)
        return list(await asyncio.gather(*calls))

    loop.run(engine.start())
    expected = answers(loop, engine, requests)
    made = loop.run(kill_in_mid_flight())
    assert [answer.token_ids for answer in made] == [answer.token_ids for answer in expected]
    assert sum(answer.retries for answer in made) > 0
    assert [replica.live for replica in engine.replicas.all] == [False, True]
    victim.start()
    eventually(lambda: engine.replicas.all[0].live, within_s=60)
    loop.run(engine.close())
    victim.kill()
    other.kill()
