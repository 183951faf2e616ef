"""Short-answer questions as a benchmark: TriviaQA, PopQA and a bundled sample of each, through one class.

TriviaQA is ``rc.nocontext``: its first 5,000 training rows are ours to train on, its validation rows are the test.
PopQA has one list of rows, cut at 6,000 and 7,000 into train, validation and test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from data.records import Place, Record
from data.scoring.short_answer import normalise_answer, score_short_answer
from data.source import Hub
from data.splits import Parse, Part, Published, Splits, rows
from data.task import Score, Task

Source = Literal["sample", "popqa_sample", "triviaqa", "popqa"]

_TRIVIAQA = Hub("mandarjoshi/trivia_qa", "rc.nocontext")
_POPQA = Hub("akariasai/PopQA")


def _popqa_layout(train: int, validation: int) -> Mapping[str, Part]:
    """Consecutive rows of the one upstream split, the test being what is left."""
    return {
        "train": Part("test", rows(0, train)),
        "validation": Part("test", rows(train, train + validation)),
        "test": Part("test", rows(train + validation)),
    }


_PUBLISHED: Mapping[Source, Published] = {
    "sample": Published("sample", _TRIVIAQA, {"train": Part("facts_train"), "test": Part("facts_test")}),
    "triviaqa": Published(
        "triviaqa",
        _TRIVIAQA,
        layout={"train": Part("train", rows(0, 5000)), "test": Part("validation")},
        one_file={"train": Part("", rows(0, 5000)), "test": Part("", rows(5000))},
        sizes={"train": 5000},
    ),
    "popqa": Published("popqa", _POPQA, _popqa_layout(6000, 1000), sizes={"train": 6000, "validation": 1000}),
    "popqa_sample": Published("popqa_sample", _POPQA, _popqa_layout(105, 22), sample="popqa.jsonl"),
}
_SAMPLES = ("sample", "popqa_sample")


class ShortAnswerQA:
    """Questions with a short answer and its aliases. Implements :class:`data.task.Benchmark`; reads nothing yet.

    Args:
        source: ``triviaqa`` or ``popqa``; or, bundled, ``sample`` in the form of TriviaQA, ``popqa_sample`` of PopQA.
        path: where ``triviaqa`` or ``popqa`` lie locally: a directory with one file for each upstream split (``train``
            and ``validation``; ``test`` for PopQA), or one file, which is cut into the splits by row number. ``None``
            takes them from the hub through ``datasets``.
    """

    metrics = ("exact_match", "token_f1", "lax_match")

    def __init__(self, source: Source = "sample", path: str | Path | None = None) -> None:
        if source not in _PUBLISHED:
            raise ValueError(f"unknown source {source!r}; there are {', '.join(_PUBLISHED)}")
        if source in _SAMPLES and path is not None:
            raise ValueError("the sample is bundled and takes no path; for a file use source='triviaqa' or 'popqa'")
        self.name: str = source
        parse: Parse = partial(popqa_task if source.startswith("popqa") else triviaqa_task, benchmark=source)
        self.splits = Splits(_PUBLISHED[source], parse, "sample" if source in _SAMPLES else "published", path)

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``train``, ``validation`` (PopQA only) or ``test``; raises as :class:`data.splits.Splits`."""
        return self.splits.tasks(split)

    def score(self, task: Task, answer: str) -> Score:
        """``exact_match``, ``token_f1`` and ``lax_match`` of ``answer`` over the task's accepted answers."""
        return score_short_answer(answer, task.answers)


def triviaqa_task(record: Record, place: Place, benchmark: str) -> Task:
    """One TriviaQA row: ``question``, ``question_id``, ``answer`` {``value``, ``aliases``, ``normalized_aliases``}."""
    answer = place.mapping(record, "answer")
    forms = [place.text(answer, "answer.value"), *place.texts(answer, "answer.aliases")]
    if "normalized_aliases" in answer:
        forms += place.texts(answer, "answer.normalized_aliases")
    return Task(
        id=place.text(record, "question_id"),
        question=place.text(record, "question"),
        answers=_distinct(forms),
        benchmark=benchmark,
        metadata=_relation(record, "relation"),
    )


def popqa_task(record: Record, place: Place, benchmark: str) -> Task:
    """One PopQA row: ``id``, ``question`` and ``possible_answers``, a list that is itself written as JSON text."""
    answers = _distinct(place.texts(record, "possible_answers"))
    if not answers:
        raise place.error("possible_answers", "is an empty list")
    return Task(
        id=place.text(record, "id"),
        question=place.text(record, "question"),
        answers=answers,
        benchmark=benchmark,
        metadata=_relation(record, "prop"),
    )


def _distinct(forms: Sequence[str]) -> tuple[str, ...]:
    # Forms that score the same are one; a form that normalises to nothing is still worth showing.
    first: dict[str, str] = {}
    for form in forms:
        first.setdefault(normalise_answer(form) or form, form)
    return tuple(first.values())


def _relation(record: Record, field: str) -> dict[str, object]:
    return {"relation": record[field]} if isinstance(record.get(field), str) else {}
