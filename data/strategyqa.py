"""StrategyQA (Geva et al., 2021): yes-or-no questions whose steps of reasoning are implicit.

All 2,290 labelled questions, in a seeded random order (ours), are cut 80/20: 458 are the test, the paper's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from data.records import Place, Record
from data.scoring.yes_no import score_yes_no
from data.source import Hub, SourceName
from data.splits import Part, Published, Splits, share
from data.task import Score, Task

_FILES = ("train+test", "strategyqa_train", "dev")

PUBLISHED = Published(
    "strategyqa",
    Hub("ChilleD/StrategyQA"),
    layout={
        "train": Part("train+test", share(0.0, 0.8), _FILES),
        "test": Part("train+test", share(0.8, 1.0), _FILES),
    },
    sample="strategyqa.jsonl",
    sizes={"train": 1832, "test": 458},
)


class StrategyQA:
    """Splits ``train`` and ``test``. Implements :class:`data.task.Benchmark`; reads nothing yet.

    Args:
        source: ``published``, or ``sample`` for the bundled questions.
        path: a local copy: a file, or a directory with ``train`` and ``test``, ``strategyqa_train`` or ``dev``; by
            default the hub is asked.
    """

    name = "strategyqa"
    metrics = ("exact_match", "lax_match")

    def __init__(self, source: SourceName = "published", path: str | Path | None = None) -> None:
        self.splits = Splits(PUBLISHED, strategyqa_task, source, path)

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``split``; raises as :class:`data.splits.Splits` does."""
        return self.splits.tasks(split)

    def score(self, task: Task, answer: str) -> Score:
        """``exact_match`` and ``lax_match`` of the yes or no in ``answer``."""
        return score_yes_no(answer, task.answers[0] == "yes")


def strategyqa_task(record: Record, place: Place) -> Task:
    """One row: ``question``, a boolean ``answer``, and ``qid`` (or ``id``)."""
    return Task(
        id=place.text(record, "qid" if "qid" in record else "id"),
        question=place.text(record, "question"),
        answers=("yes" if place.boolean(record, "answer") else "no",),
        benchmark=StrategyQA.name,
    )
