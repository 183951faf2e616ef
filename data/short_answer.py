"""Short-answer questions as a benchmark: the bundled sample, TriviaQA and PopQA, through one class.

TriviaQA is ``rc.nocontext``: its first 5,000 training rows are ours to train on, its validation rows are the test.
PopQA has one list of rows, cut at 6,000 and 7,000 into train, validation and test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from data.records import Place, Record, hub_records, local_records
from data.scoring.short_answer import normalise_answer, normalise_question, score_short_answer
from data.task import Score, Task

Source = Literal["sample", "triviaqa", "popqa"]


@dataclass(frozen=True)
class Rows:
    """Where a split comes from: rows ``first`` to ``last`` (exclusive; ``None`` is the end) of an upstream split."""

    upstream: str
    first: int = 0
    last: int | None = None


_POPQA = {"train": Rows("test", 0, 6000), "validation": Rows("test", 6000, 7000), "test": Rows("test", 7000)}
_LAYOUT: Mapping[Source, Mapping[str, Rows]] = {
    "sample": {"train": Rows("facts_train"), "test": Rows("facts_test")},
    "triviaqa": {"train": Rows("train", 0, 5000), "test": Rows("validation")},
    "popqa": _POPQA,
}
_ONE_FILE: Mapping[Source, Mapping[str, Rows]] = {
    "triviaqa": {"train": Rows("", 0, 5000), "test": Rows("", 5000)},
    "popqa": _POPQA,
}
_HUB: Mapping[Source, tuple[str, str | None]] = {
    "triviaqa": ("mandarjoshi/trivia_qa", "rc.nocontext"),
    "popqa": ("akariasai/PopQA", None),
}
_SAMPLE = Path(__file__).parent / "sample"


class ShortAnswerQA:
    """Questions with a short answer and its aliases. Implements :class:`data.task.Benchmark`; reads nothing yet.

    Args:
        source: ``sample`` (bundled), ``triviaqa`` or ``popqa``.
        path: where ``triviaqa`` or ``popqa`` lie locally: a directory with one ``.jsonl`` or ``.json`` file for each
            upstream split (``train`` and ``validation``; ``test`` for PopQA), or one file, which is cut into the
            splits by row number. ``None`` takes them from the hub through ``datasets``.
    """

    metrics = ("exact_match", "token_f1", "lax_match")

    def __init__(self, source: Source = "sample", path: str | Path | None = None) -> None:
        if source not in _LAYOUT:
            raise ValueError(f"unknown source {source!r}; there are {', '.join(_LAYOUT)}")
        if source == "sample" and path is not None:
            raise ValueError("the sample is bundled and takes no path; for your own file use source='triviaqa'")
        self.name: str = source
        self._source = source
        self._path = _SAMPLE if source == "sample" else None if path is None else Path(path)
        self._loaded: dict[str, tuple[Task, ...]] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``train``, ``validation`` (PopQA only) or ``test``, in the source's order; read once.

        Raises ``ValueError`` for a split that is unknown or empty and for a malformed row (file, line and field),
        ``FileNotFoundError`` for a source that is not there.
        """
        if split not in self._layout:
            raise ValueError(f"{self.name} has no split {split!r}; it has {', '.join(self._layout)}")
        if not self._loaded and self._source == "sample":
            self._loaded = {each: self._read(each) for each in self._layout}
            check_splits(self._loaded)
        if split not in self._loaded:
            self._loaded[split] = self._read(split)
        return self._loaded[split]

    def score(self, task: Task, answer: str) -> Score:
        """``exact_match``, ``token_f1`` and ``lax_match`` of ``answer`` over the task's accepted answers."""
        return score_short_answer(answer, task.answers)

    @property
    def _layout(self) -> Mapping[str, Rows]:
        return (_ONE_FILE if self._path is not None and self._path.is_file() else _LAYOUT)[self._source]

    def _read(self, split: str) -> tuple[Task, ...]:
        rows = self._layout[split]
        records = list(self._records(rows.upstream))
        parse = popqa_task if self._source == "popqa" else triviaqa_task
        tasks = [parse(record, place, self.name) for record, place in records[rows.first : rows.last]]
        if not tasks:
            raise ValueError(
                f"split {split!r} of {self.name} is empty: it starts at row {rows.first} and {self._path or 'the hub'} "
                f"has {len(records)} rows; give a directory with a file for each split"
            )
        return tuple(tasks if self._source == "sample" else _with_unique_ids(tasks))

    def _records(self, upstream: str) -> Sequence[tuple[Record, Place]]:
        if self._path is not None:
            return local_records(self._path, upstream)
        return hub_records(*_HUB[self._source], upstream)


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
    answers = _distinct(place.json_texts(record, "possible_answers"))
    if not answers:
        raise place.error("possible_answers", "is an empty list")
    return Task(
        id=place.text(record, "id"),
        question=place.text(record, "question"),
        answers=answers,
        benchmark=benchmark,
        metadata=_relation(record, "prop"),
    )


def check_splits(splits: Mapping[str, Sequence[Task]]) -> None:
    """Raises ``ValueError`` for an id that occurs twice in a split or a question that is in two of them."""
    seen: dict[str, tuple[str, str]] = {}
    for split, tasks in splits.items():
        ids: set[str] = set()
        for task in tasks:
            if task.id in ids:
                raise ValueError(f"id {task.id!r} occurs twice in split {split!r}")
            ids.add(task.id)
            other, other_id = seen.setdefault(normalise_question(task.question), (split, task.id))
            if other != split:
                found = f"{other_id!r} of {other!r}, {task.id!r} of {split!r}"
                raise ValueError(f"{task.question!r} is in two splits: {found}")


def _distinct(forms: Sequence[str]) -> tuple[str, ...]:
    # Forms that score the same are one; a form that normalises to nothing is still worth showing.
    first: dict[str, str] = {}
    for form in forms:
        first.setdefault(normalise_answer(form) or form, form)
    return tuple(first.values())


def _relation(record: Record, field: str) -> dict[str, object]:
    return {"relation": record[field]} if isinstance(record.get(field), str) else {}


def _with_unique_ids(tasks: Sequence[Task]) -> list[Task]:
    # TriviaQA repeats a question for each of its evidence sets: the rows stay, as upstream counts them.
    times: dict[str, int] = {}
    unique = []
    for task in tasks:
        times[task.id] = count = times.get(task.id, 0) + 1
        unique.append(task if count == 1 else replace(task, id=f"{task.id}#{count}"))
    return unique
