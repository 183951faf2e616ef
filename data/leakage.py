"""Guards against a test question that was learnt from: between splits, and in a memory's bank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from data.scoring.short_answer import normalise_question
from data.task import Task


def overlap(train: Sequence[Task], held_out: Iterable[Task]) -> list[Task]:
    """The training tasks whose question, normalised, is asked in ``held_out`` too."""
    asked = {normalise_question(task.question) for task in held_out}
    return [task for task in train if normalise_question(task.question) in asked]


def bank_leaks(bank_questions: Iterable[str], tasks: Sequence[Task]) -> list[Task]:
    """The tasks whose very question, normalised, a bank holds: it may know the answer.

    An :class:`memory.experience_bank.ExperienceBank` never hands a question its own entry, so this is a report, not an
    error; for a memory that does not look, these items are not held out.
    """
    known = {normalise_question(question) for question in bank_questions}
    return [task for task in tasks if normalise_question(task.question) in known]


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
