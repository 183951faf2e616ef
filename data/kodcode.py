"""KodCode (Xu et al., 2025), Light-RL-10K: synthetic programming tasks with reference solutions and pytest tests.

Cut 70/10/20 into train, validation and test after a seeded shuffle (ours: the paper publishes no order).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from data.records import Place, Record
from data.sandbox.limits import Limits
from data.sandbox.pytest_harness import run_pytest
from data.scoring.code import defined_names, extract_code, kodcode_tests, parse
from data.source import Hub, SourceName
from data.splits import Part, Published, Splits, share
from data.task import Score, Task

PUBLISHED = Published(
    "kodcode",
    Hub("KodCode/KodCode-Light-RL-10K"),
    layout={
        "train": Part("train", share(0.0, 0.7)),
        "validation": Part("train", share(0.7, 0.8)),
        "test": Part("train", share(0.8, 1.0)),
    },
    sample="kodcode.jsonl",
    sizes={"train": 7000, "validation": 1000, "test": 2000},
)


class KodCode:
    """Splits ``train``, ``validation`` and ``test``. Implements :class:`data.task.Benchmark`; reads nothing yet.

    Args:
        source: ``published``, or ``sample`` for the bundled tasks.
        path: a local copy: a file, or a directory with ``train``; by default the hub is asked.
        limits: of one run of the tests.
    """

    name = "kodcode"
    metrics = ("passed",)
    slow_scoring = True

    def __init__(
        self, source: SourceName = "published", path: str | Path | None = None, limits: Limits = Limits()
    ) -> None:
        self.splits = Splits(PUBLISHED, kodcode_task, source, path)
        self.limits = limits

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``split``; raises as :class:`data.splits.Splits` does."""
        return self.splits.tasks(split)

    def score(self, task: Task, answer: str) -> Score:
        """``passed``: 1 when the program in ``answer`` passes every test of the task, and there was one; sandboxed."""
        reference, tests = task.answers[0], str(task.metadata["tests"])
        program = extract_code(answer, defined_names(reference))
        return {"passed": float(run_pytest(program, kodcode_tests(tests, reference), self.limits).passed)}


def kodcode_task(record: Record, place: Place) -> Task:
    """One row: ``question``, ``solution``, ``test``, ``question_id`` and ``test_info``.

    The generation pipeline's own files say ``instruction``, ``response``, ``test_code`` and ``metadata.prompt_id``.
    """
    pipeline = "test_code" in record
    question, solution, tests = ("instruction", "response", "test_code") if pipeline else _FIELDS
    owner = place.mapping(record, "metadata") if pipeline else record
    code = place.text(record, tests)
    if parse(code) is None:
        raise place.error(tests, "must be a Python file of tests, and is not Python")
    return Task(
        id=place.text(owner, "metadata.prompt_id" if pipeline else "question_id"),
        question=place.text(record, question) + _declarations(record, place),
        answers=(place.text(record, solution),),
        benchmark=KodCode.name,
        domain="code",
        metadata={"tests": code},
    )


_FIELDS = ("question", "solution", "test")


def _declarations(record: Record, place: Place) -> str:
    """The functions that the tests call, for a question that does not declare them: their names are not to guess."""
    question = str(record.get("question"))
    functions = place.objects(record, "test_info")
    declared = [str(each.get("function_declaration") or "").strip() for each in functions]
    missing = [declaration for declaration in declared if declaration and declaration not in question]
    return "\n\nDeclare:\n" + "\n".join(missing) if missing else ""
