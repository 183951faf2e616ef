from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data.task import Score, Task
from data.trajectory import Trajectory
from memory.memory import Agent, Memory, Recall
from rollout.engine import EngineError, Request
from rollout.event_loop import EventLoopThread
from rollout.mas.autogen import AutoGen
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS, Act, Message
from rollout.prompt import load_prompts, render
from rollout.runner import EpisodeRunner, Phase, RolloutSettings
from rollout.seeds import call_seed
from rollout.trace import TraceWriter
from rollout.transformers_engine import TransformersEngine
from tests.rollout.scripted_engine import ScriptedEngine
from tests.tiny_model import tiny_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TOKENIZER: PreTrainedTokenizerBase = tiny_tokenizer()
TABLE = torch.randn(len(TOKENIZER), 4, generator=torch.Generator().manual_seed(0))
PHASE = Phase("lmpo", step=3, run_seed=11, temperature=1.0)
TASKS = tuple(Task(f"t{n}", f"What is fact {n}?", (f"answer {n}",), "sample") for n in range(4))


def embed(ids: torch.Tensor) -> torch.Tensor:
    return TABLE[ids]


def score(task: Task, answer: str) -> Score:
    return {"exact_match": float(answer in task.answers)}


@pytest.fixture
def make(loop: EventLoopThread) -> Callable[..., EpisodeRunner]:
    def runner(engine: Any, mas: MAS | None = None, trace: TraceWriter | None = None, **limits: Any) -> EpisodeRunner:
        limits = {"max_tokens": 16, **limits}
        return EpisodeRunner(engine, mas or AutoGen(), TOKENIZER, embed, score, RolloutSettings(**limits), trace, loop)

    return runner


@dataclass
class FixedMemory:
    """Recalls the same text and latents for everyone; notes what it was asked and on which thread."""

    text: str = ""
    latents: torch.Tensor | None = None
    prepared: list[tuple[tuple[Task, ...], tuple[Agent, ...], int]] = field(default_factory=list)
    recalled: list[tuple[str, str, str]] = field(default_factory=list)
    ended: list[Trajectory] = field(default_factory=list)

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None:
        self.prepared.append((tuple(tasks), tuple(agents), threading.get_ident()))

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        self.recalled.append((task.id, agent.name, context))
        return Recall(self.text, self.latents, ("e1", "e2"))

    def end_episode(self, trajectory: Trajectory) -> None:
        self.ended.append(trajectory)


def identity(trajectory: Trajectory) -> tuple[str, int]:
    return trajectory.task.id, trajectory.member


# ------------------------------------------------------------------ order and seeds


def test_trajectories_come_task_by_task_and_member_by_member(make: Callable[..., EpisodeRunner]) -> None:
    trajectories = make(ScriptedEngine()).run(TASKS, 2, PHASE, None)
    assert [identity(made) for made in trajectories] == [(task.id, member) for task in TASKS for member in range(2)]
    assert {made.mas for made in trajectories} == {"autogen"}


@pytest.mark.parametrize("mas", [AutoGen(), MacNet(), MacNet(agents_total=9, seed=1)], ids=["autogen", "5", "9"])
def test_nothing_depends_on_who_comes_back_first(make: Callable[..., EpisodeRunner], mas: MAS) -> None:
    in_order = make(ScriptedEngine(), mas).run(TASKS, 3, PHASE, None)
    for seed in range(5):
        engine = ScriptedEngine(delays=40, seed=seed)
        assert make(engine, mas, max_concurrent=1 + 3 * seed).run(TASKS, 3, PHASE, None) == in_order
        assert engine.answered != [request.label for request in engine.asked] or seed == 0


@given(step=st.integers(0, 99), run_seed=st.integers(0, 99), group=st.integers(1, 3))
@settings(deadline=None, max_examples=15)
def test_seeds_say_run_step_task_member_and_call(loop: EventLoopThread, step: int, run_seed: int, group: int) -> None:
    engine, mas = ScriptedEngine(delays=10), MacNet()
    runner = EpisodeRunner(engine, mas, TOKENIZER, embed, score, RolloutSettings(max_tokens=16), None, loop)
    runner.run(TASKS[:2], group, Phase("lmpo", step, run_seed, 1.0), None)
    agents = [name for wave in (("actor_0", "actor_1"), ("critic_0_2", "critic_1_2"), ("actor_2",)) for name in wave]
    expected = {
        (f"task {task.id}, agent {agent}", call_seed(run_seed, step, task.id, member, call))
        for task in TASKS[:2]
        for member in range(group)
        for call, agent in enumerate(agents)
    }
    assert {(request.label, request.sampling.seed) for request in engine.asked} == expected


def test_steps_stand_in_call_order_with_who_spoke(make: Callable[..., EpisodeRunner]) -> None:
    (made,) = make(ScriptedEngine(delays=40), MacNet()).run(TASKS[:1], 1, PHASE, None)
    assert [step.agent for step in made.steps] == ["actor_0", "actor_1", "critic_0_2", "critic_1_2", "actor_2"]
    assert [step.role for step in made.steps] == ["actor", "actor", "critic", "critic", "actor"]
    seeds = [call_seed(11, 3, "t0", 0, call) for call in range(5)]
    assert [step.output for step in made.steps] == [f"answer {seed % 1000}" for seed in seeds]
    assert made.answer == made.steps[-1].output


def test_sampling_is_the_phases_and_the_settings(make: Callable[..., EpisodeRunner]) -> None:
    engine = ScriptedEngine()
    make(engine, max_tokens=5).run(TASKS[:1], 1, replace(PHASE, temperature=0.0), None)
    assert {(r.sampling.temperature, r.sampling.max_tokens) for r in engine.asked} == {(0.0, 5)}


# ------------------------------------------------------------------ what is recorded


def test_a_step_records_what_the_engine_said_and_what_it_cost(make: Callable[..., EpisodeRunner]) -> None:
    engine = ScriptedEngine()
    (made,) = make(engine).run(TASKS[:1], 1, PHASE, FixedMemory(latents=torch.ones(2, 4)))
    step = made.steps[0]
    assert (step.output_ids, step.logprobs, step.finish_reason) == ((7, 2), (-0.25, -0.5), "stop")
    assert step.entry_ids == ("e1", "e2")
    assert (step.cost.prompt_tokens, step.cost.latent_tokens) == (len(step.prefix_ids) + len(step.suffix_ids), 2)
    assert (step.cost.completion_tokens, step.cost.cached_tokens) == (2, 3)
    assert (step.cost.wall_s, step.cost.first_token_s, step.cost.queue_s) == (0.4, 0.2, 0.1)


def test_the_answer_is_scored_by_the_benchmarks_rule(make: Callable[..., EpisodeRunner]) -> None:
    engine = ScriptedEngine(reply=lambda request: "answer 1")
    made = make(engine).run(TASKS[:3], 1, PHASE, None)
    assert [trajectory.score for trajectory in made] == [{"exact_match": x} for x in (0.0, 1.0, 0.0)]


def test_every_call_leaves_a_line_in_the_trace(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    make(ScriptedEngine(delays=20), trace=writer).run(TASKS, 2, PHASE, None)
    lines = [json.loads(line) for line in writer.path.read_text().splitlines()]
    calls = [(line["task"], line["member"], line["call"]) for line in lines]
    assert calls == [(task.id, member, call) for task in TASKS for member in range(2) for call in range(2)]
    assert {(line["phase"], line["step"]) for line in lines} == {("lmpo", 3)}


def test_progress_counts_to_the_end(make: Callable[..., EpisodeRunner]) -> None:
    seen: list[tuple[int, int]] = []
    make(ScriptedEngine(delays=20)).run(TASKS, 2, PHASE, None, lambda done, total: seen.append((done, total)))
    assert seen == [(done, 8) for done in range(1, 9)]


def test_no_task_is_no_episode(make: Callable[..., EpisodeRunner]) -> None:
    assert make(ScriptedEngine()).run([], 4, PHASE, None) == []


# ------------------------------------------------------------------ memory


def prompt_of(task: Task, memory_text: str = "", injection: Any = "before_generation_prompt") -> Any:
    prompts = load_prompts("qa")
    messages = prompts.role("autogen", "assistant").messages("answer", question=task.question)
    return render(TOKENIZER, messages, memory_text, injection=injection, memory_slot=prompts.memory_slot)


def first_request(engine: ScriptedEngine) -> Request:
    return next(request for request in engine.asked if "agent assistant" in request.label)


def test_without_memory_the_prompt_is_sent_as_tokens(make: Callable[..., EpisodeRunner]) -> None:
    engine = ScriptedEngine()
    make(engine).run(TASKS[:1], 1, PHASE, None)
    plain = prompt_of(TASKS[0])
    assert first_request(engine).prompt_ids == plain.prefix_ids + plain.suffix_ids
    assert first_request(engine).prompt_embeds is None


def test_memory_text_goes_into_the_slot_and_stays_tokens(make: Callable[..., EpisodeRunner]) -> None:
    engine = ScriptedEngine()
    (made,) = make(engine).run(TASKS[:1], 1, PHASE, FixedMemory(text="Lima is a capital."))
    expected = prompt_of(TASKS[0], "Lima is a capital.")
    assert first_request(engine).prompt_ids == expected.prefix_ids + expected.suffix_ids
    assert made.steps[0].prompt == expected.text
    assert "Lima is a capital." in made.steps[0].prompt


@pytest.mark.parametrize("injection", ["before_generation_prompt", "after_generation_prompt"])
@pytest.mark.parametrize("text", ["", "Lima is a capital."])
def test_latents_stand_between_prefix_and_suffix(make: Callable[..., EpisodeRunner], injection: str, text: str) -> None:
    engine, latents = ScriptedEngine(), torch.full((3, 4), 9.0, requires_grad=True)
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
    engine = ScriptedEngine()
    make(engine).run(TASKS[:1], 1, PHASE, FixedMemory(latents=torch.ones(1, 4, dtype=torch.float64)))
    embeds = first_request(engine).prompt_embeds
    assert embeds is not None
    assert embeds.dtype == torch.float32


def test_memory_is_prepared_once_on_the_callers_thread_for_every_agent(make: Callable[..., EpisodeRunner]) -> None:
    memory, mas = FixedMemory(), MacNet()
    seam: Memory = memory
    make(ScriptedEngine(), mas).run(TASKS[:2], 2, PHASE, seam)
    assert memory.prepared == [(TASKS[:2], mas.agents("qa"), threading.get_ident())]
    assert len(memory.recalled) == 2 * 2 * 5
    assert memory.ended == []  # the caller's part, in task order


def test_a_recall_is_told_who_asks_and_what_it_reads(make: Callable[..., EpisodeRunner]) -> None:
    memory = FixedMemory()
    make(ScriptedEngine()).run(TASKS[:1], 1, PHASE, memory)
    (task, agent, context), _ = memory.recalled
    assert (task, agent) == ("t0", "assistant")
    assert "What is fact 0?" in context


# ------------------------------------------------------------------ limits and failures


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_no_more_episodes_than_allowed_are_in_flight(make: Callable[..., EpisodeRunner], limit: int) -> None:
    engine = ScriptedEngine(delays=20)
    make(engine, max_concurrent=limit).run(TASKS, 4, PHASE, None)
    assert engine.most_in_flight == limit
    assert len(engine.asked) == 4 * 4 * 2


@pytest.mark.parametrize("setting", ["max_tokens", "max_concurrent"])
def test_a_limit_below_one_is_refused(setting: str) -> None:
    with pytest.raises(ValueError, match=rf"rollout.{setting} (is )?0"):
        RolloutSettings(**{setting: 0})  # type: ignore[arg-type]


def is_for(label: str) -> Callable[[Request], bool]:
    return lambda request: request.label == label


@pytest.mark.parametrize(
    ("mas", "agent"), [(AutoGen(), "user_proxy"), (MacNet(), "critic_1_2")], ids=["autogen", "macnet"]
)
def test_one_failing_episode_names_itself_and_cancels_the_others(
    make: Callable[..., EpisodeRunner], loop: EventLoopThread, mas: MAS, agent: str
) -> None:
    label = f"task t2, agent {agent}"
    engine = ScriptedEngine(delays=3, fails=is_for(label))
    endless = ScriptedEngine(delays=10**9)

    class Mixed(ScriptedEngine):
        async def generate(self, request: Request) -> Any:
            return await (engine if request.label.startswith("task t2") else endless).generate(request)

    with pytest.raises(EngineError, match=f"^{label}: the script says so$") as caught:
        make(Mixed(), mas).run(TASKS, 1, PHASE, None)
    assert not isinstance(caught.value.__cause__, BaseExceptionGroup)
    assert endless.in_flight == 0
    assert {label.split(",")[0] for label in endless.cancelled} == {"task t0", "task t1", "task t3"}


def test_calls_beside_a_failed_one_of_the_same_episode_are_cancelled(make: Callable[..., EpisodeRunner]) -> None:
    class OneFails(ScriptedEngine):
        async def generate(self, request: Request) -> Any:
            self.delays = 10**9 if request.label.endswith("actor_1") else 1
            return await super().generate(request)

    engine = OneFails(fails=is_for("task t0, agent actor_0"))
    with pytest.raises(EngineError, match="agent actor_0"):
        make(engine, MacNet()).run(TASKS[:1], 1, PHASE, None)
    assert engine.cancelled == ["task t0, agent actor_1"]


def test_a_runner_goes_on_after_a_failure(make: Callable[..., EpisodeRunner]) -> None:
    engine = ScriptedEngine(fails=is_for("task t0, agent assistant"))
    runner = make(engine)
    with pytest.raises(EngineError):
        runner.run(TASKS, 1, PHASE, None)
    engine.fails = lambda request: False
    assert len(runner.run(TASKS, 1, PHASE, None)) == 4


def test_a_failed_run_leaves_no_line_in_the_trace(make: Callable[..., EpisodeRunner], tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    with pytest.raises(EngineError):
        make(ScriptedEngine(fails=is_for("task t3, agent assistant")), trace=writer).run(TASKS, 1, PHASE, None)
    assert not writer.path.exists()


def test_an_interrupted_caller_cancels_every_call(
    make: Callable[..., EpisodeRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is raised where the caller waits for the result; here by the wait itself, once all calls are out."""
    engine, asked = ScriptedEngine(delays=10**9), threading.Event()

    class Endless(ScriptedEngine):
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

    engine = ScriptedEngine(reply=lambda request: "done")
    (made,) = make(engine, Hasty()).run(TASKS[:1], 1, PHASE, None)
    assert made.answer == "done"
    assert engine.in_flight == 0


# ------------------------------------------------------------------ life


def test_closing_stops_the_engine_and_only_a_loop_of_its_own(loop: EventLoopThread) -> None:
    parts = (AutoGen(), TOKENIZER, embed, score, RolloutSettings(max_tokens=4))
    engine = ScriptedEngine()
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
