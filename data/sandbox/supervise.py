"""Waiting for sandboxed code while its processes' memory is added up, which no rlimit does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Ending:
    """How the first process ended: an exit code or a signal, and the limit that it was killed for, if any."""

    exit_code: int | None
    signal: int | None
    exceeded: str = ""


def supervise(child: int, exceeded: Callable[[], str], interval_s: float) -> Ending:
    """Wait for ``child``, reaping every orphan meanwhile; kill it as soon as ``exceeded`` names a limit.

    The caller has blocked SIGCHLD, so that its arrival ends the pause between two looks.
    """
    over = ""
    while True:
        if (status := _reap(child)) is not None:
            code = os.waitstatus_to_exitcode(status)
            return Ending(code if code >= 0 else None, -code if code < 0 else None, over)
        if not over and (over := exceeded()):
            os.kill(child, signal.SIGKILL)
        signal.sigtimedwait([signal.SIGCHLD], interval_s)


def memory_of(processes: Iterator[int]) -> int:
    """Bytes of memory that are theirs and not a file's; what two share counts twice."""
    return sum(map(_own_memory, processes))


def all_processes() -> Iterator[int]:
    """Every process of this PID namespace."""
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def descendants(ancestor: int) -> list[int]:
    """Children of ``ancestor``, theirs, and so on."""
    children: dict[int, list[int]] = {}
    for process in all_processes():
        children.setdefault(int(_fields(process).get("PPid", 0)), []).append(process)
    found: list[int] = []
    ahead = [ancestor]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def threads(process: int) -> int:
    """Of a process that may have gone."""
    return int(_fields(process).get("Threads", 0))


def owner(process: int) -> int | None:
    """The user id of a process that may have gone."""
    user = _fields(process).get("Uid")
    return int(user.split()[0]) if user else None


def running_descendants(ancestor: int) -> set[int]:
    """Those that have not ended; one that waits to be reaped has."""
    return {process for process in descendants(ancestor) if _fields(process).get("State", "Z")[0] != "Z"}


def kill_descendants(patience_s: float = 10) -> None:
    """Kill and reap whatever descends from this process, which adopts orphans.

    Raises ``TimeoutError`` if something still lives after ``patience_s``.
    """
    deadline = time.monotonic() + patience_s
    while alive := running_descendants(os.getpid()):
        for process in alive:
            _kill(process)
        _reap(-1)
        if time.monotonic() > deadline:
            raise TimeoutError(f"sandbox: {len(alive)} processes survive SIGKILL")
    _reap(-1)


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _reap(wanted: int) -> int | None:
    """Collect all that have ended; the status of ``wanted``, if it is among them."""
    try:
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == wanted:
                return status
            if process == 0:
                return None
    except ChildProcessError:
        return None


def _own_memory(process: int) -> int:
    fields = _fields(process)
    return 1024 * sum(int(fields.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem"))


def _fields(process: int) -> dict[str, str]:
    """Of ``/proc/PID/status``; empty if the process has gone."""
    try:
        lines = (_PROC / str(process) / "status").read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
