"""Every task once an epoch, in an order that neither the cut into batches nor a restart changes."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.datamodule import TaskDataModule
from data.stream import StreamBatch, StreamLoader, StreamSettings
from data.task import Task
from tests.lightning_modules.parts import TinyBenchmark


def tasks(count: int) -> list[Task]:
    return [Task(f"t{n}", f"question {n}", ("a",), "tiny") for n in range(count)]


def ids(batches: list[StreamBatch]) -> list[str]:
    return [task.id for batch in batches for task in batch.tasks]


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 3), st.integers(0, 50))
def test_in_flight_only_cuts_the_sequence(count: int, in_flight: int, epochs: int, seed: int) -> None:
    one = list(StreamLoader(tasks(count), StreamSettings(epochs=epochs), seed))
    loader = StreamLoader(tasks(count), StreamSettings(epochs=epochs, tasks_in_flight=in_flight), seed)
    many = list(loader)
    assert ids(many) == ids(one)
    assert [batch.step for batch in many] == list(range(len(loader)))
    assert {batch.steps for batch in many} == {len(loader)}
    assert [batch.first for batch in many] == [len(ids(many[:n])) for n in range(len(many))]
    for epoch in range(epochs):
        assert sorted(ids([batch for batch in many if batch.epoch == epoch])) == sorted(t.id for t in tasks(count))


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4), st.data())
def test_a_restart_neither_loses_nor_repeats(count: int, before: int, after: int, data: st.DataObject) -> None:
    whole = ids(list(StreamLoader(tasks(count), StreamSettings(epochs=2), 3)))
    loader = StreamLoader(tasks(count), StreamSettings(epochs=2, tasks_in_flight=before), 3)
    running = iter(loader)
    seen = [next(running) for _ in range(data.draw(st.integers(0, len(loader))))]
    resumed = StreamLoader(tasks(count), StreamSettings(epochs=2, tasks_in_flight=after), 3)
    resumed.load_state_dict(loader.state_dict())
    assert ids(seen) + ids(list(resumed)) == whole


def test_the_order_is_shuffled_by_epoch_and_seed_or_left_alone() -> None:
    plain = ids(list(StreamLoader(tasks(20), StreamSettings(shuffle=False, tasks=12), 0)))
    assert plain == [f"t{n}" for n in range(12)]
    two = ids(list(StreamLoader(tasks(20), StreamSettings(epochs=2), 0)))
    assert two[:20] != two[20:]
    assert ids(list(StreamLoader(tasks(20), StreamSettings(), 1))) != two[:20]


def test_the_data_module_gives_the_stream_instead_of_the_stages() -> None:
    data = TaskDataModule(TinyBenchmark(), stream=StreamSettings(tasks=3))
    assert len(cast(StreamLoader, data.train_dataloader())) == 3


def test_what_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="tasks_in_flight 0"):
        StreamSettings(tasks_in_flight=0)
    with pytest.raises(ValueError, match="split 'train' has no tasks"):
        StreamLoader([], StreamSettings(), 0)
