"""The hostile suite: programs that attack the machine or the verdict, and the canaries that would tell of a hole."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from data.sandbox.kernel import adopt_orphans
from data.sandbox.limits import MIB, Limits
from data.sandbox.pytest_harness import run_pytest
from data.sandbox.supervise import running_descendants
from data.sandbox.unittest_harness import run_unittest
from data.sandbox.verdict import TestOutcome

PROGRAMS = Path(__file__).with_name("hostile.yaml")
# Tight, so that the suite is fast; every attack needs more than this, or time without end.
LIMITS = Limits(
    cpu_s=2,
    wall_s=10.0,
    memory_bytes=768 * MIB,
    processes=32,
    file_bytes=4 * MIB,
    disk_bytes=8 * MIB,
    output_bytes=256 * 1024,
)
_PYTEST = """
from solution import answer

def test_answer():
    assert answer() == 42

def test_twice():
    assert answer() + answer() == 84
"""
_UNITTEST = """
import unittest

class TestCases(unittest.TestCase):
    def test_answer(self):
        self.assertEqual(answer(), 42)

    def test_twice(self):
        self.assertEqual(answer() + answer(), 84)
"""


@dataclass(frozen=True)
class Program:
    """One of the suite.

    Attributes:
        name: its key in the file.
        code: with the canaries' names as ``@NAME@``.
        harness: ``pytest`` or ``unittest``.
        because: a regular expression that the reason of the verdict answers to when the attack itself was reached.
    """

    name: str
    code: str
    because: str
    harness: str = "pytest"


@dataclass(frozen=True)
class Attempt:
    """A program, its verdict, and what of the host it harmed; empty for nothing."""

    program: Program
    outcome: TestOutcome
    harm: str

    @property
    def contained(self) -> bool:
        """Scored as a failure, the host unharmed."""
        return not self.outcome.passed and not self.harm


@dataclass(frozen=True)
class Canaries:
    """What is there to be harmed or leaked: a folder, a file, a process, listeners, a secret in the environment."""

    folder: Path
    secret: str
    process: subprocess.Popen[bytes]
    listeners: Sequence[socket.socket]
    children: frozenset[int]

    @property
    def file(self) -> Path:
        """Holds the secret."""
        return self.folder / "canary.txt"

    def names(self) -> dict[str, str]:
        """What stands for ``@NAME@`` in the programs."""
        return {
            "CANARY_FOLDER": str(self.folder),
            "CANARY_FILE": str(self.file),
            "CANARY_PID": str(self.process.pid),
            "CANARY_NAME": self.folder.name,
            "CANARY_PORT": str(self.listeners[0].getsockname()[1]),
            "SECRET": self.secret,
            "HOME": str(Path.home()),
            "REPOSITORY": str(PROGRAMS.parents[2]),
        }

    def harm(self) -> str:
        """What has happened to them, in a few words; empty for nothing."""
        if sorted(path.name for path in self.folder.iterdir()) != ["canary.txt", "socket"]:
            return "the canary folder changed"
        if self.file.read_text() != self.secret or self.file.stat().st_mode & 0o7777 != 0o600:
            return "the canary file changed"
        if self.process.poll() is not None:
            return "the canary process ended"
        return "a canary listener was reached" if any(map(_was_reached, self.listeners)) else ""

    def left_running(self) -> set[int]:
        """Processes that were not there when the canaries were set out."""
        return running_descendants(os.getpid()) - self.children


@contextmanager
def canaries() -> Iterator[Canaries]:
    """Set them out, in a temporary folder; this process adopts orphans from here on, so that none escapes notice."""
    adopt_orphans()
    secret = secrets.token_hex(16)
    os.environ["MAS_SANDBOX_CANARY"] = secret
    with (
        tempfile.TemporaryDirectory(prefix="mas-canary-") as name,
        socket.socket() as tcp,
        _unix() as local,
        _unix() as abstract,
    ):
        folder = Path(name)
        tcp.bind(("127.0.0.1", 0))
        local.bind(str(folder / "socket"))
        abstract.bind(f"\0{folder.name}")
        for listener in (tcp, local, abstract):
            listener.listen()
            listener.setblocking(False)
        (folder / "canary.txt").write_text(secret)
        (folder / "canary.txt").chmod(0o600)
        with subprocess.Popen([folder.name, "600"], executable="/bin/sleep") as process:
            children = frozenset(running_descendants(os.getpid()))
            try:
                yield Canaries(folder, secret, process, (tcp, local, abstract), children)
            finally:
                process.kill()
                os.environ.pop("MAS_SANDBOX_CANARY", None)


def load_programs(path: Path = PROGRAMS) -> list[Program]:
    """In the file's order. Raises ``TypeError`` for a key that a program does not have."""
    programs: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [Program(name, **fields) for name, fields in programs.items()]


def attempt(program: Program, host: Canaries, limits: Limits = LIMITS) -> Attempt:
    """Score one program as a solution, then look at the canaries."""
    code = program.code
    for name, value in host.names().items():
        code = code.replace(f"@{name}@", value)
    if program.harness == "unittest":
        outcome = run_unittest(code, _UNITTEST, limits)
    else:
        outcome = run_pytest(code, _PYTEST, limits)
    return Attempt(program, outcome, host.harm())


def attempt_all(programs: Sequence[Program], host: Canaries, at_once: int = 2) -> list[Attempt]:
    """All of them, in order."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda program: attempt(program, host), programs))


def _unix() -> socket.socket:
    return socket.socket(socket.AF_UNIX)


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
