"""Collection and reuse, epoch after epoch, resumable anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.epoch_loader import EpochLoader, EpochSettings
from data.stage_batch import StageBatch
from data.task import Task

TASKS = [Task(f"t{place}", "?", ("!",), "test") for place in range(5)]


def ids(batch: StageBatch) -> list[str]:
    return [task.id for task in batch.tasks]


def stage_ids(batches: list[StageBatch], stage: str) -> list[str]:
    return [task.id for batch in batches if batch.stage == stage for task in batch.tasks]


def test_the_plan_by_hand() -> None:
    batches = list(EpochLoader(TASKS, EpochSettings(epochs=2, passes=3, collect_batch=2, reuse_batch=3), seed=0))
    # 5 tasks: collection by 2 is 3 iterations, a pass by 3 is 2.
    got = [(batch.epoch, batch.stage, batch.step, batch.steps) for batch in batches]
    epoch = [("collect", step, 3) for step in range(3)] + [("reuse", step, 6) for step in range(6)]
    assert got == [(number, *each) for number in range(2) for each in epoch]
    assert [ids(batch) for batch in batches[:3]] == [["t0", "t1"], ["t2", "t3"], ["t4"]]


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(0, 9))
def test_every_pass_has_every_task_once(epochs: int, passes: int, collect: int, reuse: int, seed: int) -> None:
    settings = EpochSettings(epochs, passes, collect, reuse)
    batches = list(EpochLoader(TASKS, settings, seed))
    everything = sorted(task.id for task in TASKS)
    for epoch in range(epochs):
        of_epoch = [batch for batch in batches if batch.epoch == epoch]
        assert sorted(stage_ids(of_epoch, "collect")) == everything
        reused = stage_ids(of_epoch, "reuse")
        assert all(sorted(reused[at : at + 5]) == everything for at in range(0, len(reused), 5))
    steps = sum(batch.stage == "reuse" for batch in batches)
    assert settings.optimiser_steps(len(TASKS)) == steps


def test_passes_and_seeds_have_orders_of_their_own() -> None:
    settings = EpochSettings(epochs=1, passes=2, collect_batch=5, reuse_batch=5)
    first, second = (ids(batch) for batch in EpochLoader(TASKS, settings, 0) if batch.stage == "reuse")
    assert first != second
    assert [ids(batch) for batch in EpochLoader(TASKS, settings, 1)][1:] != [first, second]


@pytest.mark.parametrize("cut", range(1, 10))
def test_it_goes_on_where_it_was_saved(cut: int) -> None:
    settings = EpochSettings(epochs=2, passes=2, collect_batch=3, reuse_batch=4)
    whole = list(EpochLoader(TASKS, settings, 7))
    loader, resumed = EpochLoader(TASKS, settings, 7), EpochLoader(TASKS, settings, 7)
    for _, _batch in zip(range(cut), loader, strict=False):
        state = loader.state_dict()
    resumed.load_state_dict(state)
    assert list(resumed) == whole[cut:]


def test_only_the_first_tasks() -> None:
    batches = list(EpochLoader(TASKS, EpochSettings(1, 1, 8, 8, tasks=2), 0))
    assert [sorted(ids(batch)) for batch in batches] == [["t0", "t1"]] * 2
    assert len(EpochLoader(TASKS, EpochSettings(1, 1, 8, 8, tasks=2), 0)) == 2


@pytest.mark.parametrize("name", ["epochs", "passes", "collect_batch", "reuse_batch"])
def test_a_plan_without_length_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"data.epochs.{name} is 0; give 1 or more"):
        EpochSettings(**{name: 0})
