"""KodCode and BigCodeBench in the real sandbox: reference solutions pass, broken ones fail."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.bigcodebench import BigCodeBench
from data.kodcode import KodCode
from data.task import Task

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "kodcode" / "algorithm_verified.json"


class _Hollow(ast.NodeTransformer):
    """Every function returns None at once."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [ast.Return(ast.Constant(None))]
        return node


def hollow(code: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_Hollow().visit(ast.parse(code))))


def all_tasks(benchmark: KodCode) -> list[Task]:
    return [
        task
        for split in ("train", "validation", "test")
        if benchmark.splits.records(split)
        for task in benchmark.tasks(split)
    ]


def answer(code: str) -> str:
    return f"This solves it:\n\n```python\n{code}\n```\n"


def assert_reference_passes_and_hollow_fails(benchmark: KodCode | BigCodeBench, task: Task) -> None:
    assert benchmark.score(task, answer(task.answers[0])) == {"passed": 1.0}
    assert benchmark.score(task, answer(hollow(task.answers[0]))) == {"passed": 0.0}


KODCODE, BIGCODEBENCH = KodCode("sample"), BigCodeBench("complete", "sample")


@pytest.mark.parametrize("task", all_tasks(KODCODE), ids=lambda task: task.id)
def test_kodcode_sample(task: Task) -> None:
    assert_reference_passes_and_hollow_fails(KODCODE, task)


@pytest.mark.parametrize("task", BIGCODEBENCH.tasks("test"), ids=lambda task: task.id)
def test_bigcodebench_sample(task: Task) -> None:
    assert_reference_passes_and_hollow_fails(BIGCODEBENCH, task)


@pytest.mark.parametrize("place", range(15))
@pytest.mark.skipif(not SHARED.is_file(), reason="real items are not part of the project")
def test_real_kodcode_items(place: int) -> None:
    benchmark = KodCode(path=SHARED)
    assert_reference_passes_and_hollow_fails(benchmark, all_tasks(benchmark)[place])


@pytest.mark.parametrize(
    "response",
    [
        "",
        "I cannot.",
        "```python\ndef (\n```",
        "```python\nimport sys; sys.exit(0)\n```",
        "```python\nall = lambda x: True\n```",
    ],
)
def test_what_is_no_solution_fails(response: str) -> None:
    (task, *_) = KODCODE.tasks("test")
    assert KODCODE.score(task, response) == {"passed": 0.0}


PIECES = st.sampled_from(
    [
        *("```python\n", "```\n", "~~~", "<answer>", "</answer>", "\0", "\ud800", "prose ", "(", "\n"),
        *("def answer():\n", "    return 1\n", "import os\n", "raise SystemExit(0)\n", "assert False\n", "é = 'ß'\n"),
    ]
)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([KODCODE, BIGCODEBENCH]), st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=40))
def test_any_response_is_a_failure_and_no_exception(benchmark: KodCode | BigCodeBench, response: str) -> None:
    assert benchmark.score(benchmark.tasks("test")[0], response) == {"passed": 0.0}


def test_a_body_that_goes_on_from_the_prompt_passes() -> None:
    task = BIGCODEBENCH.tasks("test")[2]
    body = task.answers[0].removeprefix(str(task.metadata["code_prompt"]))
    assert BIGCODEBENCH.score(task, body) == {"passed": 1.0}
