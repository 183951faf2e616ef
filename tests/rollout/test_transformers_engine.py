from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rollout.engine import Completion, Engine, EngineError, Request, Sampling
from rollout.event_loop import EventLoopThread
from rollout.seeds import retry_seed
from rollout.structure import Choices
from rollout.transformers_engine import TransformersEngine

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PROMPTS = ("Who wrote Emma?", "What is the capital of Peru? Give the answer only.", "Lima", "Who?")


@pytest.fixture(scope="module")
def model(tiny_model_dir: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(tiny_model_dir).eval()


@pytest.fixture(scope="module")
def tokenizer(tiny_model_dir: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(tiny_model_dir)


@pytest.fixture
def engine(tiny_model_dir: Path, loop: EventLoopThread) -> Iterator[TransformersEngine]:
    made = TransformersEngine(str(tiny_model_dir), max_model_len=128, max_batch=8)
    loop.run(made.start())
    yield made
    loop.run(made.close())


def request_of(tokenizer: PreTrainedTokenizerBase, text: str, sampling: Sampling, name: str = "solver") -> Request:
    return Request(f"task {text}, agent {name}", sampling, tuple(tokenizer.encode(text)))


def in_embeds(model: PreTrainedModel, request: Request) -> Request:
    embeds = model.get_input_embeddings()(torch.tensor(request.prompt_ids)).detach()
    return replace(request, prompt_ids=None, prompt_embeds=embeds)


def answers(loop: EventLoopThread, engine: Engine, *requests: Request) -> list[Completion]:
    async def together() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(request) for request in requests))

    return loop.run(together())


def failures(loop: EventLoopThread, engine: Engine, *requests: Request) -> list[BaseException | Completion]:
    async def together() -> list[BaseException | Completion]:
        return await asyncio.gather(*(engine.generate(request) for request in requests), return_exceptions=True)

    return loop.run(together())


@torch.no_grad()
def greedy_by_hand(model: PreTrainedModel, ids: tuple[int, ...], limit: int, stop: int) -> list[int]:
    """One full forward a token: no cache, no padding, no ``generate``."""
    taken: list[int] = []
    while len(taken) < limit and (not taken or taken[-1] != stop):
        taken.append(int(model(torch.tensor([[*ids, *taken]])).logits[0, -1].argmax()))
    return taken


def test_greedy_is_the_argmax_of_every_step(
    engine: TransformersEngine, loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    requests = [request_of(tokenizer, text, Sampling(0.0, 12)) for text in PROMPTS]
    for request, answer in zip(requests, answers(loop, engine, *requests), strict=True):
        assert request.prompt_ids is not None
        assert list(answer.token_ids) == greedy_by_hand(model, request.prompt_ids, 12, tokenizer.eos_token_id)
        assert answer.text == tokenizer.decode(answer.token_ids, skip_special_tokens=True)


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_log_probabilities_are_the_models_at_that_temperature(
    engine: TransformersEngine,
    loop: EventLoopThread,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    temperature: float,
) -> None:
    requests = [request_of(tokenizer, text, Sampling(temperature, 12, seed)) for seed, text in enumerate(PROMPTS)]
    for request, answer in zip(requests, answers(loop, engine, *requests), strict=True):
        prompt = list(request.prompt_ids or ())
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *answer.token_ids]])).logits[0, len(prompt) - 1 : -1]
        expected = torch.log_softmax(logits / (temperature or 1.0), -1)
        taken = expected.gather(-1, torch.tensor(answer.token_ids)[:, None])[:, 0]
        assert torch.allclose(torch.tensor(answer.logprobs), taken, atol=1e-4)


def test_embedding_prompts_answer_as_their_token_prompts_do(
    engine: TransformersEngine, loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    requests = [request_of(tokenizer, text, Sampling(1.0, 12, seed)) for seed, text in enumerate(PROMPTS)]
    by_ids = answers(loop, engine, *requests)
    by_embeds = answers(loop, engine, *(in_embeds(model, request) for request in requests))
    mixed = answers(loop, engine, requests[0], in_embeds(model, requests[1]))
    assert [made.token_ids for made in by_embeds] == [made.token_ids for made in by_ids]
    assert [made.token_ids for made in mixed] == [made.token_ids for made in by_ids[:2]]


def test_a_seed_gives_the_same_sample_in_any_batch(
    engine: TransformersEngine, loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase
) -> None:
    mine = request_of(tokenizer, PROMPTS[0], Sampling(1.0, 12, seed=42))
    others = [request_of(tokenizer, text, Sampling(1.0, 20, seed)) for seed, text in enumerate(PROMPTS * 3)]
    (alone,) = answers(loop, engine, mine)
    for beside in (others[:1], others[:5], others):
        first, *_ = answers(loop, engine, mine, *beside)
        assert first.token_ids == alone.token_ids
        assert first.logprobs == pytest.approx(alone.logprobs, abs=1e-4)
    *_, last = answers(loop, engine, *others, mine)
    assert last.token_ids == alone.token_ids


def test_different_seeds_differ(
    engine: TransformersEngine, loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase
) -> None:
    made = answers(loop, engine, *(request_of(tokenizer, "Who?", Sampling(1.0, 12, seed)) for seed in range(8)))
    assert len({answer.token_ids for answer in made}) == 8


def test_every_row_keeps_its_own_limit(
    engine: TransformersEngine, loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase
) -> None:
    made = answers(loop, engine, *(request_of(tokenizer, "Who?", Sampling(1.0, limit, 5)) for limit in (1, 3, 24)))
    longest = made[-1].token_ids
    assert [answer.token_ids for answer in made] == [longest[:1], longest[:3], longest]
    assert [len(answer.logprobs) for answer in made] == [len(answer.token_ids) for answer in made]
    assert [answer.finish_reason for answer in made[:2]] == ["length", "length"]


def test_the_end_of_turn_token_ends_the_answer_and_belongs_to_it(
    loop: EventLoopThread, tiny_model_dir: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    """A token of the model's own greedy answer is declared a second end-of-turn token, as chat checkpoints do."""
    model = AutoModelForCausalLM.from_pretrained(tiny_model_dir).eval()
    engine = TransformersEngine("shared", max_model_len=128)
    (free,) = run_shared(loop, engine, model, tokenizer, request_of(tokenizer, "Who?", Sampling(0.0, 6)))
    assert free.finish_reason == "length"
    stop = next(token for place, token in enumerate(free.token_ids) if place and token not in free.token_ids[:place])
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, stop]
    (ended,) = run_shared(loop, engine, model, tokenizer, request_of(tokenizer, "Who?", Sampling(0.0, 6)))
    assert ended.finish_reason == "stop"
    assert ended.token_ids == free.token_ids[: free.token_ids.index(stop) + 1]
    assert ended.logprobs == pytest.approx(free.logprobs[: len(ended.token_ids)], abs=1e-5)


def run_shared(
    loop: EventLoopThread,
    engine: TransformersEngine,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    request: Request,
) -> list[Completion]:
    engine.share(model, tokenizer)
    loop.run(engine.start())
    try:
        return answers(loop, engine, request)
    finally:
        loop.run(engine.close())


def test_a_checkpoints_sampling_advice_is_not_taken(
    engine: TransformersEngine, loop: EventLoopThread, tiny_model_dir: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    pushy = AutoModelForCausalLM.from_pretrained(tiny_model_dir).eval()
    pushy.generation_config.update(repetition_penalty=5.0, no_repeat_ngram_size=1, temperature=0.1, top_k=2)
    request = request_of(tokenizer, "Who wrote Emma?", Sampling(1.0, 16, seed=3))
    (made,) = run_shared(loop, TransformersEngine("shared", max_model_len=128), pushy, tokenizer, request)
    (plain,) = answers(loop, engine, request)
    assert (made.token_ids, made.logprobs) == (plain.token_ids, plain.logprobs)


def test_a_shared_model_survives_closing(
    loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    engine = TransformersEngine("no such checkpoint", max_model_len=128)
    request = request_of(tokenizer, "Who?", Sampling(0.0, 4))
    first = run_shared(loop, engine, model, tokenizer, request)
    loop.run(engine.close())
    loop.run(engine.start())
    again = answers(loop, engine, request)
    assert again[0].token_ids == first[0].token_ids
    loop.run(engine.close())


def test_batches_are_bounded_and_sorted_by_length(
    loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    shapes: list[tuple[int, int]] = []

    def note(module: torch.nn.Module, args: object, kwargs: dict[str, torch.Tensor]) -> None:
        if kwargs["inputs_embeds"].shape[1] > 1:
            rows, length, _ = kwargs["inputs_embeds"].shape
            shapes.append((rows, length))

    engine = TransformersEngine("shared", max_model_len=128, max_batch=2)
    engine.share(model, tokenizer)
    loop.run(engine.start())
    hook = model.model.register_forward_pre_hook(note, with_kwargs=True)
    texts = ("Lima " * 9, "Who wrote Emma?", "Lima " * 8, "Who?", "Goethe wrote Faust?")
    requests = [request_of(tokenizer, text, Sampling(0.0, 1)) for text in texts]
    answers(loop, engine, *requests)
    hook.remove()
    loop.run(engine.close())
    lengths = sorted(request.length for request in requests)
    assert shapes == [(2, lengths[1]), (2, lengths[3]), (1, lengths[4])]


def test_an_answer_that_does_not_hold_to_its_structure_is_sampled_again_under_the_next_seed(
    engine: TransformersEngine, loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase
) -> None:
    free = request_of(tokenizer, "Who?", Sampling(1.0, 6, seed=5))
    again = replace(free, sampling=replace(free.sampling, seed=retry_seed(5, 1)))
    first, second = answers(loop, engine, free, again)
    assert first.text.strip() != second.text.strip() != ""
    (held,) = answers(loop, engine, replace(free, structure=Choices((second.text.strip(),))))
    assert (held.text, held.token_ids, held.retries) == (second.text.strip(), second.token_ids, 1)
    assert (held.prompt_tokens, held.completion_tokens) == (2 * free.length, len(first.token_ids + second.token_ids))
    with pytest.raises(EngineError, match=r"agent solver: .* after 3 attempt.* is none of \['no such text'\]"):
        answers(loop, engine, replace(free, structure=Choices(("no such text",))))


def test_times_add_up(engine: TransformersEngine, loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase) -> None:
    for made in answers(loop, engine, *(request_of(tokenizer, "Who?", Sampling(1.0, 8, seed)) for seed in range(12))):
        assert made.queue_s is not None
        assert made.first_token_s is not None
        assert 0 <= made.queue_s <= made.first_token_s <= made.wall_s
        assert made.cached_tokens is None


def test_what_is_wrong_with_a_request_is_said_before_it_runs(
    engine: TransformersEngine, loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase
) -> None:
    good = request_of(tokenizer, "Who?", Sampling(0.0, 4))
    bad = [
        replace(good, prompt_ids=None, prompt_embeds=torch.full((3, 32), torch.nan)),
        replace(good, prompt_ids=None, prompt_embeds=torch.zeros(3, 31)),
        replace(good, sampling=Sampling(0.0, 128)),
        replace(good, prompt_ids=()),
    ]
    *refused, answered = failures(loop, engine, *bad, good)
    for failure, message in zip(refused, ("NaN", r"[3, 31]", "max_model_len of 128", "empty"), strict=True):
        assert isinstance(failure, EngineError)
        assert message in str(failure)
        assert "task Who?, agent solver" in str(failure)
    assert isinstance(answered, Completion)


def test_finite_embeddings_that_overflow_inside_are_an_error_not_an_answer(
    loop: EventLoopThread, tiny_model_dir: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    broken = AutoModelForCausalLM.from_pretrained(tiny_model_dir).eval()
    with torch.no_grad():
        broken.lm_head.weight[0, 0] = torch.inf
    with pytest.raises(EngineError, match=r"agent solver: the model's log-probabilities hold NaN"):
        run_shared(
            loop,
            TransformersEngine("shared", max_model_len=128),
            broken,
            tokenizer,
            request_of(tokenizer, "Who?", Sampling(0.0, 4)),
        )


def test_a_failing_batch_reaches_every_caller_and_the_next_batch_runs(
    engine: TransformersEngine, loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase
) -> None:
    unknown = Request("task t9, agent critic", Sampling(0.0, 4), (10**6,))
    good = request_of(tokenizer, "Who?", Sampling(0.0, 4))
    both = failures(loop, engine, unknown, good)
    assert all(isinstance(failure, EngineError) for failure in both)
    assert str(both[0]).startswith("task t9, agent critic: transformers failed while answering (IndexError")
    assert str(both[1]).startswith("task Who?, agent solver: ")
    assert isinstance(both[0], EngineError)
    assert isinstance(both[0].__cause__, IndexError)
    assert answers(loop, engine, good)[0].token_ids


def test_an_engine_that_was_not_started_says_so(loop: EventLoopThread, tokenizer: PreTrainedTokenizerBase) -> None:
    with pytest.raises(EngineError, match="agent solver: the transformers engine was not started"):
        loop.run(TransformersEngine("any").generate(request_of(tokenizer, "Who?", Sampling())))


def test_a_checkpoint_that_is_not_there_is_an_engine_error(loop: EventLoopThread, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"could not load the model '.*nowhere'"):
        loop.run(TransformersEngine(str(tmp_path / "nowhere")).start())


def slow_forward(model: PreTrainedModel, begun: threading.Event) -> torch.utils.hooks.RemovableHandle:
    def wait(module: torch.nn.Module, args: object) -> None:
        begun.set()
        time.sleep(0.05)

    return model.model.register_forward_pre_hook(wait)


def test_closing_fails_what_runs_and_what_waits_within_a_token(
    loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    begun = threading.Event()
    engine = TransformersEngine("shared", max_model_len=512, max_batch=2)
    engine.share(model, tokenizer)
    requests = [request_of(tokenizer, "Who?", Sampling(1.0, 400, seed), f"a{seed}") for seed in range(5)]

    async def close_in_mid_flight() -> list[BaseException | Completion]:
        await engine.start()
        calls = [asyncio.ensure_future(engine.generate(request)) for request in requests]
        await asyncio.to_thread(begun.wait, 10)
        await engine.close()
        return await asyncio.gather(*calls, return_exceptions=True)

    hook = slow_forward(model, begun)
    started = time.monotonic()
    outcome = loop.run(close_in_mid_flight())
    hook.remove()
    assert time.monotonic() - started < 5  # 400 tokens would take 20 s
    for seed, failure in enumerate(outcome):
        assert isinstance(failure, EngineError)
        assert str(failure) == f"task Who?, agent a{seed}: the transformers engine was closed before it answered"


def test_a_batch_that_nobody_awaits_any_more_stops(
    loop: EventLoopThread, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    begun = threading.Event()
    engine = TransformersEngine("shared", max_model_len=512)
    engine.share(model, tokenizer)

    async def cancel_then_ask_again() -> Completion:
        await engine.start()
        calls = [
            asyncio.ensure_future(engine.generate(request_of(tokenizer, "Who?", Sampling(1.0, 400, seed))))
            for seed in range(2)
        ]
        await asyncio.to_thread(begun.wait, 10)
        for call in calls:
            call.cancel()
        return await engine.generate(request_of(tokenizer, "Lima", Sampling(0.0, 1)))

    hook = slow_forward(model, begun)
    started = time.monotonic()
    assert loop.run(cancel_then_ask_again()).token_ids
    hook.remove()
    assert time.monotonic() - started < 5
    loop.run(engine.close())
