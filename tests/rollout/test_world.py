from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from data.environment import Environment, Observation, World
from data.task import Score, Task
from memory.memory import Agent, Recall
from rollout.engine import Request
from rollout.event_loop import EventLoopThread
from rollout.mas.mas import Act, Message
from rollout.reflection import agent_trace
from rollout.replay_engine import ReplayEngine
from rollout.runner import EpisodeRunner, RunInterrupted
from rollout.seeds import call_seed
from rollout.structure import Choices, Structure, answer_structure
from rollout.trace import TraceWriter
from rollout.trace_reader import read_trace
from rollout.world import Turn, first_line, world_question
from tests.rollout.parts import PHASE, FixedMemory, make_runner
from tests.rollout.watched_engine import WatchedEngine

GOALS = tuple(Task(f"w{n}", f"Count to {n + 1}.", (), "counter") for n in range(3))


@dataclass
class Counter:
    """``up`` counts; done at the task's number. Whatever else is said is told so, and costs a step."""

    goal: int
    lists: bool
    breaks: str | None
    at: int = 0
    actions: list[str] = field(default_factory=list)
    closed: int = 0
    threads: set[str] = field(default_factory=set)

    def reset(self) -> Observation:
        self.at = 0
        return self._now("You stand at 0.")

    def step(self, action: str) -> Observation:
        self.threads.add(threading.current_thread().name)
        if action == self.breaks:
            raise OSError("the counter jams")
        self.actions.append(action)
        self.at += action == "up"
        return self._now(f"You stand at {self.at}." if action == "up" else f"Nothing known about {action!r}.")

    def score(self) -> Score:
        return {"success": float(self.at >= self.goal), "progress": self.at / self.goal}

    def close(self) -> None:
        self.closed += 1

    def _now(self, text: str) -> Observation:
        return Observation(text, ("up", "wait") if self.lists else (), self.at >= self.goal)


class Counters:
    """The world of counters; ``made`` keeps every environment."""

    name = "counter"
    metrics = ("success", "progress")

    def __init__(self, max_steps: int = 5, lists: bool = False, breaks: str | None = None) -> None:
        self.max_steps = max_steps
        self.lists = lists
        self.breaks = breaks
        self.made: list[Counter] = []

    def environment(self, task: Task) -> Environment:
        self.made.append(Counter(int(task.id[1:]) + 1, self.lists, self.breaks))
        return self.made[-1]


class Solo:
    """One agent, one call; keeps what it was asked."""

    name = "solo"

    def __init__(self) -> None:
        self.asked: list[Task] = []
        self.structures: list[Structure | None] = []

    def agents(self, domain: str) -> tuple[Agent, ...]:
        return (Agent("player", "player", "You play."),)

    async def run(self, task: Task, act: Act) -> str:
        self.asked.append(task)
        self.structures.append(answer_structure(task))
        return await act(self.agents(task.domain)[0], [Message("user", task.question)], answer_structure(task))


def plays(*actions: str) -> WatchedEngine:
    """The actions in turn by the number of the call, the last one for ever."""

    def answer(request: Request) -> str:
        assert request.key is not None
        return actions[min(request.key.call, len(actions) - 1)]

    return WatchedEngine(ReplayEngine(script=answer))


@pytest.fixture
def make(loop: EventLoopThread) -> Callable[..., EpisodeRunner]:
    return functools.partial(make_runner, loop, max_tokens=64)


# ------------------------------------------------------------------ the loop


def test_answers_are_actions_until_it_is_done(make: Callable[..., EpisodeRunner]) -> None:
    world, mas = Counters(), Solo()
    (made,) = make(plays("jump", "  up \nbecause", "up", "up"), mas, world).run(GOALS[1:2], 1, PHASE, None)
    assert world.made[0].actions == ["jump", "up", "up"]
    assert (made.answer, made.failure) == ("jump\nup\nup", None)
    assert made.score == {"success": 1.0, "progress": 1.0}
    assert made.task == GOALS[1]  # as it was given, not as it was asked at some step
    assert world.made[0].closed == 1


def test_calls_are_numbered_through_the_episode(make: Callable[..., EpisodeRunner]) -> None:
    engine = plays("up")
    (made,) = make(engine, Solo(), Counters()).run(GOALS[2:], 1, PHASE, None)
    assert [step.call for step in made.steps] == [0, 1, 2]
    assert [request.sampling.seed for request in engine.asked] == [call_seed(11, 3, "w2", 0, n) for n in range(3)]


def test_running_out_of_steps_is_recorded_and_keeps_the_worlds_scores(make: Callable[..., EpisodeRunner]) -> None:
    world = Counters(max_steps=2)
    (made,) = make(plays("up"), Solo(), world).run(GOALS[2:], 1, PHASE, None)
    assert made.failure == "step limit: not done after 2 actions"
    assert made.score == {"success": 0.0, "progress": 2 / 3}
    assert (made.answer, world.made[0].closed) == ("up\nup", 1)


def test_a_world_that_breaks_costs_its_episode_only(make: Callable[..., EpisodeRunner]) -> None:
    world = Counters(breaks="kick")
    engine = WatchedEngine(ReplayEngine(script=lambda request: "kick" if "w1" in request.label else "up"))
    made = make(engine, Solo(), world).run(GOALS, 1, PHASE, None)
    assert [t.failure is None for t in made] == [True, False, True]
    assert str(made[1].failure).startswith("environment: OSError: the counter jams (test_world.py:")
    assert (made[1].score, len(made[1].steps)) == ({"success": 0.0, "progress": 0.0}, 1)
    assert [environment.closed for environment in world.made] == [1, 1, 1]


def test_a_world_that_cannot_be_made_costs_its_episode(make: Callable[..., EpisodeRunner]) -> None:
    class NoGame(Counters):
        def environment(self, task: Task) -> Environment:
            raise FileNotFoundError("no such game")

    (made,) = make(plays("up"), Solo(), NoGame()).run(GOALS[:1], 1, PHASE, None)
    assert str(made.failure).startswith("environment: FileNotFoundError: no such game")


def test_an_engine_that_fails_within_a_step_is_the_engines_failure(make: Callable[..., EpisodeRunner]) -> None:
    engine, world = plays("up"), Counters()
    engine.fails = lambda request: request.key is not None and request.key.call == 1
    (made,) = make(engine, Solo(), world).run(GOALS[2:], 1, PHASE, None)
    assert made.failure == "engine: task w2, agent player: the script says so"
    assert (len(made.steps), world.made[0].closed) == (1, 1)


def test_memory_is_asked_about_the_task_as_it_was_given(make: Callable[..., EpisodeRunner]) -> None:
    seen: list[Task] = []

    class Notes(FixedMemory):
        def recall(self, task: Task, agent: Agent, context: str) -> Recall:
            seen.append(task)
            return super().recall(task, agent, context)

    memory = Notes()
    make(plays("up"), Solo(), Counters()).run(GOALS[1:2], 1, PHASE, memory)
    assert seen == [GOALS[1]] * 2
    assert ["You stand at 1." in context for _, _, context in memory.recalled] == [False, True]


# ------------------------------------------------------------------ what agents read


def test_agents_read_goal_start_and_the_last_turns(make: Callable[..., EpisodeRunner]) -> None:
    mas = Solo()
    make(plays("a", "b", "c", "up"), mas, Counters(), history=2).run(GOALS[:1], 1, PHASE, None)
    assert mas.asked[0].question == "Count to 1.\n\nYou stand at 0.\n\nGive the next action only, on one line."
    assert mas.asked[3].question == (
        "Count to 1.\n\nYou stand at 0.\n\n"
        "What was done last, and what came of it:\n"
        "> b\nNothing known about 'b'.\n> c\nNothing known about 'c'.\n\n"
        "Give the next action only, on one line."
    )


def test_possible_actions_are_shown_where_the_world_lists_them() -> None:
    now = Observation("A door.", ("open door", "wait"))
    question = world_question("Leave.", Observation("A room."), [Turn("look", "A door.")], now)
    assert question.endswith("Possible actions:\nopen door\nwait\n\nGive the next action only, on one line.")


@pytest.mark.parametrize("constrained", [False, True])
def test_actions_are_held_to_the_list_only_when_asked(make: Callable[..., EpisodeRunner], constrained: bool) -> None:
    mas = Solo()
    runner = make(plays("up"), mas, Counters(lists=True), constrained_actions=constrained)
    runner.run(GOALS[:1], 1, PHASE, None)
    assert mas.structures == [Choices(("up", "wait")) if constrained else None]


@pytest.mark.parametrize(
    ("answer", "action"), [("up", "up"), ("\n  go north  \nthen east", "go north"), ("", ""), (" \n ", "")]
)
def test_the_action_is_the_first_line_that_says_something(answer: str, action: str) -> None:
    assert first_line(answer) == action


# ------------------------------------------------------------------ threads and order


def test_a_slow_world_does_not_hold_up_the_others(make: Callable[..., EpisodeRunner]) -> None:
    """Every step waits until all three environments step at once: on one thread that would never happen."""
    meeting = threading.Barrier(3, timeout=20)

    class Meets(Counter):
        def step(self, action: str) -> Observation:
            meeting.wait()
            return super().step(action)

    class Meeting(Counters):
        def environment(self, task: Task) -> Environment:
            self.made.append(Meets(1, False, None))
            return self.made[-1]

    world = Meeting()
    made = make(plays("up"), Solo(), world).run(GOALS, 1, PHASE, None)
    assert [t.failure for t in made] == [None] * 3
    assert all(name.startswith("rollout-blocking") for each in world.made for name in each.threads)


def test_order_of_completion_changes_nothing(make: Callable[..., EpisodeRunner]) -> None:
    def run(delays: int, seed: int) -> Sequence[object]:
        engine = plays("wait", "up", "up", "wait", "up")
        engine.delays, engine.seed = delays, seed
        return make(engine, Solo(), Counters()).run(GOALS, 2, PHASE, None)

    assert run(1, 0) == run(30, 1) == run(30, 2)


def test_a_recorded_world_is_played_back_exactly(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    recorded = make(plays("jump", "up"), Solo(), Counters(), writer).run(GOALS, 2, PHASE, None)
    assert make(ReplayEngine(trace=writer.path), Solo(), Counters()).run(GOALS, 2, PHASE, None) == recorded
    assert sum(1 for _ in read_trace(writer.path)) == 2 * (2 + 3 + 4) + 6


def test_an_interrupted_world_is_closed_after_its_step(
    make: Callable[..., EpisodeRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, order = threading.Event(), []

    class Slow(Counter):
        def step(self, action: str) -> Observation:
            begun.set()
            time.sleep(0.1)
            order.append("step")
            return super().step(action)

        def close(self) -> None:
            order.append("close")

    class SlowWorld(Counters):
        def environment(self, task: Task) -> Environment:
            return Slow(9, False, None)

    def interrupted(*args: object) -> None:
        assert begun.wait(10)
        raise KeyboardInterrupt

    submit = asyncio.run_coroutine_threadsafe

    def submit_and_interrupt(coroutine: Any, on: asyncio.AbstractEventLoop) -> Any:
        future: Any = submit(coroutine, on)
        monkeypatch.setattr(future, "result", interrupted)
        return future

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", submit_and_interrupt)
    with pytest.raises(RunInterrupted):
        make(plays("up"), Solo(), SlowWorld()).run(GOALS[:1], 1, PHASE, None)
    assert order == ["step", "close"]


# ------------------------------------------------------------------ what is refused


def test_a_world_is_told_from_a_benchmark_by_its_environments() -> None:
    assert isinstance(Counters(), World)


def test_a_world_without_steps_is_refused(make: Callable[..., EpisodeRunner]) -> None:
    with pytest.raises(ValueError, match="the world 'counter' has max_steps 0; give at least 1"):
        make(plays("up"), Solo(), Counters(max_steps=0))


def test_a_goal_that_is_reached_already_takes_no_call(make: Callable[..., EpisodeRunner]) -> None:
    class Done(Counter):
        def reset(self) -> Observation:
            return Observation("Done.", done=True)

    class DoneWorld(Counters):
        def environment(self, task: Task) -> Environment:
            return Done(1, False, None, at=1)

    (made,) = make(plays("up"), Solo(), DoneWorld()).run(GOALS[:1], 1, PHASE, None)
    assert (made.steps, made.answer, made.score["success"]) == ((), "", 1.0)


# ------------------------------------------------------------------ what an agent has to reflect on


def test_a_trace_says_what_each_action_led_to_once_and_no_lists_of_actions(make: Callable[..., EpisodeRunner]) -> None:
    mas = Solo()
    (made,) = make(plays("wait", "up", "wait", "up"), mas, Counters(lists=True)).run(GOALS[1:2], 1, PHASE, None)
    assert agent_trace(made, mas.agents("")[0]).splitlines() == [
        "you read: You stand at 0.",
        "Give the next action only, on one line.",
        "you said: wait",
        "you read: What was done last, and what came of it:",
        "> wait",
        "Nothing known about 'wait'.",
        "you said: up",
        "you read: > up",
        "You stand at 1.",
        "you said: wait",
        "you read: > wait",
        "Nothing known about 'wait'.",
        "you said: up",
    ]


def test_a_trace_goes_on_where_old_turns_leave_the_prompt(make: Callable[..., EpisodeRunner]) -> None:
    mas = Solo()
    (made,) = make(plays("wait"), mas, Counters(max_steps=5), history=2).run(GOALS[:1], 1, PHASE, None)
    trace = agent_trace(made, mas.agents("")[0])
    assert trace.count("Nothing known about 'wait'.") == 2  # of equal turns no more than the prompts can tell
    assert trace.count("you said: wait") == 5
