"""The plan of a run: which tasks each iteration gets, and where a resumed one goes on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.datamodule import StagedLoader, StageName, StageSettings, TaskDataModule
from data.task import Score, Task


def tasks(count: int) -> list[Task]:
    return [Task(f"t{place}", f"question {place}", ("yes",), "tiny") for place in range(count)]


def loader(count: int = 6, seed: int = 0, **stages: StageSettings) -> StagedLoader:
    named: dict[StageName, StageSettings] = {
        "collect": stages.get("collect", StageSettings(2)),
        "sft": stages.get("sft", StageSettings(3)),
        "lmpo": stages.get("lmpo", StageSettings(2, epochs=2)),
    }
    return StagedLoader(tasks(count), named, seed)


class TwoSplits:
    name = "tiny"
    metrics = ("exact_match",)

    def tasks(self, split: str) -> Sequence[Task]:
        return tasks({"train": 10, "test": 4}[split])

    def score(self, task: Task, answer: str) -> Score:
        return {"exact_match": 1.0}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (StageSettings(4), 3),  # ten tasks in fours: two full batches and one more
        (StageSettings(5, epochs=2), 4),
        (StageSettings(5, epochs=0.5), 1),
        (StageSettings(5, epochs=0), 0),
        (StageSettings(5, epochs=3, steps=7), 7),
        (StageSettings(5, epochs=3, steps=0), 0),
    ],
)
def test_length_of_a_stage(settings: StageSettings, expected: int) -> None:
    assert settings.count(10) == expected


def test_stages_follow_one_another_and_count_their_steps() -> None:
    batches = list(loader())
    assert [(batch.stage, batch.step, batch.steps) for batch in batches] == [
        *(("collect", step, 3) for step in range(3)),
        *(("sft", step, 2) for step in range(2)),
        *(("lmpo", step, 6) for step in range(6)),
    ]
    assert len(batches) == len(loader())


def test_a_stage_without_steps_is_skipped() -> None:
    stages = {batch.stage for batch in loader(collect=StageSettings(2, epochs=0), sft=StageSettings(2, steps=0))}
    assert stages == {"lmpo"}


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 2**40))
def test_no_task_twice_in_a_batch(count: int, size: int, seed: int) -> None:
    for batch in loader(count, seed, lmpo=StageSettings(size, steps=8)):
        assert len({task.id for task in batch.tasks}) == len(batch.tasks)
        if batch.stage == "lmpo":
            assert len(batch.tasks) == min(size, count)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 1000))
def test_an_epoch_covers_every_task(size: int, per_epoch: int, seed: int) -> None:
    batches = [b for b in loader(size * per_epoch, seed, lmpo=StageSettings(size, epochs=2)) if b.stage == "lmpo"]
    assert len(batches) == 2 * per_epoch
    for epoch in (batches[:per_epoch], batches[per_epoch:]):
        assert sorted(task.id for batch in epoch for task in batch.tasks) == sorted(
            task.id for task in tasks(size * per_epoch)
        )


def test_epochs_and_seeds_differ_in_order() -> None:
    def order(seed: int) -> list[list[str]]:
        return [
            [t.id for t in b.tasks] for b in loader(40, seed, lmpo=StageSettings(40, epochs=2)) if b.stage == "lmpo"
        ]

    assert order(0) == order(0)
    first, second = order(0)
    assert first != second
    assert order(1) != order(0)


@pytest.mark.parametrize("cut", range(12))
def test_a_position_saved_after_a_batch_continues_with_the_next(cut: int) -> None:
    whole = list(loader())
    begun = loader()
    batches = iter(begun)
    head = [next(batches) for _ in range(min(cut, len(whole)))]
    resumed = loader()
    resumed.load_state_dict(begun.state_dict())
    assert head + list(resumed) == whole


def test_a_second_pass_starts_anew() -> None:
    plan = loader()
    first = list(plan)
    assert plan.state_dict() == {"position": 0}
    assert list(plan) == first


def test_position_is_advanced_before_a_batch_is_handed_out() -> None:
    plan = loader()
    batches = iter(plan)
    seen = []
    for _ in range(3):
        next(batches)
        seen.append(plan.state_dict()["position"])
    assert all(later - earlier == 1 for earlier, later in pairwise(seen))
    assert seen[0] == 1


def test_the_module_plans_over_the_training_split() -> None:
    data = TaskDataModule(TwoSplits(), lmpo=StageSettings(5), sft=StageSettings(5, steps=3), collect=StageSettings(10))
    assert [data.steps(stage) for stage in ("collect", "sft", "lmpo")] == [1, 3, 2]
    assert len(data.train_dataloader()) == 6
    assert [task.id for task in data.held_out()] == ["t0", "t1", "t2", "t3"]


def test_train_limit_keeps_the_first_tasks() -> None:
    data = TaskDataModule(TwoSplits(), lmpo=StageSettings(2), sft=StageSettings(2), train_limit=4)
    assert data.steps("lmpo") == 2
    assert {task.id for batch in data.train_dataloader() for task in batch.tasks} == {"t0", "t1", "t2", "t3"}


def test_a_stage_can_use_fewer_tasks() -> None:
    settings = StageSettings(batch_size=2, epochs=2, tasks=4)
    assert settings.count(100) == 4
    batches = list(StagedLoader(tasks(8), {"lmpo": settings}, seed=0))
    for one_pass in (batches[:2], batches[2:]):
        assert sorted(task.id for batch in one_pass for task in batch.tasks) == ["t0", "t1", "t2", "t3"]
