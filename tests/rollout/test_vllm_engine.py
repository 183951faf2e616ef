"""vLLM against transformers on the real small model, and what happens when it refuses, dies or is closed."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rollout.engine import Completion, Engine, EngineError, Request, Sampling
from rollout.event_loop import EventLoopThread
from rollout.mas.mas import Message
from rollout.prompt import render
from rollout.structure import Choices, JsonSchema
from rollout.transformers_engine import TransformersEngine
from rollout.vllm_engine import VLLMEngine, _environment

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

QUESTIONS = (
    "What is the capital of Peru?",
    "Who wrote the novel Emma?",
    "What is the chemical symbol of gold? Answer with the symbol only, and nothing else.",
    "In which year did the Second World War end?",
)
TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def model(smollm_path: str) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(smollm_path, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer(smollm_path: str) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(smollm_path)


@pytest.fixture(scope="module")
def reference(
    loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> Iterator[TransformersEngine]:
    engine = TransformersEngine("shared", max_model_len=512)
    engine.share(model, tokenizer)
    loop.run(engine.start())
    yield engine
    loop.run(engine.close())


@pytest.fixture(scope="module")
def prompts(tokenizer: PreTrainedTokenizerBase) -> list[tuple[int, ...]]:
    rendered = [render(tokenizer, [Message("user", question)]) for question in QUESTIONS]
    return [prompt.prefix_ids + prompt.suffix_ids for prompt in rendered]


def request_of(prompt: Sequence[int] | torch.Tensor, sampling: Sampling, task: int = 0) -> Request:
    label = f"task q{task}, agent assistant"
    if isinstance(prompt, torch.Tensor):
        return Request(label, sampling, prompt_embeds=prompt)
    return Request(label, sampling, prompt_ids=tuple(prompt))


def embedded(model: PreTrainedModel, prompt: Sequence[int]) -> torch.Tensor:
    return model.get_input_embeddings()(torch.tensor(prompt)).detach()


def answers(loop: EventLoopThread, engine: Engine, requests: Sequence[Request]) -> list[Completion]:
    async def together() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(request) for request in requests))

    return loop.run(together())


def assert_same(ours: Sequence[Completion], theirs: Sequence[Completion]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_ids == other.token_ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=TOLERANCE)
        assert (one.text, one.finish_reason) == (other.text, other.finish_reason)


def test_engines_agree_on_token_prompts(
    vllm_engine: VLLMEngine, reference: TransformersEngine, loop: EventLoopThread, prompts: list[tuple[int, ...]]
) -> None:
    requests = [request_of(prompt, Sampling(0.0, 24), task) for task, prompt in enumerate(prompts)]
    ours = answers(loop, vllm_engine, requests)
    assert_same(ours, answers(loop, reference, requests))
    assert {made.finish_reason for made in ours} == {"stop", "length"}
    assert "Lima" in ours[0].text


def test_engines_agree_on_embedding_prompts_which_equal_token_prompts_on_each(
    vllm_engine: VLLMEngine,
    reference: TransformersEngine,
    loop: EventLoopThread,
    model: PreTrainedModel,
    prompts: list[tuple[int, ...]],
) -> None:
    by_ids = [request_of(prompt, Sampling(0.0, 8)) for prompt in prompts]
    by_embeds = [request_of(embedded(model, prompt), Sampling(0.0, 8)) for prompt in prompts]
    ours, theirs = answers(loop, vllm_engine, by_embeds), answers(loop, reference, by_embeds)
    assert_same(ours, theirs)
    assert_same(ours, answers(loop, vllm_engine, by_ids))
    assert_same(theirs, answers(loop, reference, by_ids))


def test_engines_agree_on_latents_that_are_no_token(
    vllm_engine: VLLMEngine,
    reference: TransformersEngine,
    loop: EventLoopThread,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    prompt = render(tokenizer, [Message("user", QUESTIONS[1])])
    requests = []
    for seed in range(4):
        latents = 0.135 * torch.randn(8, 576, generator=torch.Generator().manual_seed(seed))
        parts = [embedded(model, prompt.prefix_ids), latents, embedded(model, prompt.suffix_ids)]
        requests.append(request_of(torch.cat(parts), Sampling(0.0, 8), seed))
    assert_same(answers(loop, vllm_engine, requests), answers(loop, reference, requests))


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_sampled_log_probabilities_are_the_trainers(
    vllm_engine: VLLMEngine,
    loop: EventLoopThread,
    model: PreTrainedModel,
    prompts: list[tuple[int, ...]],
    temperature: float,
) -> None:
    """What an importance ratio divides by: log softmax(logits / T) of the very tokens sampled."""
    requests = [request_of(prompt, Sampling(temperature, 16, seed)) for seed, prompt in enumerate(prompts)]
    requests.append(request_of(prompts[0], Sampling(0.0, 16)))  # greedy beside sampled ones: unscaled
    for request, made in zip(requests, answers(loop, vllm_engine, requests), strict=True):
        prompt = list(request.prompt_ids or ())
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *made.token_ids]])).logits[0, len(prompt) - 1 : -1]
        scaled = torch.log_softmax(logits / (request.sampling.temperature or 1.0), dim=-1)
        expected = scaled.gather(-1, torch.tensor(made.token_ids)[:, None])[:, 0]
        assert torch.tensor(made.logprobs) == pytest.approx(expected, abs=TOLERANCE)


def test_a_seed_gives_the_same_sample_again(
    vllm_engine: VLLMEngine, loop: EventLoopThread, model: PreTrainedModel, prompts: list[tuple[int, ...]]
) -> None:
    """One request at a time: in a batch, rounding may differ."""

    def sample(seed: int, prompt: Sequence[int] | torch.Tensor = prompts[0]) -> tuple[int, ...]:
        (made,) = answers(loop, vllm_engine, [request_of(prompt, Sampling(1.0, 12, seed))])
        return made.token_ids

    assert sample(2**63 - 1) == sample(2**63 - 1) == sample(2**63 - 1, embedded(model, prompts[0]))
    assert len({sample(seed) for seed in range(4)}) > 1


def test_many_requests_are_answered_at_once_with_their_times(
    vllm_engine: VLLMEngine, loop: EventLoopThread, prompts: list[tuple[int, ...]]
) -> None:
    """More than ``max_num_seqs``: the last ones queue."""
    requests = [request_of(prompts[n % 4], Sampling(1.0, 8, n)) for n in range(48)]
    made = answers(loop, vllm_engine, requests)
    for answer in made:
        assert 1 <= len(answer.token_ids) <= 8
        assert len(answer.logprobs) == len(answer.token_ids)
        assert answer.queue_s is not None
        assert answer.first_token_s is not None
        assert 0 <= answer.queue_s <= answer.first_token_s <= answer.wall_s
    assert max(answer.queue_s or 0.0 for answer in made) > min(answer.wall_s for answer in made) / 4


def test_a_shared_prefix_is_served_from_the_cache(
    vllm_engine: VLLMEngine, loop: EventLoopThread, model: PreTrainedModel
) -> None:
    ids = [1000 + n for n in range(300)]
    for prompt in (ids, embedded(model, ids)):
        first, again = (answers(loop, vllm_engine, [request_of(prompt, Sampling(0.0, 4))])[0] for _ in range(2))
        assert (first.cached_tokens or 0) < 128
        assert (again.cached_tokens or 0) >= 128
        assert_same([again], [first])


def test_structures_constrain_decoding_for_both_prompt_forms(
    vllm_engine: VLLMEngine, loop: EventLoopThread, model: PreTrainedModel, prompts: list[tuple[int, ...]]
) -> None:
    note = JsonSchema(
        {
            "type": "object",
            "properties": {"sure": {"type": "boolean"}},
            "required": ["sure"],
            "additionalProperties": False,
        }
    )
    for prompt in (prompts[0], embedded(model, prompts[0])):
        request = request_of(prompt, Sampling(1.0, 24, seed=3))
        choices, json = (replace(request, structure=each) for each in (Choices(("go to desk 1", "look")), note))
        made = answers(loop, vllm_engine, [choices, json])
        assert made[0].text in ("go to desk 1", "look")
        assert made[1].text in ('{"sure":true}', '{"sure":false}')  # white space is no part of the grammar
    with pytest.raises(EngineError, match=r"task q0, agent assistant: .* after 1 attempt.*'length'"):
        answers(loop, vllm_engine, [replace(json, sampling=Sampling(1.0, 2, seed=3))])
    with pytest.raises(EngineError, match=r"agent assistant: the keyword \$\.multipleOf cannot constrain decoding"):
        answers(loop, vllm_engine, [replace(json, structure=JsonSchema({"multipleOf": 3}))])


@pytest.mark.parametrize(
    ("prompt", "limit", "message"),
    [
        (torch.full((3, 576), math.nan), 4, "hold NaN or infinity"),
        (torch.zeros(3, 64), 4, r"shape \[3, 64\], the engine takes \[seq, 576\]"),
        ((5,) * 500, 13, "are 513, over the engine's max_model_len of 512"),
        ((), 4, "the prompt is empty"),
        ((49152,), 4, "vLLM refused or failed the request"),
    ],
    ids=["nan", "width", "length", "empty", "vocabulary"],
)
def test_a_refused_request_names_task_and_agent_and_the_engine_lives_on(
    vllm_engine: VLLMEngine, loop: EventLoopThread, prompt: Sequence[int] | torch.Tensor, limit: int, message: str
) -> None:
    with pytest.raises(EngineError, match=rf"^task q3, agent assistant: .*{message}"):
        loop.run(vllm_engine.generate(request_of(prompt, Sampling(0.0, limit), task=3)))
    assert answers(loop, vllm_engine, [request_of((5, 6), Sampling(0.0, 2))])[0].token_ids


def test_a_cancelled_request_leaves_the_engine_usable(vllm_engine: VLLMEngine, loop: EventLoopThread) -> None:
    async def cancel() -> None:
        call = asyncio.ensure_future(vllm_engine.generate(request_of((5, 6), Sampling(1.0, 400, 1))))
        await asyncio.sleep(0.5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    loop.run(cancel())
    assert answers(loop, vllm_engine, [request_of((5, 6), Sampling(0.0, 2))])[0].token_ids


def test_it_belongs_to_the_loop_that_started_it(vllm_engine: VLLMEngine, loop: EventLoopThread) -> None:
    loop.run(vllm_engine.start())  # again: nothing happens
    with pytest.raises(EngineError, match="another event loop"):
        asyncio.run(vllm_engine.start())


def test_an_engine_that_was_not_started_says_so(loop: EventLoopThread) -> None:
    engine = VLLMEngine("any")
    with pytest.raises(EngineError, match="task q0, agent assistant: the vLLM engine was not started"):
        loop.run(engine.generate(request_of((1,), Sampling(0.0, 1))))
    loop.run(engine.close())


def test_the_environment_is_given_back_and_the_users_values_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAS_TEST_SET", "mine")
    monkeypatch.delenv("MAS_TEST_UNSET", raising=False)
    with _environment({"MAS_TEST_SET": "theirs", "MAS_TEST_UNSET": "theirs"}):
        assert (os.environ["MAS_TEST_SET"], os.environ["MAS_TEST_UNSET"]) == ("mine", "theirs")
    assert os.environ["MAS_TEST_SET"] == "mine"
    assert "MAS_TEST_UNSET" not in os.environ


def test_on_a_gpu_only_what_vllm_has_a_setting_for_and_nothing_of_the_cpus(
    monkeypatch: pytest.MonkeyPatch, tiny_model_dir: Path
) -> None:
    from vllm import AsyncEngineArgs
    from vllm.platforms import current_platform

    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    monkeypatch.setattr(type(current_platform), "is_cpu", lambda self: False)
    engine = VLLMEngine(str(tiny_model_dir), gpu_memory_utilization=0.4, tensor_parallel_size=2)
    arguments = engine.arguments()
    assert arguments.keys() <= {field.name for field in fields(AsyncEngineArgs)}
    assert (arguments["gpu_memory_utilization"], arguments["tensor_parallel_size"]) == (0.4, 2)
    assert not {"enforce_eager", "enable_chunked_prefill", "max_num_batched_tokens", "block_size"} & arguments.keys()
    with engine.environment():
        assert "VLLM_CPU_KVCACHE_SPACE" not in os.environ


# ------------------------------------------------------------------ an engine of its own, to kill and to close


def failures(outcome: Sequence[Completion | BaseException]) -> list[str]:
    assert all(isinstance(failure, EngineError) for failure in outcome), outcome
    return [str(failure) for failure in outcome]


@pytest.mark.slow
@pytest.mark.vllm
def test_dying_and_closing_reach_every_caller_and_it_can_be_started_again(
    loop: EventLoopThread, tiny_model_dir: Path
) -> None:
    engine = VLLMEngine(str(tiny_model_dir), dtype="float32", max_model_len=512, max_num_seqs=4, kv_cache_gib=1)
    endless = [replace(request_of((5, 6), Sampling(1.0, 500, task), task)) for task in range(12)]

    async def during(calls_end: asyncio.Event) -> list[Completion | BaseException]:
        calls = [asyncio.ensure_future(engine.generate(request)) for request in endless]
        await asyncio.wait(calls, timeout=0.3)  # some run, more than max_num_seqs wait
        assert not any(call.done() for call in calls)
        calls_end.set()
        return await asyncio.gather(*calls, return_exceptions=True)

    async def kill_in_mid_flight(pid: int) -> list[Completion | BaseException]:
        under_way = asyncio.Event()
        outcome = asyncio.ensure_future(during(under_way))
        await under_way.wait()
        os.kill(pid, signal.SIGKILL)
        return await asyncio.wait_for(outcome, 20)

    async def close_in_mid_flight() -> list[Completion | BaseException]:
        under_way = asyncio.Event()
        outcome = asyncio.ensure_future(during(under_way))
        await under_way.wait()
        await engine.close()
        return await asyncio.wait_for(outcome, 20)

    others = {child.pid for child in multiprocessing.active_children()}
    loop.run(engine.start())
    (pid,) = {child.pid for child in multiprocessing.active_children()} - others
    assert pid is not None
    started = time.monotonic()
    messages = failures(loop.run(kill_in_mid_flight(pid)))
    assert time.monotonic() - started < 20
    for task, message in enumerate(messages):
        assert message.startswith(f"task q{task}, agent assistant: the vLLM engine died while answering")
    with pytest.raises(EngineError, match="task q5, agent assistant: the vLLM engine died"):
        loop.run(engine.generate(endless[5]))

    loop.run(engine.close())
    loop.run(engine.start())
    assert answers(loop, engine, [request_of((5, 6), Sampling(0.0, 2))])[0].token_ids
    for task, message in enumerate(failures(loop.run(close_in_mid_flight()))):
        assert message == f"task q{task}, agent assistant: the vLLM engine was closed before it answered"
    loop.run(engine.close())
