"""The hostile suite: every program is contained, for the reason that it was written for, and the canaries are real."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator

import pytest

from eval.bench.hostile import Attempt, Canaries, Program, attempt, attempt_all, canaries, load_programs
from eval.bench.sandbox import median_overhead

PROGRAMS = load_programs()


@pytest.fixture(scope="module")
def host() -> Iterator[Canaries]:
    with canaries() as found:
        yield found


@pytest.fixture(scope="module")
def attempts(host: Canaries) -> dict[str, Attempt]:
    return {tried.program.name: tried for tried in attempt_all(PROGRAMS, host)}


def test_there_are_enough_of_both_kinds() -> None:
    assert len(PROGRAMS) >= 40
    assert {program.harness for program in PROGRAMS} == {"pytest", "unittest"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_hostile_program_is_contained(program: Program, attempts: dict[str, Attempt]) -> None:
    tried = attempts[program.name]
    assert tried.contained, (tried.outcome, tried.harm)
    # On a busy machine any of them may run out of time before its attack.
    assert re.search(f"{program.because}|out of time", tried.outcome.reason), tried.outcome.reason


def test_nothing_is_left_running(host: Canaries, attempts: dict[str, Attempt]) -> None:
    assert host.left_running() == set()
    assert host.harm() == ""


@pytest.mark.parametrize("harness", ["pytest", "unittest"])
def test_a_right_answer_passes_and_so_would_be_noticed(harness: str, host: Canaries) -> None:
    tried = attempt(Program("honest", "def answer():\n    return 42", "", harness), host)
    assert tried.outcome.passed
    assert not tried.contained


def test_the_canaries_notice_harm() -> None:
    with canaries() as host:
        assert host.harm() == ""
        (host.folder / "late").touch()
        assert host.harm() == "the canary folder changed"
        (host.folder / "late").unlink()
        socket.create_connection(host.listeners[0].getsockname()).close()
        assert host.harm() == "a canary listener was reached"
        host.process.kill()
        host.process.wait()
        assert host.harm() == "the canary process ended"
        host.file.write_text("harmed")
        assert host.harm() == "the canary file changed"


def test_an_error_among_the_canaries_is_not_held_up_by_them() -> None:
    with pytest.raises(ValueError, match="oh"), canaries() as host:
        raise ValueError("oh")
    assert host.process.poll() is not None
    assert "MAS_SANDBOX_CANARY" not in os.environ


def test_the_overhead_is_a_time() -> None:
    assert 0 < median_overhead(1) < 30
