"""Training over several benchmarks at once: shares, order, resuming, and each task scored by its own benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.datamodule import StagedLoader, StageSettings, TaskDataModule
from data.mixture import BenchmarkMixture, Domain, interleave
from data.short_answer import ShortAnswerQA
from data.strategyqa import StrategyQA
from data.task import Score, Task


class Counted:
    """``count`` training tasks and two test tasks; right is the name."""

    metrics = ("right", "length")

    def __init__(self, name: str, count: int, slow: bool = False) -> None:
        self.name = name
        self.count = count
        self.slow_scoring = slow

    def tasks(self, split: str) -> Sequence[Task]:
        count = {"train": self.count, "test": 2}[split]
        return [Task(str(place), f"{self.name} {split} {place}?", (self.name,), self.name) for place in range(count)]

    def score(self, task: Task, answer: str) -> Score:
        return {"right": float(answer == self.name), "length": 0.5}


def mixture(**weights: float) -> BenchmarkMixture:
    counts = {"a": 6, "b": 2, "c": 4}
    return BenchmarkMixture([Domain(Counted(name, counts[name]), weight) for name, weight in weights.items()])


def tiny(name: str, count: int) -> list[Task]:
    return [Task(f"{name}{place}", "?", ("x",), name) for place in range(count)]


def test_a_pass_is_as_long_as_all_domains_and_shares_follow_the_weights() -> None:
    train = mixture(a=1, b=1).tasks("train")
    assert [task.id for task in train] == ["a/0", "b/0", "a/1", "b/1", "a/2", "b/0#2", "a/3", "b/1#2"]
    assert Counter(task.benchmark for task in mixture(a=3, b=1).tasks("train")) == {"a": 6, "b": 2}


def test_held_out_tasks_come_once_each() -> None:
    assert [task.id for task in mixture(a=5, b=1).tasks("test")] == ["a/0", "a/1", "b/0", "b/1"]


class Asking(Counted):
    """Asks these questions in training, and nothing that could be read for a test."""

    def __init__(self, name: str, *questions: str) -> None:
        super().__init__(name, len(questions))
        self.questions = questions

    def tasks(self, split: str) -> Sequence[Task]:
        if split == "test":
            raise FileNotFoundError
        return [Task(str(place), asked, ("x",), self.name) for place, asked in enumerate(self.questions)]


def test_what_another_domain_tests_is_not_trained_on() -> None:
    mixed = BenchmarkMixture([Domain(Counted("a", 2)), Domain(Asking("b", "A  test 1", "own?"))])
    with pytest.warns(UserWarning, match=r"a\+b: 1 training items ask a test question .* left out \(b/0\)"):
        train = mixed.tasks("train")
    assert sorted(task.id for task in train) == ["a/0", "a/1", "b/1"]
    nothing_left = BenchmarkMixture([Domain(Counted("a", 2)), Domain(Asking("b", "a test 0?"))])
    with (
        pytest.warns(UserWarning, match="1 training items"),
        pytest.raises(ValueError, match="every training item of b is a test question"),
    ):
        nothing_left.tasks("train")


def test_a_task_is_scored_by_its_own_benchmark() -> None:
    mixed = mixture(a=1, b=1)
    for task in mixed.tasks("train"):
        assert mixed.score(task, task.benchmark) == {"right": 1.0, "length": 0.5, "accuracy": 1.0}
        assert mixed.score(task, "c")["accuracy"] == 0.0


def test_scoring_is_slow_when_any_of_it_is() -> None:
    assert not mixture(a=1, b=1).slow_scoring
    assert BenchmarkMixture([Domain(Counted("a", 1)), Domain(Counted("b", 1, slow=True))]).slow_scoring


def test_real_benchmarks_share_a_reward() -> None:
    mixed = BenchmarkMixture([Domain(ShortAnswerQA()), Domain(StrategyQA("sample"), 2.0)])
    assert mixed.name == "sample+strategyqa"
    for task in mixed.tasks("test"):
        assert mixed.score(task, task.answers[0])["accuracy"] == 1.0


def test_the_loader_mixes_domains_in_a_batch_and_resumes() -> None:
    data = TaskDataModule(
        mixture(a=1, c=1), collect=StageSettings(5), sft=StageSettings(steps=0), lmpo=StageSettings(4)
    )

    def loader() -> StagedLoader:
        made = data.train_dataloader()
        assert isinstance(made, StagedLoader)
        return made

    whole = list(loader())
    assert any(len({task.benchmark for task in batch.tasks}) == 2 for batch in whole)
    begun, resumed = loader(), loader()
    head = [batch for batch, _ in zip(begun, range(2), strict=False)]
    resumed.load_state_dict({"position": len(head)})
    assert head + list(resumed) == whole


def test_ids_are_distinct_although_the_benchmarks_number_alike() -> None:
    train = mixture(a=1, b=5, c=2).tasks("train")
    assert len({task.id for task in train}) == len(train)


def test_wrong_mixtures() -> None:
    with pytest.raises(ValueError, match="different names, at least one; got none"):
        BenchmarkMixture([])
    with pytest.raises(ValueError, match="different names, at least one; got a, a"):
        BenchmarkMixture([Domain(Counted("a", 1)), Domain(Counted("a", 2))])
    with pytest.raises(ValueError, match=r"weight of a is 0; it must be above 0"):
        Domain(Counted("a", 1), 0)
    with pytest.raises(KeyError):
        mixture(a=1).tasks("dev")


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 12), min_size=1),
    st.lists(st.floats(0.1, 10), min_size=3, max_size=3),
)
def test_every_stretch_from_the_start_has_its_shares(counts: dict[str, int], weights: list[float]) -> None:
    named = dict(zip("abc", weights, strict=True))
    mixed = interleave({name: tiny(name, count) for name, count in counts.items()}, named)
    total = sum(named[name] for name in counts)
    assert len(mixed) == sum(counts.values())
    assert len({task.id for task in mixed}) == len(mixed)
    for length in range(1, len(mixed) + 1):
        had = Counter(task.benchmark for task in mixed[:length])
        assert all(abs(had[name] - length * named[name] / total) <= len(counts) for name in counts)
