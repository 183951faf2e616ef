"""From responses to programs, and KodCode's test files made to test the program that is scored."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.scoring.code import defined_names, extract_code, kodcode_tests

ADD = "def add(a, b):\n    return a + b\n"
USE = "print(add(1, 2))\n"
ZERO = "def add(a, b):\n    return 0\n"
SHELL, OUTPUT, EMPTY = "pip install x\n", "3\n", "def add(): pass\n"
PIECES = st.sampled_from(
    [
        "```",
        "```python\n",
        "~~~\n",
        "\n",
        "def f():\n",
        "    return 1\n",
        "prose ",
        "<answer>",
        "</answer>",
        "\0",
        "(",
        "class A: pass\n",
    ]
)
ANY_RESPONSE = st.text(max_size=60) | st.lists(PIECES, max_size=12).map("".join)


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}```\n"


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (ADD, ADD),
        (fenced(ADD), ADD),
        (fenced(ADD, ""), ADD),
        (fenced(ADD, "Python"), ADD),
        (f"Here it is:\n\n{fenced(ADD)}\nIt adds.", ADD),
        (f"{fenced(ADD)}For example:\n{fenced(USE)}", ADD),
        (f"{fenced(ZERO)}Better:\n{fenced(ADD)}", ADD),
        (f"{fenced(SHELL, 'bash')}{fenced(ADD)}{fenced(OUTPUT, 'text')}", ADD),
        (f"{fenced(USE)}<answer>\n{fenced(ADD)}</answer>{fenced(EMPTY)}", ADD),
        (f"<answer>\n{ADD}</answer>", ADD.strip()),
        (f"```python\n{ADD}", ADD),
        (f"~~~python\n{ADD}~~~", ADD),
        (f"The function is simple.\n{ADD}", ADD),
        (f"Sure!\n{ADD}\nThis function adds its arguments.", f"{ADD}"),
        ("no code at all, sorry.", "no code at all, sorry."),
        ("", ""),
    ],
)
def test_the_program_of_a_response(response: str, code: str) -> None:
    assert extract_code(response, ("add",)).strip() == code.strip()


def test_without_a_name_the_last_valid_block_is_taken() -> None:
    assert extract_code(fenced(ADD) + fenced(USE)) == USE
    assert extract_code(fenced(ADD) + fenced("def (\n")) == ADD
    assert extract_code(fenced("def (\n") + fenced("for\n")) == "for\n"


def test_names_of_the_top_level() -> None:
    source = "import os.path\nimport numpy as np\nfrom a import *\nx, (y, z) = 1, (2, 3)\ndef f():\n    w = 1\nclass C: pass\n"
    assert defined_names(source) == {"os", "np", "x", "y", "z", "f", "C"}
    assert defined_names("def (") == frozenset()


def test_only_names_of_the_reference_come_over_from_the_solution() -> None:
    tests = kodcode_tests("def test_add():\n    assert all([add(1, 2) == 3])\n", ADD)
    first = ast.parse(tests).body[1]
    assert "['add']" in ast.unparse(first)
    assert "all" not in ast.unparse(first)


def test_a_copy_of_the_solution_in_the_tests_is_dropped() -> None:
    tests = kodcode_tests(
        f"import math\n{ADD}\ndef helper():\n    return 1\n\ndef test_add():\n    assert add(1, 2) == 3\n", ADD
    )
    assert [node.name for node in ast.parse(tests).body if isinstance(node, ast.FunctionDef)] == ["helper", "test_add"]


def test_tests_that_the_reference_brings_along_stay_those_of_the_test_file() -> None:
    tests = "def test_add():\n    assert add(1, 2) == 3\n"
    prepared = kodcode_tests(tests, ADD + "\ndef test_add():\n    pass\n")
    assert "add(1, 2) == 3" in prepared
    assert "'test_add'" not in prepared


def test_future_imports_stay_first() -> None:
    prepared = kodcode_tests("from __future__ import annotations\nimport pytest\ndef test_x(): pass\n", ADD)
    assert prepared.startswith("from __future__ import annotations\nimport solution")
    compile(prepared, "test_solution.py", "exec")


@given(ANY_RESPONSE, st.lists(st.sampled_from(["f", "A", "add"]), max_size=2))
def test_any_response_gives_some_text_of_its_own(response: str, names: list[str]) -> None:
    assert extract_code(response, names) in response or extract_code(response, names) == ""


@given(ANY_RESPONSE, ANY_RESPONSE)
def test_any_test_file_is_prepared_or_left_alone(tests: str, reference: str) -> None:
    kodcode_tests(tests, reference)
