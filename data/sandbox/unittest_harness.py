"""BigCodeBench's rule: solution and tests in one module, every test of its class ``TestCases`` passes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from data.sandbox.expectation import expect_unittest
from data.sandbox.limits import MIB, Limits
from data.sandbox.sandbox import SLOTS
from data.sandbox.verdict import TestOutcome, draw_seal, judge

# Its tasks import pandas, scikit-learn and the like, and draw. Ours; the published harness allows 30 GiB.
BIGCODEBENCH_LIMITS = Limits(cpu_s=60, wall_s=120.0, memory_bytes=4096 * MIB, open_files=1024)


def run_unittest(
    code: str,
    tests: str,
    limits: Limits = BIGCODEBENCH_LIMITS,
    slots: AbstractContextManager[Any] = SLOTS,
) -> TestOutcome:
    """Whether ``code`` passes ``tests``; no test at all is a failure, which the published executor passed.

    Raises:
        SyntaxError: ``tests`` is not Python; code that is not only fails.
        SandboxUnavailableError: this machine cannot keep the code in.
    """
    seal = draw_seal()
    return judge("unittest", code, expect_unittest(tests, seal), seal, limits, slots)
