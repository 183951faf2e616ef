"""Sums over a run's calls, against what the engine counted itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from data.trajectory import Trajectory
from rollout.counters import Counters
from rollout.engine import Completion, Request
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS
from rollout.replay_engine import ReplayEngine
from rollout.runner import EpisodeRunner, RolloutSettings
from rollout.trace import TracedCall, TracedEpisode, TraceWriter
from rollout.trace_reader import read_trace
from rollout.transformers_engine import TransformersEngine
from rollout.vllm_engine import VLLMEngine
from tests.rollout.parts import PHASE, TASKS, Facts, FixedMemory, difference, make_runner, sums
from tests.rollout.watched_engine import WatchedEngine, echo

if TYPE_CHECKING:
    from prometheus_client import Counter


@pytest.fixture
def make(loop: EventLoopThread) -> Callable[..., EpisodeRunner]:
    return functools.partial(make_runner, loop)


def traced(records: Sequence[TracedCall | TracedEpisode], kind: type) -> list[int]:
    names = ("prompt_tokens", "completion_tokens", "latent_tokens", "retries")
    return [sum(getattr(record, name) for record in records if isinstance(record, kind)) for name in names]


@pytest.mark.parametrize("mas", [AutoGen(), MacNet()], ids=lambda mas: mas.name)
def test_sums_equal_the_replay_engines_own_counters(
    make: Callable[..., EpisodeRunner], mas: MAS, tmp_path: Path
) -> None:
    engine, writer = ReplayEngine(script=echo), TraceWriter(tmp_path / "trace.jsonl")
    made = make(engine, mas, trace=writer).run(TASKS, 3, PHASE, FixedMemory("Lima", torch.ones(5, 4)))
    assert sums(made) == engine.counters
    assert engine.counters.requests == 12 * len(mas.agents("qa"))
    records = list(read_trace(writer.path))
    assert traced(records, TracedCall) == traced(records, TracedEpisode)
    prompt, completion, latent, _ = traced(records, TracedCall)
    assert (prompt + latent, completion) == (engine.counters.prompt_tokens, engine.counters.completion_tokens)
    assert latent == 5 * engine.counters.requests


def test_sums_equal_the_transformers_engines_own_counters(
    make: Callable[..., EpisodeRunner], tiny_model_dir: Path, loop: EventLoopThread
) -> None:
    engine = TransformersEngine(str(tiny_model_dir), max_model_len=512, max_batch=3)
    made = make(engine, MacNet(), max_tokens=5).run(TASKS, 1, PHASE, None)
    loop.run(engine.close())
    assert sums(made) == engine.counters
    assert engine.counters.requests == 20
    assert 20 <= engine.counters.completion_tokens <= 100


def counted(counters: Sequence[Counter]) -> int:
    samples = [sample for counter in counters for metric in counter.collect() for sample in metric.samples]
    return int(sum(sample.value for sample in samples if sample.name.endswith("_total")))


def counted_by_vllm(engine: VLLMEngine) -> Counters:
    """From the engine's own logger: the registry forgets an engine's counters when the process starts another one."""
    from vllm.v1.metrics.loggers import PrometheusStatLogger

    assert engine._llm is not None
    assert engine._llm.logger_manager is not None
    (own,) = [each for each in engine._llm.logger_manager.stat_loggers if isinstance(each, PrometheusStatLogger)]
    return Counters(
        requests=counted([of_reason[0] for of_reason in own.counter_request_success.values()]),
        prompt_tokens=counted([own.counter_prompt_tokens[0]]),
        completion_tokens=counted([own.counter_generation_tokens[0]]),
        cached_tokens=counted([own.counter_prompt_tokens_cached[0]]),
    )


def test_sums_equal_vllms_own_counters(
    vllm_engine: VLLMEngine, loop: EventLoopThread, smollm_path: str, tmp_path: Path
) -> None:
    """Token prompts of AutoGen, prompts with latents of MacNet, both with answers that end and that are cut."""
    tokenizer = AutoTokenizer.from_pretrained(smollm_path)
    embed = AutoModelForCausalLM.from_pretrained(smollm_path, dtype=torch.float32).get_input_embeddings()
    writer, settings = TraceWriter(tmp_path / "trace.jsonl"), RolloutSettings(max_tokens=12)
    loop.run(vllm_engine.start())
    before = counted_by_vllm(vllm_engine)
    made: list[Trajectory] = []
    for mas, memory in ((AutoGen(), FixedMemory("Lima")), (MacNet(), FixedMemory(latents=torch.full((5, 576), 0.1)))):
        runner = EpisodeRunner(vllm_engine, mas, tokenizer, embed, Facts(), settings, writer, loop)
        made += runner.run(TASKS[:2], 1, PHASE, memory)
    assert not [trajectory.failure for trajectory in made if trajectory.failure]
    assert sums(made) == difference(counted_by_vllm(vllm_engine), before)
    assert sums(made).requests == 2 * 2 + 2 * 5
    assert sums(made).cached_tokens > 0
    records = list(read_trace(writer.path))
    prompt, completion, latent, _ = traced(records, TracedEpisode)
    assert (prompt + latent, completion, latent) == (sums(made).prompt_tokens, sums(made).completion_tokens, 2 * 5 * 5)


def test_attempts_that_an_engine_made_again_are_paid_for(make: Callable[..., EpisodeRunner]) -> None:
    """An engine that read the prompt three times and sampled 40 tokens until the answer was of the right form."""

    class Retries(WatchedEngine):
        async def generate(self, request: Request) -> Completion:
            return Completion("x", (7, 2), (-1.0, -1.0), "stop", 3, 0.4, 0.2, 0.1, 2, 3 * request.length, 40)

    (made,) = make(Retries()).run(TASKS[:1], 1, PHASE, FixedMemory(latents=torch.ones(2, 4)))
    step = made.steps[0]
    positions = len(step.prefix_ids) + len(step.suffix_ids) + 2
    assert (step.cost.prompt_tokens, step.cost.latent_tokens) == (3 * positions - 2, 2)
    assert (step.cost.completion_tokens, step.cost.cached_tokens, step.cost.retries) == (40, 3, 2)
    assert (step.cost.wall_s, step.cost.first_token_s, step.cost.queue_s) == (0.4, 0.2, 0.1)


def test_an_engine_of_text_gets_messages_with_the_memory_in_its_slot(make: Callable[..., EpisodeRunner]) -> None:
    class OfText(WatchedEngine):
        async def generate(self, request: Request) -> Completion:
            self.asked.append(request)
            return Completion("Lima", (), (), "stop", None, 0.4, None, None, 0, 17, 3)

    engine, tokens = OfText(text_only=True), WatchedEngine()
    (made,) = make(engine).run(TASKS[:1], 1, PHASE, FixedMemory("Lima is a capital."))
    (other,) = make(tokens).run(TASKS[:1], 1, PHASE, FixedMemory("Lima is a capital."))
    request, step = engine.asked[0], made.steps[0]
    assert (request.prompt_ids, request.prompt_embeds) == (None, None)
    assert request.messages is not None
    assert [message.role for message in request.messages] == ["system", "user"]
    assert "Lima is a capital." in request.messages[1].content
    assert step.prompt == other.steps[0].prompt
    assert (step.prefix_ids, step.suffix_ids, step.output_ids, step.logprobs) == ((), (), (), ())
    assert (step.cost.prompt_tokens, step.cost.completion_tokens) == (17, 3)


def test_latents_cannot_be_sent_to_an_engine_of_text(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine(text_only=True)
    (made,) = make(engine).run(TASKS[:1], 1, PHASE, FixedMemory(latents=torch.ones(2, 4)))
    assert made.failure == (
        "engine: task t0, agent assistant: the engine takes text only, it cannot be sent the memory's latents"
    )
    assert engine.asked == []
