"""The near end of ALFWorld's engine: processes that start when they are needed and end with this one.

A call blocks its thread on a pipe, with the interpreter free for others; calls to one process take turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import count
from pathlib import Path

_PACKAGES = ("alfworld", "textworld", "fast-downward-textworld")
_ROOT = Path(__file__).resolve().parents[2]


def engine_versions() -> str:
    """``alfworld 0.4.2, textworld 1.7.0, ...``, to stamp results with.

    Raises:
        ModuleNotFoundError: one is not installed; with the command that does it.
    """
    try:
        return ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    except PackageNotFoundError as error:
        raise ModuleNotFoundError(
            f"ALFWorld needs {error.name}, which is not installed: run `make alfworld`, or pip install --no-deps "
            "-r requirements/alfworld.txt in an active environment (the planner is compiled: a C++ compiler, minutes)"
        ) from error


@cache
def engine_file(name: str) -> str:
    """A data file of the ``alfworld`` package, without importing it: its import makes a folder in the user's home."""
    engine_versions()
    package = find_spec("alfworld")
    assert package is not None
    assert package.submodule_search_locations is not None
    return (Path(package.submodule_search_locations[0]) / "data" / name).read_text(encoding="utf-8")


class EngineProcess:
    """One process of :mod:`data.alfworld.engine`. Safe to call from any thread."""

    def __init__(self) -> None:
        engine_versions()
        self._turn = threading.Lock()
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - open as long as the process
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "data.alfworld.engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        weakref.finalize(self, self._process.kill)

    def call(self, **request: object) -> Mapping[str, object]:
        """The reply to one request.

        Raises:
            RuntimeError: the process ended; with the last lines that it said.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            if self._process.poll() is None:
                print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = "\n".join(self._errors.read().splitlines()[-5:])
            raise RuntimeError(
                f"ALFWorld's engine ended with status {self._process.returncode} on {_short(request)}: {said}"
            )
        reply: Mapping[str, object] = json.loads(line)
        return reply


class EnginePool:
    """``processes`` engines, each started by the first game that falls to it; games are dealt out in turn."""

    def __init__(self, processes: int) -> None:
        if processes < 1:
            raise ValueError(f"ALFWorld needs at least 1 engine process, got {processes}")
        self._turn = threading.Lock()
        self._engines: list[EngineProcess | None] = [None] * processes
        self._games = count()

    def next(self) -> tuple[EngineProcess, int]:
        """The engine for another game, and the game's number there."""
        with self._turn:
            number = next(self._games)
            place = number % len(self._engines)
            engine = self._engines[place]
            if engine is None:
                engine = self._engines[place] = EngineProcess()
            return engine, number


def _short(request: Mapping[str, object]) -> str:
    return json.dumps({name: value for name, value in request.items() if name != "data"})
