"""Episodes that fail: each by itself, with its reason, its steps so far and zero scores."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.task import Task
from data.trajectory import Trajectory
from memory.memory import Agent
from rollout.engine import EngineDiedError, EngineError, Request
from rollout.event_loop import EventLoopThread
from rollout.failure import EpisodeError, blame, broke_off, check_any_finished
from rollout.mas.autogen import AutoGen
from rollout.mas.mas import Act, Message
from rollout.runner import EpisodeRunner
from rollout.trace import TraceWriter
from rollout.trace_reader import read_trace
from tests.memory.parts import a_trajectory
from tests.rollout.parts import PHASE, TASKS, Facts, FixedMemory, make_runner
from tests.rollout.watched_engine import WatchedEngine, says

ZERO = {"exact_match": 0.0, "half": 0.0}


@pytest.fixture
def make(loop: EventLoopThread) -> Callable[..., EpisodeRunner]:
    return functools.partial(make_runner, loop)


class Asks:
    """A MAS of one agent whose ``then`` says what happens after its answer."""

    name = "asks"

    def __init__(self, then: Callable[[Task, str], str]) -> None:
        self.then = then

    def agents(self, domain: str) -> tuple[Agent, ...]:
        return (Agent("solo", "solo", "You answer."),)

    async def run(self, task: Task, act: Act) -> str:
        return self.then(task, await act(self.agents(task.domain)[0], [Message("user", task.question)]))


def fails_for_t1(task: Task, answer: str) -> str:
    if task.id == "t1":
        raise KeyError("no such seat")
    return answer


# ------------------------------------------------------------------ each kind


def test_a_request_that_fails_costs_its_episode_only(make: Callable[..., EpisodeRunner]) -> None:
    fails = "task t1, agent user_proxy"
    engine = WatchedEngine(delays=9, fails=lambda request: request.label == fails)
    made = make(engine).run(TASKS, 1, PHASE, None)
    assert [t.failure for t in made] == [None, f"engine: {fails}: the script says so", None, None]
    assert [len(t.steps) for t in made] == [2, 1, 2, 2]
    assert (made[1].answer, made[1].score) == ("", ZERO)
    assert made[0].score == {"exact_match": 0.0, "half": 0.5}


def test_a_mas_that_raises_costs_its_episode_and_is_told_where(make: Callable[..., EpisodeRunner]) -> None:
    made = make(WatchedEngine(), Asks(fails_for_t1)).run(TASKS, 2, PHASE, None)
    assert [t.failure is None for t in made] == [True, True, False, False, *[True] * 4]
    assert str(made[2].failure).startswith("agents: KeyError: 'no such seat' (test_failure.py:")
    assert [step.agent for step in made[2].steps] == ["solo"]
    assert made[2].score == ZERO


def test_a_rule_that_raises_costs_its_episode(make: Callable[..., EpisodeRunner]) -> None:
    made = make(says("boom"), benchmark=Facts(raises="boom")).run(TASKS[:1], 1, PHASE, None)
    assert str(made[0].failure).startswith("scoring: ArithmeticError: no rule for this (parts.py:")
    assert made[0].score == ZERO
    assert len(made[0].steps) == 2


def test_a_memory_that_raises_costs_its_episode(make: Callable[..., EpisodeRunner]) -> None:
    class Forgetful(FixedMemory):
        def recall(self, task: Task, agent: Agent, context: str) -> Any:
            raise LookupError("not prepared")

    (made,) = make(WatchedEngine()).run(TASKS[:1], 1, PHASE, Forgetful())
    assert str(made.failure).startswith("agents: LookupError: not prepared (test_failure.py:")
    assert made.steps == ()


def test_failures_do_not_depend_on_who_comes_back_first(make: Callable[..., EpisodeRunner]) -> None:
    def fails(request: Request) -> bool:
        return request.sampling.seed % 3 == 0

    expected = make(WatchedEngine(fails=fails)).run(TASKS, 3, PHASE, None)
    assert len({t.failure is None for t in expected}) == 2
    for seed in range(4):
        engine = WatchedEngine(delays=30, seed=seed, fails=fails)
        assert make(engine, max_concurrent=1 + 4 * seed).run(TASKS, 3, PHASE, None) == expected


def test_slow_scores_are_taken_on_other_threads(make: Callable[..., EpisodeRunner]) -> None:
    quick, slow = Facts(), Facts(slow_scoring=True)
    for benchmark in (quick, slow):
        made = make(says("answer 1"), benchmark=benchmark).run(TASKS, 1, PHASE, None)
        assert [t.score["exact_match"] for t in made] == [0.0, 1.0, 0.0, 0.0]
    assert quick.threads == {"rollout-loop"}
    assert {name.rpartition("_")[0] for name in slow.threads} == {"rollout-blocking"}


def test_a_failed_episode_stands_in_the_trace_even_without_a_call(
    make: Callable[..., EpisodeRunner], tmp_path: Path
) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    make(WatchedEngine(fails=lambda request: True), trace=writer).run(TASKS[:1], 1, PHASE, None)
    (episode,) = read_trace(writer.path)
    assert vars(episode)["failure"] == "engine: task t0, agent assistant: the script says so"
    assert (vars(episode)["calls"], vars(episode)["score"]) == (0, ZERO)


# ------------------------------------------------------------------ what is whose


def test_a_dead_engine_is_nobodys_failure_even_in_a_group() -> None:
    died = EngineDiedError("the engine died")
    with pytest.raises(EngineDiedError, match="the engine died"), blame("agents"):
        raise died
    with pytest.raises(EngineDiedError, match="the engine died"), blame("agents"):
        raise ExceptionGroup("team", [ValueError("x"), ExceptionGroup("inner", [died])])


def test_the_engine_is_named_for_its_error_within_a_group() -> None:
    with pytest.raises(EpisodeError, match=r"^engine: too long$"), blame("agents"):
        raise ExceptionGroup("team", [ValueError("x"), EngineError("too long")])


def test_an_error_that_is_blamed_twice_keeps_its_first_reason() -> None:
    with pytest.raises(EpisodeError, match=r"^scoring: ValueError: x \("), blame("environment"), blame("scoring"):
        raise ValueError("x")


def test_a_cancelled_episode_is_no_failure_but_a_mas_that_cancels_its_own_call_is(
    make: Callable[..., EpisodeRunner],
) -> None:
    class GivesUp(Asks):
        async def run(self, task: Task, act: Act) -> str:
            call = asyncio.ensure_future(act(self.agents(task.domain)[0], [Message("user", task.question)]))
            call.cancel()
            return await call

    (made,) = make(WatchedEngine(), GivesUp(fails_for_t1)).run(TASKS[:1], 1, PHASE, None)
    assert made.failure == "agents: a call was cancelled and then waited for"

    async def cancelled() -> None:
        with blame("agents"):
            await asyncio.sleep(60)

    async def run() -> None:
        task = asyncio.create_task(cancelled())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_keyboard_interrupts_pass() -> None:
    with pytest.raises(KeyboardInterrupt), blame("environment"):
        raise KeyboardInterrupt


# ------------------------------------------------------------------ what a batch makes of it


def with_failure(failure: str | None, task: str = "t0") -> Trajectory:
    made = a_trajectory("Who?")
    return replace(made, task=replace(made.task, id=task), failure=failure)


@pytest.mark.parametrize(
    ("failure", "broke"), [(None, False), ("engine: x", True), ("step limit: not done after 3 actions", False)]
)
def test_running_out_of_steps_is_not_breaking_off(failure: str | None, broke: bool) -> None:
    assert broke_off(with_failure(failure)) == broke


def test_a_batch_in_which_all_broke_off_is_an_error_with_the_first_reasons() -> None:
    failed = [with_failure(f"engine: reason {n // 2}", f"t{n // 2}") for n in range(10)]
    with pytest.raises(RuntimeError) as caught:
        check_any_finished(failed)
    assert str(caught.value).splitlines() == [
        "all 10 episodes failed; the first reasons:",
        "  task t0: engine: reason 0",
        "  task t1: engine: reason 1",
        "  task t2: engine: reason 2",
    ]


def test_one_that_finished_or_ran_out_of_steps_is_enough() -> None:
    check_any_finished([])
    check_any_finished([with_failure("engine: x"), with_failure(None)])
    check_any_finished([with_failure("engine: x"), with_failure("step limit: not done after 3 actions")])


def test_autogen_still_plays_beside_all_this(make: Callable[..., EpisodeRunner]) -> None:
    (made,) = make(says("answer 0"), AutoGen()).run(TASKS[:1], 1, PHASE, None)
    assert (made.failure, made.score) == (None, {"exact_match": 1.0, "half": 0.5})
    assert made.wall_s > 0
