"""Runs tests against a solution, inside the sandbox; this file is a script there and is never imported.

The order is the defence. Everything that judges is loaded and its fingerprint taken before the first line of the
solution runs; tests, their expectations and the seal come over standard input, which is then closed, and the report
leaves over a descriptor that standard output no longer is. The verdict is the parent's: here is only counted.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import json
import os
import sys
import threading
import types
import unittest
import unittest.mock
from collections.abc import Iterable, Iterator
from typing import Any

_MACHINERY = ("unittest", "json", "pytest", "_pytest", "pluggy", "importlib", "builtins")
_PLAIN_TYPES = (type(unittest.mock.ANY),)
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
    _serve_probe()
    run_tests = {"pytest": run_pytest, "unittest": run_unittest}[request["harness"]]
    prepare = _load_pytest if request["harness"] == "pytest" else _nothing
    prepare()
    relied = _resolve(request["relied_on"])
    before = fingerprint()
    outcomes, details, changed = run_tests(request, lambda: first_change(before) or _first_moved(relied))
    allowed = ("builtins.",) if request["patches_builtins"] else ()
    return {"outcomes": outcomes, "details": details, "tampered": changed or first_change(before, allowed)}


def run_pytest(request: dict[str, Any], changed: Any) -> Results:
    """The tests as a file beside ``solution.py``, which they import."""
    import pytest

    importlib.import_module("solution")
    if found := changed():
        return {}, {}, found
    for name in [name for name in os.environ if name.startswith(("PYTEST", "PYTHON"))]:
        del os.environ[name]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with open("test_solution.py", "x", encoding="utf-8") as file:
        file.write(request["tests"])
    outcomes: Outcomes = {}
    details: dict[str, str] = {}

    class Collector:
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
    return outcomes, details, ""


def run_unittest(request: dict[str, Any], changed: Any) -> Results:
    """Solution and tests in one module, as BigCodeBench runs them."""
    load, suite_of = unittest.TestLoader().loadTestsFromTestCase, unittest.TestSuite
    result = Recorder()
    module = types.ModuleType("__test__")
    module.__dict__.update({"__builtins__": builtins, "__file__": "__test__.py"})
    sys.modules["__test__"] = module
    exec(compile(request["solution"], "__test__.py", "exec"), module.__dict__)
    if found := changed():
        return {}, {}, found
    module.__dict__["__builtins__"] = builtins
    exec(compile(request["tests"], "__test__.py", "exec"), module.__dict__)
    cases = [getattr(module, name) for name in request["classes"]]
    suite_of([load(case) for case in cases])(result)
    return result.outcomes, result.details, result.changed


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
        own = [
            name
            for name in vars(test)
            if name.startswith(("assert", "fail", "run")) and hasattr(unittest.TestCase, name)
        ]
        self.changed = self.changed or "".join(f"self.{name}" for name in own[:1])


def probed(value: Any) -> Any:
    """``value``, unless it claims to equal an object that nothing can equal."""
    for part in _parts(value):
        if isinstance(type(part).__eq__, types.FunctionType) and not isinstance(part, _PLAIN_TYPES):
            claims = False
            with contextlib.suppress(Exception):
                claims = bool(part == object())
            if claims:
                raise AssertionError(f"an instance of {type(part).__name__} equals everything")
    return value


def _parts(value: Any, depth: int = 3) -> Iterator[Any]:
    yield value
    if depth and type(value) in (list, tuple, dict):
        for part in value.values() if type(value) is dict else value:
            yield from _parts(part, depth - 1)


def _last_line(text: str, mark: str = "") -> str:
    """Of those that begin with ``mark``, if any does."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]
    return (marked or lines or [""])[0 if mark else -1][:200]


def _serve_probe() -> None:
    module = types.ModuleType("_probe")
    module.probed = probed  # type: ignore[attr-defined]
    sys.modules["_probe"] = module


def fingerprint() -> dict[str, tuple[object, ...]]:
    """What every function, class and module of the machinery is; tampering with one changes it."""
    found: dict[str, tuple[object, ...]] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _MACHINERY:
            found[name] = (module,)
            for key, value in list(vars(module).items()):
                if callable(value) and not (module is builtins and key == "_"):
                    found[f"{name}.{key}"] = _identity(value)
                if isinstance(value, type):
                    found.update(_members(f"{name}.{key}", value))
    found["tracing"] = (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile(), _monitors())
    found["import hooks"] = (*sys.meta_path, *sys.path_hooks)
    return found


def first_change(before: dict[str, tuple[object, ...]], allowed: tuple[str, ...] = ()) -> str:
    """The name of something that is no longer what it was; empty if all is."""
    now = fingerprint()
    for name, value in before.items():
        then = now.get(name, ())
        same = len(then) == len(value) and all(a is b for a, b in zip(then, value, strict=True))
        if not same and not name.startswith(allowed or "\0"):
            return name
    return ""


def _identity(value: Any) -> tuple[object, ...]:
    if isinstance(value, types.FunctionType):
        return (value, value.__code__, value.__defaults__, value.__kwdefaults__)
    return (value,)


def _members(name: str, owner: type) -> Iterable[tuple[str, tuple[object, ...]]]:
    """A class's functions, and its special methods, of which none may be added."""
    own = dict(vars(owner))
    yield f"{name} bases", owner.__bases__
    yield (
        f"{name} special methods",
        (len([key for key in own if key.startswith("__get") or key == "__call__"]) or None,),
    )
    for key, value in own.items():
        inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        inner = inner.fget if isinstance(inner, property) else inner
        if callable(inner):
            yield f"{name}.{key}", _identity(inner)


def _monitors() -> object:
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(number) for number in range(6)] if monitoring else []
    return next((tool for tool in tools if tool is not None), None)


def _resolve(names: Iterable[str]) -> dict[str, object]:
    """What the tests will use of other modules, such as ``math.isclose``, as it is before the solution runs."""
    found = {}
    for name in names:
        with contextlib.suppress(ImportError, AttributeError):
            found[name] = _lookup(name)
    return {name: value for name, value in found.items() if callable(value)}


def _lookup(dotted: str) -> object:
    module, _, attributes = dotted.partition(":")
    value: object = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        value = getattr(value, attribute)
    return value


def _first_moved(before: dict[str, object]) -> str:
    return next((name for name, value in _resolve(before).items() if value is not before[name]), "")


def _load_pytest() -> None:
    """All of it now: what is imported later, the solution could have replaced."""
    import pytest  # noqa: F401
    from _pytest.config import default_plugins

    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")


def _nothing() -> None:
    """unittest is loaded already."""


def _redirect_standard_streams() -> None:
    """What the solution prints goes to standard error; it reads nothing."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    gc.collect()


if __name__ == "__main__":
    main()
