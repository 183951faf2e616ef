"""CoMem's callbacks on a stream: the fixed order, a stop and a resume anywhere, every episode exactly once."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from transformers import AutoTokenizer

from data.datamodule import TaskDataModule
from data.environment import Observation
from data.stream import StreamSettings
from data.task import Score, Task
from data.trajectory import Trajectory
from lightning_modules.callbacks.comem.collective_curation import CollectiveCuration
from lightning_modules.callbacks.comem.lifecycle_log import LifecycleLog
from lightning_modules.callbacks.comem.mechanism import Mechanism
from lightning_modules.callbacks.comem.pollution import Pollution
from lightning_modules.callbacks.comem.promotion import Promotion
from lightning_modules.callbacks.comem.rolling_pruning import RollingPruning
from lightning_modules.callbacks.comem.sedimentation import Sedimentation
from lightning_modules.callbacks.comem.usage import UsageCounting
from lightning_modules.callbacks.stage_checkpoint import StageCheckpoint
from lightning_modules.task_stream import TaskStream
from memory.comem.comem import CoMem
from memory.comem.settings import CoMemSettings
from memory.experience_bank import ExperienceBank
from memory.memory import Agent, Memory, Recall
from memory.text import TextMemory
from rollout.engine import Request
from rollout.mas.autogen import AutoGen
from rollout.reflection import LLMDistiller, LLMJudge
from rollout.runner import RolloutSettings
from tests.lightning_modules.parts import TinyBenchmark
from tests.memory.parts import BagOfWords
from tests.rollout.question_engine import QuestionEngine
from tests.rollout.watched_engine import WatchedEngine


def scripted(prompt: str, request: Request) -> str:
    """Agents answer at random but reproducibly; reflections say something about the task, fenced or not."""
    draw = random.Random(f"{prompt[-400:]} {request.sampling.seed}")
    if '"insights"' in prompt:
        return f'{{"insights": ["lesson {draw.randrange(40)}", "lesson {draw.randrange(40)}"]}}'
    if '"score"' in prompt:
        return draw.choice(['{"score": 7}', '```json\n{"score": 2}\n```', "no idea"])
    return draw.choice(["Paris", "Rome", "Fe Fe", "eight"])


def mechanisms() -> list[Mechanism]:
    return [
        UsageCounting(), Pollution(window=4), CollectiveCuration(), Promotion(), RollingPruning(), Sedimentation(),
        LifecycleLog(),
    ]  # fmt: skip


def a_comem(**values: Any) -> CoMem:
    return CoMem(BagOfWords(dim=64), CoMemSettings(reward="letters", n_min=2, k_max=2, **values))


class Keep(L.Callback):
    """Copies ``last.ckpt`` and the events as they are after each batch."""

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        root = Path(trainer.default_root_dir)
        shutil.copy(root / "checkpoints" / "last.ckpt", root / f"after{batch_idx}.ckpt")


def stream(
    model: Path,
    root: Path,
    memory: Memory | None,
    callbacks: Sequence[L.Callback],
    in_flight: int = 1,
    ckpt_path: Path | None = None,
    logger: Any = False,
) -> TaskStream:
    engine = QuestionEngine(AutoTokenizer.from_pretrained(model), scripted)
    module = TaskStream(str(model), engine, AutoGen(), memory, RolloutSettings(max_tokens=4), temperature=1.0, seed=5)
    settings = StreamSettings(epochs=2, tasks_in_flight=in_flight)
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=1, default_root_dir=root, enable_checkpointing=False, logger=logger,
        enable_progress_bar=False, enable_model_summary=False, callbacks=list(callbacks), log_every_n_steps=1,
    )  # fmt: skip
    data = TaskDataModule(TinyBenchmark(), seed=3, stream=settings)
    trainer.fit(module, datamodule=data, ckpt_path=str(ckpt_path) if ckpt_path else None, weights_only=True)
    return module


def comem_of(module: TaskStream) -> CoMem:
    assert module.comem is not None
    return module.comem


def contents(memory: CoMem) -> list[Any]:
    return [store.entries() for store in memory.stores()]


def events(root: Path) -> list[str]:
    return (root / "comem_events.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def whole(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[TaskStream, Path]:
    """Two passes over eight tasks, one at a time."""
    root = tmp_path_factory.mktemp("whole")
    return stream(tiny_model_dir, root, a_comem(), [*mechanisms(), StageCheckpoint(), Keep()]), root


def test_every_mechanism_acts_and_leaves_its_events(whole: tuple[TaskStream, Path]) -> None:
    module, root = whole
    kinds = [json.loads(line)["kind"] for line in events(root)]
    assert {"episode", "measured", "born", "used", "promoted", "scored", "pruned"} <= set(kinds)
    assert kinds.count("episode") == 16
    results = json.loads((root / "comem_results.json").read_text(encoding="utf-8"))
    assert (results["tasks_in_flight"], results["episodes"]) == (1, 16)
    assert results["events"]["born"] == kinds.count("born")
    assert 0 <= results["mean"]["noise"] <= 1
    assert {"action_similarity", "memory_similarity", "reward", "baseline"} <= results["mean"].keys()
    assert results["questions"]["calls"] > 32  # two agents reflect on each of sixteen episodes, and judge
    assert results["collective_entries"] == len(comem_of(module).collective)
    assert results["settings"]["n_min"] == 2


def test_the_streams_own_results_have_every_episode_and_the_setting(whole: tuple[TaskStream, Path]) -> None:
    _, root = whole
    results = json.loads((root / "stream_results.json").read_text(encoding="utf-8"))
    assert (results["tasks_in_flight"], results["memory"], results["episodes"], results["failed"]) == (
        1,
        "CoMem",
        16,
        0,
    )
    seen = [row["task"] for row in results["rows"]]
    assert sorted(seen[:8]) == sorted(seen[8:]) == [f"t{n}" for n in range(8)]
    mean = sum(row["score"]["letters"] for row in results["rows"]) / 16
    assert results["mean"]["letters"] == pytest.approx(mean)


def test_what_was_injected_is_what_was_counted(whole: tuple[TaskStream, Path]) -> None:
    module, root = whole
    used = [json.loads(line) for line in events(root) if '"kind": "used"' in line]
    for entry in comem_of(module).entries(entry.id for store in comem_of(module).stores() for entry in store.entries()):
        lives = {entry.id, entry.parent_id}
        assert entry.n_use == sum(event["entry_id"] in lives for event in used)


@pytest.mark.parametrize("cut", [0, 6, 7, 14])
def test_a_resumed_stream_is_the_uninterrupted_one(
    tiny_model_dir: Path, tmp_path: Path, whole: tuple[TaskStream, Path], cut: int
) -> None:
    module, root = whole
    shutil.copy(root / "comem_events.jsonl", tmp_path / "comem_events.jsonl")  # more than the checkpoint knows of
    callbacks = [*mechanisms(), StageCheckpoint()]
    resumed = stream(tiny_model_dir, tmp_path, a_comem(), callbacks, ckpt_path=root / f"after{cut}.ckpt")
    assert resumed.rows == module.rows
    assert contents(comem_of(resumed)) == contents(comem_of(module))
    assert comem_of(resumed).baseline == comem_of(module).baseline
    assert events(tmp_path) == events(root)
    for name in ("comem_results.json", "stream_results.json"):
        assert (tmp_path / name).read_text() == (root / name).read_text()


def test_the_order_of_the_list_does_not_matter(
    tiny_model_dir: Path, tmp_path: Path, whole: tuple[TaskStream, Path]
) -> None:
    module, root = whole
    other = stream(tiny_model_dir, tmp_path, a_comem(), [*reversed(mechanisms()), StageCheckpoint()])
    assert contents(comem_of(other)) == contents(comem_of(module))
    assert events(tmp_path) == events(root)


def test_with_tasks_in_flight_updates_still_apply_one_by_one_in_task_order(
    tiny_model_dir: Path, tmp_path: Path, whole: tuple[TaskStream, Path]
) -> None:
    module = stream(tiny_model_dir, tmp_path, a_comem(), mechanisms(), in_flight=3)
    assert [row["task"] for row in module.rows] == [row["task"] for row in whole[0].rows]
    told = [json.loads(line) for line in events(tmp_path)]
    assert [event["episode"] for event in told] == sorted(event["episode"] for event in told)
    for episode in range(16):
        kinds = [event["kind"] for event in told if event["episode"] == episode]
        assert kinds == sorted(
            kinds, key=["episode", "used", "measured", "scored", "forgotten", "promoted", "pruned", "born"].index
        )
    results = [json.loads((tmp_path / name).read_text()) for name in ("comem_results.json", "stream_results.json")]
    assert [result["tasks_in_flight"] for result in results] == [3, 3]


def test_the_checkpoint_is_plain_and_has_a_state_for_every_mechanism(whole: tuple[TaskStream, Path]) -> None:
    checkpoint = torch.load(whole[1] / "checkpoints" / "last.ckpt", weights_only=True)
    assert checkpoint["comem"]["episodes"] == 16
    counts = {name: state["count"] for name, state in checkpoint["callbacks"].items() if "count" in state}
    assert len(counts) == 7
    assert counts["UsageCounting"] > 16
    assert counts["Sedimentation"] > 0


def test_tensorboard_shows_the_lifecycle(tiny_model_dir: Path, tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path, "run", "0")
    stream(tiny_model_dir, tmp_path, a_comem(), mechanisms(), logger=logger)
    scalars = EventAccumulator(logger.log_dir).Reload()
    tags = set(scalars.Tags()["scalars"])
    sizes = {"private_entries", "collective_entries", "collective_score"}
    events = {"born", "used", "scored", "promoted", "pruned", "forgotten"}
    pollution = {"noise", "memory_similarity", "action_similarity", "reward", "baseline"}
    assert {f"comem/{name}" for name in sizes | events | pollution} <= tags
    assert [event.step for event in scalars.Scalars("comem/reward")] == list(range(16))
    assert [event.step for event in scalars.Scalars("stream/letters")] == list(range(16))


class Disk(L.Callback):
    """The points of TensorBoard that are on disk when a batch begins."""

    def __init__(self) -> None:
        self.points: list[tuple[int, int]] = []

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        scalars = EventAccumulator(trainer.log_dir).Reload()
        tags = scalars.Tags()["scalars"]
        found = [len(scalars.Scalars(tag)) if tag in tags else 0 for tag in ("stream/letters", "comem/reward")]
        self.points.append((found[0], found[1]))


def test_a_killed_run_leaves_every_finished_episode_in_tensorboard(tiny_model_dir: Path, tmp_path: Path) -> None:
    disk = Disk()
    logger = TensorBoardLogger(tmp_path, "run", "0")
    stream(tiny_model_dir, tmp_path, a_comem(), [*mechanisms(), disk], in_flight=2, logger=logger)
    assert disk.points == [(n, n) for n in range(0, 16, 2)]


def test_a_run_that_stops_while_agents_reflect_shows_no_episode_twice(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = TensorBoardLogger(tmp_path, "run", "0")
    callbacks = [*mechanisms(), StageCheckpoint()]
    distil, left = LLMDistiller.distil, iter(range(11))

    async def cut(*args: Any) -> tuple[str, ...]:
        if next(left) == 10:
            raise ConnectionAbortedError("power cut")
        return await distil(*args)

    monkeypatch.setattr(LLMDistiller, "distil", cut)
    with pytest.raises(ConnectionAbortedError):
        stream(tiny_model_dir, tmp_path, a_comem(), callbacks, logger=logger)
    monkeypatch.setattr(LLMDistiller, "distil", distil)
    last = Path(logger.log_dir) / "checkpoints" / "last.ckpt"
    again = TensorBoardLogger(tmp_path, "run", "0")
    stream(tiny_model_dir, tmp_path, a_comem(), [*mechanisms(), StageCheckpoint()], ckpt_path=last, logger=again)
    scalars = EventAccumulator(logger.log_dir).Reload()
    for tag in ("stream/letters", "comem/reward"):
        assert [event.step for event in scalars.Scalars(tag)] == list(range(16))


@pytest.mark.parametrize("learns", [True, False])
def test_an_evaluation_goes_on_from_a_runs_memory(
    tiny_model_dir: Path, tmp_path: Path, whole: tuple[TaskStream, Path], learns: bool
) -> None:
    before, root = whole
    engine = QuestionEngine(AutoTokenizer.from_pretrained(tiny_model_dir), scripted)
    settings = RolloutSettings(max_tokens=4)
    module = TaskStream(
        str(tiny_model_dir),
        engine,
        AutoGen(),
        a_comem(),
        settings,
        seed=5,
        **({"learns_in_test": True} if learns else {}),
    )
    trainer = L.Trainer(
        accelerator="cpu", default_root_dir=tmp_path, logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, callbacks=[*mechanisms()],
    )  # fmt: skip
    data = TaskDataModule(TinyBenchmark(), stream=StreamSettings(), validation_limit=5)
    trainer.test(module, data, ckpt_path=str(root / "checkpoints" / "last.ckpt"), weights_only=True, verbose=False)
    results = json.loads((tmp_path / "test_results.json").read_text(encoding="utf-8"))
    assert (results["episodes"], results["split"]) == (5, "test")
    assert (results["memory_is"], results["write_gate"]) == ("learning" if learns else "frozen", "none")
    assert {json.loads(line)["episode"] for line in events(tmp_path)} == set(
        range(16, 21)
    )  # a log of its own, whole lines
    assert (contents(comem_of(module)) == contents(comem_of(before))) is not learns
    assert comem_of(module).baseline.count == (21 if learns else 16)
    assert any("Lessons" in prompt for prompt, _ in engine.asked)
    assert (
        any(request.label.startswith("distil") for _, request in engine.asked) is learns
    )  # nobody reflects for a memory that is frozen


def test_the_ablations_of_table_2(tiny_model_dir: Path, tmp_path: Path) -> None:
    no_pool = [each for each in mechanisms() if not isinstance(each, (Promotion, CollectiveCuration))]
    private = comem_of(stream(tiny_model_dir, tmp_path / "private", a_comem(), no_pool))
    assert len(private.collective) == 0
    assert sum(map(len, private.private.values())) > 0
    no_own = [each for each in mechanisms() if not isinstance(each, (Promotion, RollingPruning))]
    memory = a_comem(distil_into="collective")
    collective = comem_of(stream(tiny_model_dir, tmp_path / "collective", memory, no_own))
    assert sum(map(len, collective.private.values())) == 0
    assert len(collective.collective) > 0


def test_a_stream_goes_without_memory_and_with_another_one(tiny_model_dir: Path, tmp_path: Path) -> None:
    assert len(stream(tiny_model_dir, tmp_path, None, []).rows) == 16
    bank = ExperienceBank(BagOfWords())
    assert len(stream(tiny_model_dir, tmp_path, TextMemory(bank, update=True), []).rows) == 16
    assert len(bank) == 16


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (list, "has none of its mechanisms"),
        (lambda: [StageCheckpoint(), *mechanisms()], "StageCheckpoint before UsageCounting"),
        (lambda: [CollectiveCuration(LLMJudge(l_max=5))], r"judge\.l_max is 5, the memory's settings\.l_max 10"),
    ],
    ids=["none", "order", "scale"],
)
def test_a_list_that_would_go_wrong_is_refused(
    tiny_model_dir: Path, tmp_path: Path, callbacks: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        stream(tiny_model_dir, tmp_path, a_comem(), callbacks())


def test_mechanisms_need_a_comem(tiny_model_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a module with a CoMem"):
        stream(tiny_model_dir, tmp_path, None, mechanisms())


class Endless:
    """A world whose episodes always run out of steps. Its environment is its own only episode."""

    name, max_steps, metrics = "endless", 2, ("success",)

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(f"e{n}", "Find the exit.", (), self.name) for n in range(3)]

    def environment(self, task: Task) -> Endless:
        return self

    def reset(self) -> Observation:
        return Observation("A corridor.")

    def step(self, action: str) -> Observation:
        return Observation("The same corridor.")

    def score(self) -> Score:
        return {"success": 0.0}

    def close(self) -> None: ...


class Remembers:
    """A memory of nothing that notes which episodes came to it."""

    def __init__(self) -> None:
        self.ended: list[Trajectory] = []

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None: ...

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        return Recall()

    def end_episode(self, trajectory: Trajectory) -> None:
        self.ended.append(trajectory)


def on_text(root: Path, engine: WatchedEngine, benchmark: Any, memory: Memory) -> None:
    """A stream whose engine takes text, so that no model and no tokenizer is read."""
    module = TaskStream("a model of that API", engine, AutoGen(), memory, RolloutSettings(max_tokens=8))
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=1, default_root_dir=root, enable_checkpointing=False, logger=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, datamodule=TaskDataModule(benchmark, stream=StreamSettings(shuffle=False)))


def test_an_episode_out_of_steps_reaches_the_memory_and_one_that_broke_off_does_not(tmp_path: Path) -> None:
    memory = Remembers()
    engine = WatchedEngine(text_only=True, fails=lambda request: "task e1" in request.label)
    on_text(tmp_path, engine, Endless(), memory)
    assert [(made.task.id, made.failure) for made in memory.ended] == [
        (task, "step limit: not done after 2 actions") for task in ("e0", "e2")
    ]
    rows = json.loads((tmp_path / "stream_results.json").read_text(encoding="utf-8"))["rows"]
    assert rows[1]["failure"] == "engine: task e1, agent assistant: the script says so"


def test_a_temperature_that_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^model\.temperature is -1"):
        TaskStream("any", WatchedEngine(), AutoGen(), temperature=-1)


def test_a_reward_that_the_benchmark_does_not_score_is_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    memory = CoMem(BagOfWords(dim=64), CoMemSettings(reward="letter"))
    with pytest.raises(ValueError, match=r"^model\.memory\.settings\.reward is 'letter'.*did you mean 'letters'\?"):
        stream(tiny_model_dir, tmp_path, memory, mechanisms())
