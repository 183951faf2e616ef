"""The verdict on a solution, taken outside the process that the solution runs in.

What holds, however the code is written: it harms nothing, and silence is a failure. A process that ends early by
whatever way sends no report; a report counts only under a seal that was drawn for this run; every test that the source
defines must be in it and pass; a test added to fail must have failed. What the judge checks beyond that: before and
after the tests, that no part of unittest, pytest or the built-ins was replaced and that nothing traces the tests; of
compared values, that they do not equal everything; and all the time, that the solution asks Python for no frames, no
lists of all objects and no code of the tests, which are in no file either. So a right solution that looks at frames
fails (ours).

What cannot hold in one process: tests call the solution as Python objects, so the two share an interpreter, and code
written against this very judge could reach its memory through ctypes, be handed a frame by a signal, or replace a
method and put it back before the check. What language models write to please a test is caught by the above.
"""

from __future__ import annotations

import json
import secrets
import signal
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.sandbox.expectation import Expectation
from data.sandbox.limits import Limits
from data.sandbox.sandbox import SLOTS, SandboxResult, run_python

_SCRIPTS = tuple(Path(__file__).with_name(name) for name in ("judge.py", "machinery.py", "probe.py", "prying.py"))


@dataclass(frozen=True)
class TestOutcome:
    """Whether a solution passed.

    Attributes:
        passed: every test ran and passed.
        ran: tests reported, the parametrised ones once each.
        reason: why not, in one line; empty if passed.
        means: the isolation it ran under; empty if nothing was run.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    passed: bool
    ran: int
    reason: str
    means: str


def draw_seal() -> str:
    """Fresh for every run."""
    return secrets.token_hex(16)


def judge(
    harness: str,
    solution: str,
    expectation: Expectation,
    seal: str,
    limits: Limits,
    slots: AbstractContextManager[Any] = SLOTS,
) -> TestOutcome:
    """Run the judge in a sandbox and hold its report to ``expectation``."""
    if not expectation.names:
        return TestOutcome(False, 0, "the test file defines no test", "")
    request = {
        "harness": harness,
        "seal": seal,
        "solution": solution,
        "tests": expectation.tests,
        "classes": sorted({name.partition(".")[0] for name in (*expectation.names, expectation.canary)}),
        "relied_on": expectation.relied_on,
        "patches_builtins": expectation.patches_builtins,
    }
    files = {script.name: script.read_bytes() for script in _SCRIPTS}
    files["solution.py"] = solution.encode(errors="surrogatepass")
    result = run_python(files, ["judge.py"], limits, json.dumps(request).encode(), slots=slots)
    report = _sealed_report(result, seal)
    if report is None:
        return TestOutcome(False, 0, _printable(f"no verdict: {_ending(result)}"), result.means)
    return _hold(report, expectation, result)


def _sealed_report(result: SandboxResult, seal: str) -> dict[str, Any] | None:
    text = result.stdout.decode(errors="replace")
    if not result.ok or not (text.startswith(seal) and text.endswith(seal) and text.count(seal) == 2):
        return None
    report: dict[str, Any] = json.loads(text[len(seal) : -len(seal)])
    return report


def _hold(report: dict[str, Any], expectation: Expectation, result: SandboxResult) -> TestOutcome:
    outcomes: dict[str, list[str]] = report["outcomes"]
    canary = outcomes.pop(expectation.canary, None)
    reason = ""
    if report["tampered"]:
        reason = f"the code changed what judges it: {report['tampered']}"
    elif "" in report["details"]:
        reason = f"the tests could not be loaded: {report['details']['']}"
    elif canary != ["failed"]:
        reason = "a test made to fail did not: the code changed what judges it, or ended the run"
    elif missing := sorted(expectation.names - outcomes.keys()):
        reason = f"did not run: {missing[0]}"
    else:
        good = {"passed", "skipped"} if expectation.may_skip else {"passed"}
        bad = [name for name, results in outcomes.items() if not good.issuperset(results)]
        reason = f"failed: {bad[0]}: {report['details'].get(bad[0], 'it skipped itself')}" if bad else ""
        if not reason and not any("passed" in results for results in outcomes.values()):
            reason = "every test was skipped"
    return TestOutcome(not reason, sum(map(len, outcomes.values())), _printable(reason), result.means)


def _ending(result: SandboxResult) -> str:
    if result.timed_out or result.signal == signal.SIGXCPU:
        return "out of time"
    if result.truncated or result.exceeded:
        return f"used more {result.exceeded or 'output'} than it may"
    how = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
    return f"ended with {how}: {_last_line(result.stderr)}"


def _printable(reason: str) -> str:
    """The code's own words may hold anything, and reasons are logged."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in reason)


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
