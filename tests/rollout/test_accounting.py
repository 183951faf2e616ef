"""Sums over a run's calls, against what the engine counted itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from data.trajectory import Trajectory
from rollout.counters import Counters
from rollout.engine import Completion, Request
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS
from rollout.replay_engine import ReplayEngine
from rollout.runner import EpisodeRunner
from rollout.trace import TracedCall, TracedEpisode, TraceWriter
from rollout.trace_reader import read_trace
from rollout.transformers_engine import TransformersEngine
from tests.rollout.parts import PHASE, TASKS, FixedMemory, make_runner
from tests.rollout.watched_engine import WatchedEngine, echo


@pytest.fixture
def make(loop: EventLoopThread) -> Callable[..., EpisodeRunner]:
    return functools.partial(make_runner, loop)


def sums(trajectories: Sequence[Trajectory]) -> Counters:
    costs = [step.cost for trajectory in trajectories for step in trajectory.steps]
    return Counters(
        requests=len(costs),
        prompt_tokens=sum(cost.prompt_tokens + cost.latent_tokens for cost in costs),
        completion_tokens=sum(cost.completion_tokens for cost in costs),
        cached_tokens=sum(cost.cached_tokens or 0 for cost in costs),
        retries=sum(cost.retries for cost in costs),
    )


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
