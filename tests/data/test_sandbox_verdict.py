"""What a test file must report, and the verdict on right, wrong and evasive solutions."""

from __future__ import annotations

import json
import unittest
from pathlib import Path

import pytest

from data.sandbox import machinery, probe
from data.sandbox.expectation import expect_pytest, expect_unittest, import_solution
from data.sandbox.limits import Limits
from data.sandbox.pytest_harness import run_pytest
from data.sandbox.unittest_harness import run_unittest

KODCODE = Path(__file__).parents[3] / "shared" / "data" / "kodcode" / "algorithm_verified.json"
SEAL = "0123456789abcdef" * 2
LIMITS = Limits(wall_s=60.0)
SQUARE_TESTS = """
import pytest
from solution import square

@pytest.mark.parametrize("x", [1, 2, 3])
def test_values(x):
    assert square(x) == x * x

class TestMore:
    def test_negative(self):
        assert square(-2) == 4

def test_type():
    with pytest.raises(TypeError):
        square("a")
"""
CASES = """
import unittest
class TestCases(unittest.TestCase):
    def setUp(self):
        self.two = 2
    def test_value(self):
        self.assertEqual(task_func(self.two), 4)
    def test_error(self):
        self.assertRaises(TypeError, task_func, "a")
"""


def test_the_tests_of_a_file_are_known_before_it_runs() -> None:
    expected = expect_pytest(SQUARE_TESTS, SEAL)
    assert expected.names == {"test_values", "TestMore::test_negative", "test_type"}
    assert expected.canary == "test_01234567"
    assert "pytest:raises" in expected.relied_on
    assert "solution:square" not in expected.relied_on
    assert expect_unittest(CASES, SEAL).names == {"TestCases.test_value", "TestCases.test_error"}


def test_only_what_pytest_collects_is_expected() -> None:
    source = (
        "class TestA:\n  def __init__(self): ...\n  def test_x(self): ...\ndef other(): ...\nasync def test_y(): ..."
    )
    assert expect_pytest(source, SEAL).names == {"test_y"}
    assert expect_unittest("class Other:\n    def test_x(self): ...", SEAL).names == set()


def test_compared_values_are_probed_and_nothing_else() -> None:
    source = """'''Doc.'''
from __future__ import annotations
from solution import f
def test_a():
    x = f() == 1
    assert x
    assert f(1) == [2]
"""
    lines = expect_pytest(source, SEAL).tests.splitlines()
    assert lines[1:3] == ["from __future__ import annotations", "from _probe import probed as _probed"]
    assert "    x = f() == 1" in lines
    assert "    assert x" in lines
    assert "    assert _probed(f(1)) == _probed([2])" in lines
    assert "self.assertEqual(_probed(task_func(self.two)), 4)" in expect_unittest(CASES, SEAL).tests


def test_names_that_a_test_file_takes_for_granted_are_imported() -> None:
    bare = "import math\ndef test_f():\n    assert [f(i) for i in range(3)] == [math.pi, C, D.x]"
    assert import_solution(bare).splitlines()[0] == "from solution import C, D, f"
    own = "def f(x) -> Missing:\n    return x\ndef one():\n    return 1\ndef test_f_works():\n    assert f(1) == one()"
    assert import_solution(own).splitlines()[0] == "from solution import f"
    assert "def one" in import_solution(own)
    assert "Missing" not in import_solution(own)
    assert import_solution(SQUARE_TESTS) == SQUARE_TESTS


def test_tests_that_are_not_python_are_an_error_of_the_data() -> None:
    with pytest.raises(SyntaxError):
        run_pytest("", "def test_(:")


def test_a_file_without_tests_is_a_failure() -> None:
    assert run_pytest("", "x = 1").reason == "the test file defines no test"
    assert not run_unittest("def task_func(): ...", "import unittest").passed


def test_right_and_wrong_by_pytest() -> None:
    right = run_pytest("def square(x):\n    return x ** 2", SQUARE_TESTS, LIMITS)
    assert (right.passed, right.ran, right.reason) == (True, 5, "")
    wrong = run_pytest("def square(x):\n    return abs(x) * x", SQUARE_TESTS, LIMITS)
    assert (wrong.passed, wrong.ran) == (False, 5)
    assert wrong.reason.startswith("failed: TestMore::test_negative: ")
    assert "cannot import name 'square'" in run_pytest("def cube(x): ...", SQUARE_TESTS, LIMITS).reason
    assert run_pytest("def square(x)", SQUARE_TESTS, LIMITS).reason.endswith("SyntaxError: expected ':'")


def test_a_reason_is_one_printable_line() -> None:
    tests = "from solution import f\ndef test_f():\n    f()\n"
    outcome = run_pytest("def f():\n    raise ValueError('a\\x00b\\x1b[2Jc\\ud800')", tests, LIMITS)
    assert not outcome.passed
    assert outcome.reason.isprintable()


def test_right_and_wrong_by_unittest() -> None:
    right = run_unittest("def task_func(x):\n    return x ** 2", CASES, LIMITS)
    assert (right.passed, right.ran, right.reason) == (True, 2, "")
    wrong = run_unittest("def task_func(x):\n    return x + 3 if x == 2 else x ** 2", CASES, LIMITS)
    assert (wrong.passed, wrong.reason) == (False, "failed: TestCases.test_value: AssertionError: 5 != 4")


def test_what_solutions_may_well_do_is_not_taken_for_tampering() -> None:
    code = """
import collections, inspect, traceback, typing, warnings, logging, json, numpy as np, unittest.mock
Pair = collections.namedtuple("Pair", "a b")
class Named(typing.NamedTuple):
    x: int
def arguments(function):
    return list(inspect.signature(function).parameters), function.__code__.co_argcount
def state(generator): return inspect.getgeneratorstate(generator)
def last_words():
    try:
        raise ValueError("said")
    except ValueError:
        return traceback.format_exc().splitlines()[-1]
warnings.filterwarnings("ignore")
logging.basicConfig()
class Point:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return isinstance(other, Point) and self.x == other.x
def point(x): return Point(x)
def array(): print("noise"); return np.arange(3)
"""
    tests = """
import numpy as np
from unittest.mock import patch, ANY
from solution import Point, arguments, array, last_words, point, state
def test_looking():
    def given(a, b): return a
    assert arguments(given) == (["a", "b"], 2)
    assert state(x for x in "ab") == "GEN_CREATED"
    assert last_words() == "ValueError: said"
def test_point():
    assert point(1) == Point(1) and point(1) != Point(2)
    assert [point(1)] == [Point(1)]
def test_array():
    assert (array() == np.array([0, 1, 2])).all()
    assert np.allclose(array(), [0, 1, 2])
def test_patched(tmp_path, capsys):
    with patch("builtins.print") as fake:
        array()
    fake.assert_called_once_with(ANY)
    assert ANY == fake.call_args.args[0]
"""
    assert run_pytest(code, tests, LIMITS).reason == ""


def test_a_skip_counts_only_where_the_test_file_speaks_of_one() -> None:
    tests = "import pytest\nfrom solution import f\ndef test_a():\n    f()\ndef test_b():\n    assert True\n"
    code = "import pytest\ndef f():\n    pytest.skip('no')"
    assert not run_pytest(code, tests, LIMITS).passed
    assert run_pytest("def f(): ...", tests + "@pytest.mark.skip\ndef test_c(): ...\n", LIMITS).passed


def test_the_fingerprint_sees_what_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    before = machinery.fingerprint()
    assert machinery.first_change(before) == ""
    with monkeypatch.context() as patch:
        patch.setattr(unittest.TestCase, "assertTrue", lambda *_: None)
        assert machinery.first_change(before) == "unittest.case.TestCase.assertTrue"
    with monkeypatch.context() as patch:
        patch.setattr("builtins.all", lambda _: True)
        assert machinery.first_change(before) == "builtins.all"
        assert machinery.first_change(before, ("builtins.",)) == ""
    assert machinery.first_change(before) == ""


def test_the_probe_refuses_only_what_equals_everything() -> None:
    class Same:
        def __eq__(self, other: object) -> bool:
            return True

    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError

    for value in (1, "a", [1, (2, {"a": 3})], Odd(), unittest.mock.ANY, float("nan")):
        assert probe.probed(value) is value
    for cheat in (Same(), [Same()], {"a": (1, Same())}):
        with pytest.raises(AssertionError, match="Same equals everything"):
            probe.probed(cheat)


@pytest.mark.skipif(not KODCODE.exists(), reason="needs the real KodCode items")
@pytest.mark.slow
def test_every_reference_solution_passes_and_none_without_it() -> None:
    items = json.loads(KODCODE.read_text())
    assert len(items) == 15
    for item in items:
        outcome = run_pytest(item["response"], item["test_code"], LIMITS)
        assert outcome.passed, (item["instruction"], outcome.reason)
    for item in (items[0], items[7], items[14]):
        assert not run_pytest("", item["test_code"], LIMITS).passed
