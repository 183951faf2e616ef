"""KodCode's rule: the item's pytest file passes against the full solution file, ``solution.py``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from data.sandbox.expectation import expect_pytest
from data.sandbox.limits import Limits
from data.sandbox.sandbox import SLOTS
from data.sandbox.verdict import TestOutcome, draw_seal, judge


def run_pytest(
    solution: str,
    tests: str,
    limits: Limits = Limits(),
    slots: AbstractContextManager[Any] = SLOTS,
) -> TestOutcome:
    """Whether ``solution`` passes ``tests``, which import from ``solution``; see :mod:`data.sandbox.verdict`.

    Raises:
        SyntaxError: ``tests`` is not Python; a solution that is not only fails.
        SandboxUnavailableError: this machine cannot keep the code in.
    """
    seal = draw_seal()
    return judge("pytest", solution, expect_pytest(tests, seal), seal, limits, slots)
