from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data.task import Task
from memory.memory import Agent, Memory
from rollout.engine import CallKey, EngineDiedError, EngineError, Request
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS, Act, Message
from rollout.prompt import load_prompts, render
from rollout.replay_engine import ReplayEngine
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.seeds import call_seed
from rollout.trace import TraceWriter
from rollout.transformers_engine import TransformersEngine
from tests.rollout.parts import PHASE, TASKS, TOKENIZER, Facts, FixedMemory, embed, identity, make_runner
from tests.rollout.watched_engine import WatchedEngine, says


@pytest.fixture
def make(loop: EventLoopThread) -> Callable[..., EpisodeRunner]:
    return functools.partial(make_runner, loop)


# ------------------------------------------------------------------ order and seeds


def test_trajectories_come_task_by_task_and_member_by_member(make: Callable[..., EpisodeRunner]) -> None:
    trajectories = make(WatchedEngine()).run(TASKS, 2, PHASE, None)
    assert [identity(made) for made in trajectories] == [(task.id, member) for task in TASKS for member in range(2)]
    assert {made.mas for made in trajectories} == {"autogen"}


@pytest.mark.parametrize("mas", [AutoGen(), MacNet(), MacNet(agents_total=9, seed=1)], ids=["autogen", "5", "9"])
def test_nothing_depends_on_who_comes_back_first(make: Callable[..., EpisodeRunner], mas: MAS) -> None:
    in_order = make(WatchedEngine(), mas).run(TASKS, 3, PHASE, None)
    for seed in range(5):
        engine = WatchedEngine(delays=40, seed=seed)
        assert make(engine, mas, max_concurrent=1 + 3 * seed).run(TASKS, 3, PHASE, None) == in_order
        assert engine.answered != [request.label for request in engine.asked] or seed == 0


@given(step=st.integers(0, 99), run_seed=st.integers(0, 99), group=st.integers(1, 3))
@settings(deadline=None, max_examples=15)
def test_seeds_say_run_step_task_member_and_call(loop: EventLoopThread, step: int, run_seed: int, group: int) -> None:
    engine, mas = WatchedEngine(delays=10), MacNet()
    make_runner(loop, engine, mas).run(TASKS[:2], group, Phase("lmpo", step, run_seed, 1.0), None)
    agents = [name for wave in (("actor_0", "actor_1"), ("critic_0_2", "critic_1_2"), ("actor_2",)) for name in wave]
    expected = {
        (f"task {task.id}, agent {agent}", call_seed(run_seed, step, task.id, member, call))
        for task in TASKS[:2]
        for member in range(group)
        for call, agent in enumerate(agents)
    }
    assert {(request.label, request.sampling.seed) for request in engine.asked} == expected


def test_steps_stand_in_call_order_with_who_spoke(make: Callable[..., EpisodeRunner]) -> None:
    (made,) = make(WatchedEngine(delays=40), MacNet()).run(TASKS[:1], 1, PHASE, None)
    assert [step.agent for step in made.steps] == ["actor_0", "actor_1", "critic_0_2", "critic_1_2", "actor_2"]
    assert [step.role for step in made.steps] == ["actor", "actor", "critic", "critic", "actor"]
    seeds = [call_seed(11, 3, "t0", 0, call) for call in range(5)]
    assert [step.output for step in made.steps] == [f"answer {seed % 1000}" for seed in seeds]
    assert made.answer == made.steps[-1].output


def test_sampling_is_the_phases_and_the_settings(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine()
    make(engine, max_tokens=5).run(TASKS[:1], 1, replace(PHASE, temperature=0.0), None)
    assert {(r.sampling.temperature, r.sampling.max_tokens) for r in engine.asked} == {(0.0, 5)}


# ------------------------------------------------------------------ what is recorded


def test_a_step_records_what_the_engine_said(make: Callable[..., EpisodeRunner]) -> None:
    (made,) = make(says("Lima")).run(TASKS[:1], 1, PHASE, FixedMemory(latents=torch.ones(2, 4)))
    step = made.steps[0]
    assert (step.output_ids, step.logprobs, step.finish_reason) == ((*b"Lima", 256), (0.0,) * 5, "stop")
    assert step.entry_ids == ("e1", "e2")
    assert [step.call for step in made.steps] == [0, 1]


def test_every_request_says_which_call_it_is(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine()
    make(engine).run(TASKS[:1], 2, PHASE, None)
    assert {request.key for request in engine.asked} == {
        CallKey("lmpo", 3, "t0", member, call, agent)
        for member in range(2)
        for call, agent in enumerate(("assistant", "user_proxy"))
    }


def test_the_answer_is_scored_by_the_benchmarks_rule(make: Callable[..., EpisodeRunner]) -> None:
    made = make(says("answer 1")).run(TASKS[:3], 1, PHASE, None)
    assert [trajectory.score for trajectory in made] == [{"exact_match": x, "half": 0.5} for x in (0.0, 1.0, 0.0)]
    assert [trajectory.failure for trajectory in made] == [None] * 3


def test_every_call_and_episode_leaves_a_line_in_order(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    make(WatchedEngine(delays=20), trace=writer).run(TASKS, 2, PHASE, None)
    lines = [json.loads(line) for line in writer.path.read_text().splitlines()]
    found = [(line["task"], line["member"], line.get("call", "episode")) for line in lines]
    assert found == [(task.id, member, what) for task in TASKS for member in range(2) for what in (0, 1, "episode")]
    assert {(line["phase"], line["step"]) for line in lines} == {("lmpo", 3)}


def test_progress_counts_to_the_end(make: Callable[..., EpisodeRunner]) -> None:
    seen: list[tuple[int, int]] = []
    make(WatchedEngine(delays=20)).run(TASKS, 2, PHASE, None, lambda done, total: seen.append((done, total)))
    assert seen == [(done, 8) for done in range(1, 9)]


def test_no_task_is_no_episode(make: Callable[..., EpisodeRunner]) -> None:
    assert make(WatchedEngine()).run([], 4, PHASE, None) == []


# ------------------------------------------------------------------ memory


def prompt_of(task: Task, memory_text: str = "", injection: Any = "before_generation_prompt") -> Any:
    prompts = load_prompts("qa")
    messages = prompts.role("autogen", "assistant").messages("answer", question=task.question)
    return render(TOKENIZER, messages, memory_text, injection=injection, memory_slot=prompts.memory_slot)


def first_request(engine: WatchedEngine) -> Request:
    return next(request for request in engine.asked if "agent assistant" in request.label)


def test_without_memory_the_prompt_is_sent_as_tokens(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine()
    make(engine).run(TASKS[:1], 1, PHASE, None)
    plain = prompt_of(TASKS[0])
    assert first_request(engine).prompt_ids == plain.prefix_ids + plain.suffix_ids
    assert first_request(engine).prompt_embeds is None


def test_memory_text_goes_into_the_slot_and_stays_tokens(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine()
    (made,) = make(engine).run(TASKS[:1], 1, PHASE, FixedMemory(text="Lima is a capital."))
    expected = prompt_of(TASKS[0], "Lima is a capital.")
    assert first_request(engine).prompt_ids == expected.prefix_ids + expected.suffix_ids
    assert made.steps[0].prompt == expected.text
    assert "Lima is a capital." in made.steps[0].prompt


@pytest.mark.parametrize("injection", ["before_generation_prompt", "after_generation_prompt"])
@pytest.mark.parametrize("text", ["", "Lima is a capital."])
def test_latents_stand_between_prefix_and_suffix(make: Callable[..., EpisodeRunner], injection: str, text: str) -> None:
    engine, latents = WatchedEngine(), torch.full((3, 4), 9.0, requires_grad=True)
    (made,) = make(engine, injection=injection).run(TASKS[:1], 1, PHASE, FixedMemory(text, latents))
    expected = prompt_of(TASKS[0], text, injection)
    words = embed(torch.tensor(expected.prefix_ids + expected.suffix_ids))
    cut = len(expected.prefix_ids)
    request = first_request(engine)
    assert request.prompt_ids is None
    assert request.prompt_embeds is not None
    assert torch.equal(request.prompt_embeds, torch.cat([words[:cut], latents, words[cut:]]))
    assert not request.prompt_embeds.requires_grad
    assert (made.steps[0].prefix_ids, made.steps[0].suffix_ids) == (expected.prefix_ids, expected.suffix_ids)
    assert (expected.suffix_ids == ()) == (injection == "after_generation_prompt")


def test_latents_take_the_dtype_of_the_embeddings(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine()
    make(engine).run(TASKS[:1], 1, PHASE, FixedMemory(latents=torch.ones(1, 4, dtype=torch.float64)))
    embeds = first_request(engine).prompt_embeds
    assert embeds is not None
    assert embeds.dtype == torch.float32


def test_memory_is_prepared_once_on_the_callers_thread_for_every_agent(make: Callable[..., EpisodeRunner]) -> None:
    memory, mas = FixedMemory(), MacNet()
    seam: Memory = memory
    make(WatchedEngine(), mas).run(TASKS[:2], 2, PHASE, seam)
    assert memory.prepared == [(TASKS[:2], mas.agents("qa"), threading.get_ident())]
    assert len(memory.recalled) == 2 * 2 * 5
    assert memory.ended == []  # the caller's part, in task order


def test_a_recall_is_told_who_asks_and_what_it_reads(make: Callable[..., EpisodeRunner]) -> None:
    memory = FixedMemory()
    make(WatchedEngine()).run(TASKS[:1], 1, PHASE, memory)
    (task, agent, context), _ = memory.recalled
    assert (task, agent) == ("t0", "assistant")
    assert "What is fact 0?" in context


# ------------------------------------------------------------------ limits and failures


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_no_more_episodes_than_allowed_are_in_flight(make: Callable[..., EpisodeRunner], limit: int) -> None:
    engine = WatchedEngine(delays=20)
    make(engine, max_concurrent=limit).run(TASKS, 4, PHASE, None)
    assert engine.most_in_flight == limit
    assert len(engine.asked) == 4 * 4 * 2


def test_coroutines_are_made_when_they_can_start(make: Callable[..., EpisodeRunner]) -> None:
    """Ten thousand tasks are not ten thousand coroutines: while an episode runs, no other task of the loop waits."""
    alive: list[int] = []

    class Counting(WatchedEngine):
        async def generate(self, request: Request) -> Any:
            alive.append(len(asyncio.all_tasks()))
            return await super().generate(request)

    tasks = [replace(TASKS[0], id=f"t{n}") for n in range(300)]
    make(Counting(delays=3), max_concurrent=5).run(tasks, 1, PHASE, None)
    assert len(alive) == 600
    assert max(alive) < 50  # two for each of 5 places and the shared loop's few; 300 if all were made at once


@pytest.mark.parametrize("setting", ["max_tokens", "max_concurrent", "history"])
def test_a_limit_below_one_is_refused(setting: str) -> None:
    with pytest.raises(ValueError, match=rf"rollout.{setting} is 0; it must be at least 1"):
        RolloutSettings(**{setting: 0})  # type: ignore[arg-type]


def test_an_unknown_injection_is_refused() -> None:
    with pytest.raises(ValueError, match=r"rollout.injection is 'middle'; give before_generation_prompt or after"):
        RolloutSettings(injection="middle")  # type: ignore[arg-type]


def test_settings_that_do_not_go_with_the_benchmark_are_refused(make: Callable[..., EpisodeRunner]) -> None:
    with pytest.raises(ValueError, match="constrained_actions is on, but benchmark 'facts' lists no actions"):
        make(WatchedEngine(), constrained_actions=True)
    nameless = Facts()
    nameless.metrics = ()
    with pytest.raises(ValueError, match="benchmark 'facts' has no metrics"):
        make(WatchedEngine(), benchmark=nameless)


# ------------------------------------------------------------------ an engine that is dead


def is_for(label: str) -> Callable[[Request], bool]:
    return lambda request: request.label == label


@pytest.mark.parametrize(
    ("mas", "agent"), [(AutoGen(), "user_proxy"), (MacNet(), "critic_1_2")], ids=["autogen", "macnet"]
)
def test_a_dead_engine_names_who_asked_and_cancels_the_others(
    make: Callable[..., EpisodeRunner], mas: MAS, agent: str
) -> None:
    label = f"task t2, agent {agent}"
    engine = WatchedEngine(delays=3, fails=is_for(label), error=EngineDiedError)
    endless = WatchedEngine(delays=10**9)

    class Mixed(WatchedEngine):
        async def generate(self, request: Request) -> Any:
            return await (engine if request.label.startswith("task t2") else endless).generate(request)

    with pytest.raises(EngineDiedError, match=f"^{label}: the script says so$"):
        make(Mixed(), mas).run(TASKS, 1, PHASE, None)
    assert endless.in_flight == 0
    assert {label.split(",")[0] for label in endless.cancelled} == {"task t0", "task t1", "task t3"}


def test_calls_beside_a_failed_one_of_the_same_episode_are_cancelled(make: Callable[..., EpisodeRunner]) -> None:
    class OneFails(WatchedEngine):
        async def generate(self, request: Request) -> Any:
            self.delays = 10**9 if request.label.endswith("actor_1") else 1
            return await super().generate(request)

    engine = OneFails(fails=is_for("task t0, agent actor_0"))
    (made,) = make(engine, MacNet()).run(TASKS[:1], 1, PHASE, None)
    assert made.failure == "engine: task t0, agent actor_0: the script says so"
    assert engine.cancelled == ["task t0, agent actor_1"]


def test_a_runner_goes_on_after_its_engine_came_back(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine(fails=is_for("task t0, agent assistant"), error=EngineDiedError)
    runner = make(engine)
    with pytest.raises(EngineDiedError):
        runner.run(TASKS, 1, PHASE, None)
    engine.fails = lambda request: False
    assert len(runner.run(TASKS, 1, PHASE, None)) == 4


def test_what_finished_before_the_engine_died_is_in_the_trace(
    make: Callable[..., EpisodeRunner], tmp_path: Path
) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    engine = WatchedEngine(fails=is_for("task t2, agent assistant"), error=EngineDiedError)
    with pytest.raises(EngineDiedError):
        make(engine, trace=writer, max_concurrent=1).run(TASKS, 1, PHASE, None)
    lines = [json.loads(line) for line in writer.path.read_text().splitlines()]
    assert [line["task"] for line in lines if line["kind"] == "episode"] == ["t0", "t1"]


def test_a_start_that_fails_ends_the_run(make: Callable[..., EpisodeRunner]) -> None:
    class NoStart(WatchedEngine):
        async def start(self) -> None:
            raise EngineError("no such model")

    with pytest.raises(EngineError, match="no such model"):
        make(NoStart()).run(TASKS, 1, PHASE, None)


# ------------------------------------------------------------------ interruption


def test_an_interrupted_caller_cancels_every_call(
    make: Callable[..., EpisodeRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is raised where the caller waits for the result; here by the wait itself, once all calls are out."""
    engine, asked = WatchedEngine(delays=10**9), threading.Event()

    class Endless(WatchedEngine):
        async def generate(self, request: Request) -> Any:
            if len(engine.asked) == 3:
                asked.set()
            return await engine.generate(request)

    def interrupted(*args: object) -> Any:
        assert asked.wait(10)
        raise KeyboardInterrupt

    submit = asyncio.run_coroutine_threadsafe

    def submit_and_interrupt(coroutine: Any, on: asyncio.AbstractEventLoop) -> Any:
        future = submit(coroutine, on)
        monkeypatch.setattr(future, "result", interrupted)
        return future

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", submit_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        make(Endless()).run(TASKS, 1, PHASE, None)
    assert engine.in_flight == 0
    assert len(engine.cancelled) == 4


def test_an_agent_that_a_mas_never_waits_for_does_not_outlive_the_episode(
    make: Callable[..., EpisodeRunner],
) -> None:
    class Hasty:
        name = "hasty"

        def agents(self, domain: str) -> tuple[Agent, ...]:
            return AutoGen().agents(domain)

        async def run(self, task: Task, act: Act) -> str:
            assistant, proxy = self.agents(task.domain)
            act(assistant, [Message("user", "slow")])
            return await act(proxy, [Message("user", "quick")])

    class SlowFirst(WatchedEngine):
        async def generate(self, request: Request) -> Any:
            self.delays = 10**9 if request.key and request.key.call == 0 else 1
            return await super().generate(request)

    engine = SlowFirst(ReplayEngine(script=lambda request: "done"))
    (made,) = make(engine, Hasty()).run(TASKS[:1], 1, PHASE, None)
    assert made.answer == "done"
    assert [step.call for step in made.steps] == [1]  # the number under which a replay finds it
    assert engine.in_flight == 0


# ------------------------------------------------------------------ life


def test_closing_stops_the_engine_and_only_a_loop_of_its_own(loop: EventLoopThread) -> None:
    parts = (AutoGen(), TOKENIZER, embed, Facts(), RolloutSettings(max_tokens=4))
    engine = WatchedEngine()
    borrowed, own = EpisodeRunner(engine, *parts, loop=loop), EpisodeRunner(engine, *parts)
    own.run(TASKS[:1], 1, PHASE, None)
    for runner in (borrowed, own, own):
        runner.close()
    assert (engine.starts, engine.closes) == (1, 2)
    assert own.loop.closed
    assert not loop.closed
    with pytest.raises(RuntimeError, match="was closed"):
        own.run(TASKS[:1], 1, PHASE, None)


@pytest.fixture
def tiny_engine(tiny_model_dir: Path, loop: EventLoopThread) -> Iterator[TransformersEngine]:
    engine = TransformersEngine(str(tiny_model_dir), max_model_len=512)
    yield engine
    loop.run(engine.close())


@pytest.mark.parametrize("mas", [AutoGen(), MacNet()], ids=lambda mas: mas.name)
def test_a_real_engine_gives_the_same_run_twice(
    make: Callable[..., EpisodeRunner], tiny_engine: TransformersEngine, mas: MAS
) -> None:
    def outputs(concurrent: int) -> list[tuple[tuple[int, ...], ...]]:
        made = make(tiny_engine, mas, max_concurrent=concurrent).run(TASKS[:2], 2, PHASE, None)
        return [tuple(step.output_ids for step in trajectory.steps) for trajectory in made]

    assert outputs(8) == outputs(8) == outputs(1)
    assert len(set(outputs(8))) == 4


# ------------------------------------------------------------------ what is refused before the engine is started


class Cast(MAS):
    """Agents as given, for the domain ``qa``."""

    name = "cast"

    def __init__(self, *agents: Agent) -> None:
        self.cast = agents

    def agents(self, domain: str) -> tuple[Agent, ...]:
        return self.cast

    async def run(self, task: Task, act: Act) -> str:
        return "nothing"


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ((Agent("a", "", "You act."),), "needs a name, a role and a profile"),
        ((Agent("a", "actor", " "),), "needs a name, a role and a profile"),
        ((Agent("", "actor", "You act."),), "needs a name, a role and a profile"),
        ((Agent("a", "actor", "You act."), Agent("a", "critic", "You doubt.")), "2 agents are 'a'"),
    ],
)
def test_agents_that_cannot_be_are_refused(
    make: Callable[..., EpisodeRunner], agents: tuple[Agent, ...], message: str
) -> None:
    engine = WatchedEngine()
    with pytest.raises(ValueError, match=rf"^MAS 'cast', domain qa: .*{message}"):
        make(engine, Cast(*agents)).run(TASKS, 2, PHASE, None)
    assert engine.starts == 0


def test_a_domain_without_prompts_is_refused(make: Callable[..., EpisodeRunner]) -> None:
    engine = WatchedEngine()
    with pytest.raises(ValueError, match=r"no prompts for domain 'chess'.*there are prompts for: code, "):
        make(engine).run([*TASKS, replace(TASKS[0], id="c", domain="chess")], 2, PHASE, None)
    assert engine.starts == 0


def test_a_response_limit_without_room_for_a_prompt_is_refused(make: Callable[..., EpisodeRunner]) -> None:
    engine = TransformersEngine("never loaded", max_model_len=64)
    make(engine, max_tokens=63)
    with pytest.raises(ValueError, match=r"^rollout\.max_tokens is 64, .* the engine's max_model_len of 64"):
        make(engine, max_tokens=64)


def test_an_engine_of_text_needs_no_tokenizer(loop: EventLoopThread) -> None:
    engine = WatchedEngine(text_only=True)
    runner = EpisodeRunner(engine, AutoGen(), None, embed, Facts(), RolloutSettings(max_tokens=16), loop=loop)
    assert [made.failure for made in runner.run(TASKS, 1, PHASE, FixedMemory(text="Lima was right."))] == [None] * 4
    assert all(request.prompt_ids is None and request.messages for request in engine.asked)
    assert engine.asked[0].messages is not None
    assert "Lima was right." in engine.asked[0].messages[-1].content
