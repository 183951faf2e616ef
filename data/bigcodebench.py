"""BigCodeBench (Zhuo et al., 2024): 1,140 tasks that call many libraries, each with a unittest class.

LatentMem's held-out programming benchmark: there is a ``test`` split only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from data.records import Place, Record
from data.sandbox.limits import Limits
from data.sandbox.unittest_harness import BIGCODEBENCH_LIMITS, run_unittest
from data.scoring.code import defined_names, extract_code, parse
from data.source import Hub, SourceName
from data.splits import Part, Published, Splits
from data.task import Score, Task

Variant = Literal["complete", "instruct"]

PUBLISHED = Published(
    "bigcodebench",
    Hub("bigcode/bigcodebench"),
    layout={"test": Part("v0.1.4", files=("v0.1.4", "BigCodeBench-v0.1.4", "test", "bigcodebench"))},
    sample="bigcodebench.jsonl",
    sizes={"test": 1140},
)


class BigCodeBench:
    """Split ``test``. Implements :class:`data.task.Benchmark`; reads nothing yet.

    Args:
        variant: ``complete`` asks with the code and docstring to go on from, ``instruct`` with a description.
        source: ``published``, or ``sample`` for the bundled tasks.
        path: a local copy: a file, or a directory with ``v0.1.4``; by default the hub is asked.
        limits: of one run of the tests.
    """

    name = "bigcodebench"
    metrics = ("passed",)
    slow_scoring = True

    def __init__(
        self,
        variant: Variant = "instruct",
        source: SourceName = "published",
        path: str | Path | None = None,
        limits: Limits = BIGCODEBENCH_LIMITS,
    ) -> None:
        if variant not in ("complete", "instruct"):
            raise ValueError(f"unknown variant {variant!r}; there are complete, instruct")
        self.splits = Splits(PUBLISHED, partial(bigcodebench_task, variant=variant), source, path)
        self.limits = limits

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``split``; raises as :class:`data.splits.Splits` does."""
        return self.splits.tasks(split)

    def score(self, task: Task, answer: str) -> Score:
        """``passed``: 1 when the program in ``answer`` passes the task's unittest class, and a test ran; sandboxed."""
        program = bigcodebench_program(
            answer, str(task.metadata["entry_point"]), str(task.metadata["code_prompt"]), str(task.metadata["prefix"])
        )
        return {"passed": float(run_unittest(program, str(task.metadata["tests"]), self.limits).passed)}


def bigcodebench_program(answer: str, entry_point: str, code_prompt: str, prefix: str = "") -> str:
    """The calibrated program of the official harness: the task's imports and signature, then the answer's code.

    An answer that does not define ``entry_point`` is taken as the body that goes on from ``prefix``, if there is one.
    """
    code = extract_code(answer, (entry_point,))
    if prefix and entry_point not in defined_names(code):
        return prefix + code
    return f"{code_prompt}\n    pass\n{code}"


def bigcodebench_task(record: Record, place: Place, variant: Variant = "instruct") -> Task:
    """One row: ``task_id``, both prompts, ``code_prompt``, ``canonical_solution``, ``test`` and ``entry_point``."""
    code_prompt = place.text(record, "code_prompt")
    tests = place.text(record, "test")
    if parse(tests) is None:
        raise place.error("test", "must be a Python file of tests, and is not Python")
    complete, instruct = place.text(record, "complete_prompt"), place.text(record, "instruct_prompt")
    return Task(
        id=place.text(record, "task_id"),
        question=complete if variant == "complete" else instruct,
        answers=(code_prompt + place.text(record, "canonical_solution"),),
        benchmark=BigCodeBench.name,
        domain="code",
        metadata={
            "tests": tests,
            "entry_point": place.text(record, "entry_point"),
            "code_prompt": code_prompt,
            "prefix": complete if variant == "complete" else "",
        },
    )
