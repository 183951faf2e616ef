"""Runs tests against a solution, inside the sandbox; this file is a script there and is never imported.

The order is the defence. Everything that judges is loaded and its fingerprint taken before the first line of the
solution runs; tests, their expectations and the seal come over standard input, which is then closed; the tests are in
no file; and the report leaves over a descriptor that standard output no longer is. The verdict is the parent's: here is
only counted.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import json
import os
import sys
import types
import unittest
from typing import Any

_TESTS = os.path.abspath("test_solution.py")
Outcomes = dict[str, list[str]]
# Of each test, why it failed, in a line; and what of the machinery was found changed.
Results = tuple[Outcomes, dict[str, str], str]


def main() -> None:
    """Read the request, run, report, and end at once: nothing that the solution left to run at exit does."""
    report_to = os.dup(1)
    request = json.loads(sys.stdin.buffer.read())
    _redirect_standard_streams()
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.path.insert(0, os.getcwd())
    write, leave = os.write, os._exit
    report = run(request)
    sys.stdout.flush()
    sys.stderr.flush()
    write(report_to, (request["seal"] + json.dumps(report) + request["seal"]).encode())
    leave(0)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """What each test did, and the first trace of tampering, if any."""
    # They lie beside this script. What the solution could import of them, it could replace; all but the probe go again.
    machinery, prying = importlib.import_module("machinery"), importlib.import_module("prying")
    sys.modules["_probe"] = importlib.import_module("probe")
    run_tests = {"pytest": run_pytest, "unittest": run_unittest}[request["harness"]]
    if request["harness"] == "pytest":
        _load_pytest()
    relied = machinery.resolve(request["relied_on"])
    before = machinery.fingerprint()
    first_change, first_moved, first_rebound = machinery.first_change, machinery.first_moved, machinery.first_rebound
    prying.forbid_prying((__file__, _TESTS), _TESTS)
    for name in ("machinery", "prying", "probe"):
        del sys.modules[name]
    outcomes, details, changed = run_tests(request, lambda: first_change(before) or first_moved(relied), first_rebound)
    allowed = ("builtins.",) if request["patches_builtins"] else ()
    return {"outcomes": outcomes, "details": details, "tampered": changed or first_change(before, allowed)}


def run_pytest(request: dict[str, Any], changed: Any, first_rebound: Any) -> Results:
    """The tests as a module beside ``solution``, which they import; its file is there for pytest to find, and empty."""
    import pytest

    importlib.import_module("solution")
    if found := changed():
        return {}, {}, found
    for name in [name for name in os.environ if name.startswith(("PYTEST", "PYTHON"))]:
        del os.environ[name]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    open(_TESTS, "x", encoding="utf-8").close()

    class Tests(pytest.Module):
        def _getobj(self) -> types.ModuleType:
            if not made:  # it may be asked for again
                module = _module_of_tests(request["tests"], self.config)
                made.append((module, dict(vars(module))))
            return made[0][0]

    made: list[tuple[types.ModuleType, dict[str, object]]] = []
    outcomes: Outcomes = {}
    details: dict[str, str] = {}

    class Collector:
        def pytest_pycollect_makemodule(self, module_path: Any, parent: Any) -> Any:
            return Tests.from_parent(parent, path=module_path)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                details.setdefault("", _last_line(report.longreprtext, "E "))

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.when == "call" or report.outcome != "passed":
                name = report.nodeid.partition("[")[0].removeprefix("test_solution.py::")
                xfailed = getattr(report, "wasxfail", None) is not None
                outcomes.setdefault(name, []).append("skipped" if xfailed else report.outcome)
                if report.failed:
                    details.setdefault(name, _last_line(report.longreprtext, "E "))

    options = ["-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, "--rootdir", ".", "--tb=short"]
    pytest.main([*options, "test_solution.py"], plugins=[Collector()])
    return outcomes, details, first_rebound(*made[0]) if made else ""


def _module_of_tests(tests: str, config: Any) -> types.ModuleType:
    """Their asserts say what they compared, as those of a file that pytest imports."""
    from _pytest.assertion.rewrite import rewrite_asserts

    tree = ast.parse(tests)
    rewrite_asserts(tree, tests.encode(), _TESTS, config)
    module = types.ModuleType("test_solution")
    module.__file__ = _TESTS
    sys.modules["test_solution"] = module
    exec(compile(tree, _TESTS, "exec", dont_inherit=True), module.__dict__)
    return module


def run_unittest(request: dict[str, Any], changed: Any, first_rebound: Any) -> Results:
    """Solution and tests in one module, as BigCodeBench runs them."""
    load, suite_of = unittest.TestLoader().loadTestsFromTestCase, unittest.TestSuite
    result = Recorder()
    module = types.ModuleType("__test__")
    module.__dict__.update({"__builtins__": builtins, "__file__": "__test__.py"})
    sys.modules["__test__"] = module
    exec(compile(request["solution"], "__solution__.py", "exec"), module.__dict__)
    if found := changed():
        return {}, {}, found
    module.__dict__["__builtins__"] = builtins
    exec(compile(request["tests"], _TESTS, "exec"), module.__dict__)
    made = dict(vars(module))
    suite_of([load(made[name]) for name in request["classes"]])(result)
    return result.outcomes, result.details, result.changed or first_rebound(module, made)


class Recorder(unittest.TestResult):
    """Every outcome by ``Class.method``, why it failed, and whether a test's own methods were replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: Outcomes = {}
        self.details: dict[str, str] = {}
        self.changed = ""

    def _note(self, test: unittest.TestCase, outcome: str, err: Any = None) -> None:
        name = ".".join(test.id().split(".")[-2:])
        self.outcomes.setdefault(name, []).append(outcome)
        if err is not None:
            self.details.setdefault(name, _last_line(f"{err[0].__name__}: {err[1]}"))

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed")

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._note(test, "failed", err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._note(test, "failed", err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._note(test, "skipped")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._note(test, "skipped")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "failed")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        if err is not None:
            self._note(test, "failed", err)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        places = (test, *type(test).__mro__[: type(test).__mro__.index(unittest.TestCase)])
        own = [name for place in places for name in vars(place) if name.startswith(("assert", "fail", "run"))]
        replaced = [name for name in own if hasattr(unittest.TestCase, name)]
        self.changed = self.changed or "".join(f"self.{name}" for name in replaced[:1])


def _last_line(text: str, mark: str = "") -> str:
    """Of those that begin with ``mark``, if any does."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]
    return (marked or lines or [""])[0 if mark else -1][:200]


def _load_pytest() -> None:
    """All of it now: what is imported later, the solution could have replaced."""
    import pytest  # noqa: F401
    from _pytest.config import default_plugins

    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")


def _redirect_standard_streams() -> None:
    """What the solution prints goes to standard error; it reads nothing."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    gc.collect()


if __name__ == "__main__":
    main()
