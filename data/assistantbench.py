"""AssistantBench (Yoran et al., 2024): realistic tasks on the web, with partial credit.

LTS trains on the 33 tasks of the development set (here ``train``) and evaluates on the 181 of the test set, whose
answers are not published: scoring its tasks says only whether they were answered, the rest is for the leaderboard.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from data.records import Place, Record
from data.scoring.assistantbench import score_assistantbench
from data.scoring.final_answer import final_answer
from data.source import Hub, SourceName
from data.splits import Part, Published, Splits, having
from data.task import Score, Task

PUBLISHED = Published(
    "assistantbench",
    Hub("AssistantBench/AssistantBench", gated=True),
    layout={
        "train": Part("validation", files=("assistant_bench_v1.0_dev", "validation", "dev")),
        "test": Part("test", files=("assistant_bench_v1.0_test", "test")),
    },
    one_file={
        "train": Part("", having("set", "dev", "validation")),
        "test": Part("", having("set", "test")),
    },
    sample="assistantbench.jsonl",
    sizes={"train": 33, "test": 181},
)


class AssistantBench:
    """Splits ``train`` (the development set) and ``test``. Implements :class:`data.task.Benchmark`.

    Args:
        source: ``published``, or ``sample`` for the bundled tasks over ``data/sample/corpus.jsonl``.
        path: a local copy: a directory with ``assistant_bench_v1.0_dev`` and ``…_test``, or one file whose field
            ``set`` says which; by default the hub is asked.
    """

    name = "assistantbench"
    metrics = ("accuracy", "exact_match", "answered")

    def __init__(self, source: SourceName = "published", path: str | Path | None = None) -> None:
        self.splits = Splits(PUBLISHED, assistantbench_task, source, path)

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``split``; raises as :class:`data.splits.Splits` does."""
        return self.splits.tasks(split)

    def score(self, task: Task, answer: str) -> Score:
        """``accuracy`` (graded), ``exact_match`` and ``answered``; only the last without a gold answer."""
        if not task.answers:
            return {"answered": float(bool(final_answer(answer)))}
        return score_assistantbench(answer, task.answers[0])


def assistantbench_task(record: Record, place: Place) -> Task:
    """One row: ``id``, ``task``, ``answer`` (missing or null where hidden), ``difficulty``."""
    answer = place.optional_text(record, "answer")
    return Task(
        id=place.text(record, "id"),
        question=place.text(record, "task"),
        answers=(answer,) if answer else (),
        benchmark=AssistantBench.name,
        domain="web",
        metadata={"difficulty": place.optional_text(record, "difficulty")},
    )
