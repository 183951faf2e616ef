from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonargparse import ArgumentParser

from rollout.engine import CallKey, Completion, Engine, EngineError, Request, Sampling
from rollout.event_loop import EventLoopThread
from rollout.mas.macnet import MacNet
from rollout.replay_engine import END_OF_TURN, ReplayEngine
from rollout.runner import EpisodeRunner
from rollout.trace import TraceWriter
from rollout.transformers_engine import TransformersEngine
from tests.rollout.parts import PHASE, TASKS, TOKENIZER, FixedMemory, make_runner
from tests.rollout.watched_engine import WatchedEngine

KEY = CallKey("lmpo", 3, "t0", 0, 1, "assistant")


@pytest.fixture
def make(loop: EventLoopThread) -> Callable[..., EpisodeRunner]:
    return functools.partial(make_runner, loop)


def ask(engine: Engine, loop: EventLoopThread, key: CallKey | None = KEY, max_tokens: int = 99) -> Completion:
    request = Request("task t0, agent assistant", Sampling(max_tokens=max_tokens), prompt_ids=(1, 2, 3), key=key)
    return loop.run(engine.generate(request))


# ------------------------------------------------------------------ scripts


def test_a_mapping_answers_by_task_agent_and_call(loop: EventLoopThread) -> None:
    engine = ReplayEngine(script={("t0", "assistant", 1): "Lima", ("t0", "critic", 1): "no"})
    assert ask(engine, loop).text == "Lima"
    assert ask(engine, loop, replace(KEY, agent="critic")).text == "no"


@pytest.mark.parametrize("key", [replace(KEY, call=2), replace(KEY, task="t9"), replace(KEY, agent="critic")])
def test_a_place_that_the_script_lacks_is_an_error_that_names_it(loop: EventLoopThread, key: CallKey) -> None:
    engine = ReplayEngine(script={("t0", "assistant", 1): "Lima"})
    with pytest.raises(EngineError) as caught:
        ask(engine, loop, key)
    assert str((key.task, key.agent, key.call)) in str(caught.value)


@given(text=st.text(max_size=40), with_tokenizer=st.booleans())
@settings(deadline=None)
def test_ids_are_those_of_the_text_and_certain(loop: EventLoopThread, text: str, with_tokenizer: bool) -> None:
    tokenizer = TOKENIZER if with_tokenizer else None
    made = ask(ReplayEngine(script=lambda request: text, tokenizer=tokenizer), loop, max_tokens=999)
    assert made.text == text
    assert made.finish_reason == "stop"
    assert made.logprobs == (0.0,) * len(made.token_ids)
    if tokenizer is None:
        assert made.token_ids == (*text.encode(), END_OF_TURN)
    else:
        assert made.token_ids == (*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id)


def test_the_response_limit_cuts_text_and_ids_alike(loop: EventLoopThread) -> None:
    made = ask(ReplayEngine(script=lambda request: "Lima"), loop, max_tokens=2)
    assert (made.text, made.token_ids, made.finish_reason) == ("Li", (*b"Li",), "length")


# ------------------------------------------------------------------ traces


@pytest.fixture
def recorded(make: Callable[..., EpisodeRunner], tmp_path: Path) -> Path:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    make(WatchedEngine(delays=9), MacNet(), trace=writer).run(TASKS, 2, PHASE, None)
    return writer.path


def test_a_trace_is_played_back_exactly(
    make: Callable[..., EpisodeRunner], tiny_model_dir: Path, loop: EventLoopThread, tmp_path: Path
) -> None:
    """Sampled tokens, log-probabilities and times of a real engine; failures and latents too."""
    engine, writer = TransformersEngine(str(tiny_model_dir), max_model_len=512), TraceWriter(tmp_path / "trace.jsonl")
    limits = {"max_tokens": 6, "max_concurrent": 3}
    made = make(engine, trace=writer, **limits).run(TASKS, 2, PHASE, FixedMemory("Lima is a capital."))
    loop.run(engine.close())
    again = TraceWriter(tmp_path / "again.jsonl")
    replay = ReplayEngine(trace=writer.path)
    assert make(replay, trace=again, **limits).run(TASKS, 2, PHASE, FixedMemory("Lima is a capital.")) == made
    assert [_timeless(line) for line in again.path.open()] == [_timeless(line) for line in writer.path.open()]


def test_latents_are_counted_on_playback(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    writer, memory = TraceWriter(tmp_path / "trace.jsonl"), FixedMemory(latents=torch.ones(3, 4))
    made = make(WatchedEngine(), trace=writer).run(TASKS, 1, PHASE, memory)
    assert make(ReplayEngine(trace=writer.path)).run(TASKS, 1, PHASE, memory) == made
    assert {step.cost.latent_tokens for t in made for step in t.steps} == {3}


def test_a_call_that_failed_fails_again(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    engine = WatchedEngine(fails=lambda request: request.label == "task t1, agent user_proxy")
    made = make(engine, trace=writer).run(TASKS, 1, PHASE, None)
    again = make(ReplayEngine(trace=writer.path)).run(TASKS, 1, PHASE, None)
    assert [t.steps for t in again] == [t.steps for t in made]
    assert again[1].failure == (
        f"engine: task t1, agent user_proxy: {writer.path} has no line for "
        "phase lmpo, step 3, task t1, member 0, call 1"
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"phase": "eval/none"}, "phase eval/none, step 3, task t0, member 0, call 1"),
        ({"step": 4}, "step 4"),
        ({"member": 7}, "member 7"),
        ({"call": 99}, "call 99"),
        ({"task": "t9"}, "task t9"),
    ],
)
def test_a_missing_line_is_an_error_that_names_it(
    recorded: Path, loop: EventLoopThread, change: dict[str, object], named: str
) -> None:
    with pytest.raises(EngineError, match=f"has no line for .*{named}"):
        ask(ReplayEngine(trace=recorded), loop, replace(KEY, agent="actor_1", **change))  # type: ignore[arg-type]


def test_another_mas_than_the_recorded_one_is_refused(recorded: Path, loop: EventLoopThread) -> None:
    with pytest.raises(EngineError, match="'actor_1' speaks at phase lmpo, step 3, task t0, member 0, call 1"):
        ask(ReplayEngine(trace=recorded), loop)


def test_the_later_line_of_a_call_counts(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    """A run that was interrupted and resumed has written some calls twice."""
    writer = TraceWriter(tmp_path / "trace.jsonl")
    for answer in ("lost", "kept"):
        make(WatchedEngine(ReplayEngine(script=lambda _, a=answer: a)), trace=writer).run(TASKS[:1], 1, PHASE, None)
    (made,) = make(ReplayEngine(trace=writer.path)).run(TASKS[:1], 1, PHASE, None)
    assert made.answer == "kept"


def _timeless(line: str) -> dict[str, object]:
    record = json.loads(line)
    return {key: value for key, value in record.items() if (record["kind"], key) != ("episode", "wall_s")}


# ------------------------------------------------------------------ what is refused


def test_exactly_one_source_of_answers(tmp_path: Path) -> None:
    for given_ in ({}, {"trace": tmp_path, "script": {}}):
        with pytest.raises(ValueError, match="exactly one of trace and script"):
            ReplayEngine(**given_)  # type: ignore[arg-type]


def test_a_request_that_belongs_to_no_episode_is_refused(loop: EventLoopThread) -> None:
    with pytest.raises(EngineError, match="does not say which call it is"):
        ask(ReplayEngine(script={}), loop, key=None)


def test_it_is_chosen_in_a_config_by_its_class_path(recorded: Path) -> None:
    parser = ArgumentParser()
    parser.add_argument("--engine", type=Engine)
    arguments = ["--engine=rollout.replay_engine.ReplayEngine", f"--engine.trace={recorded}"]
    engine = parser.instantiate(parser.parse_args(arguments)).engine
    assert isinstance(engine, ReplayEngine)
