"""Run model-written Python where it can neither harm nor learn anything: :func:`run_python`.

On Linux with unprivileged user namespaces (or as root) the program has its own users, mounts, processes, network and
inter-process communication: it sees the Python installation read-only, a memory disk, itself, and no one else. Where a
container forbids namespaces, Landlock keeps it to its own directory and seccomp from all sockets. Results say which.
As root the program runs under an id that owns nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Final

from data.sandbox import seccomp
from data.sandbox.interpreter import this_interpreter
from data.sandbox.isolation import Isolation, SandboxUnavailableError, require_linux
from data.sandbox.landlock import landlock_abi
from data.sandbox.limits import Limits
from data.sandbox.process import SandboxResult, run_once

# How many run at once in this process, unless the caller brings a bound of its own; the rest wait.
SLOTS: Final = threading.BoundedSemaphore(os.cpu_count() or 1)


def run_python(
    files: Mapping[str, str | bytes],
    argv: Sequence[str],
    limits: Limits = Limits(),
    stdin: bytes = b"",
    isolation: Isolation | None = None,
    slots: AbstractContextManager[Any] = SLOTS,
) -> SandboxResult:
    """Run this Python with ``argv`` in a fresh directory that holds ``files``. Blocks; call it from a thread.

    The program sees the installed packages, its files in the working directory (first on ``sys.path``) and a fixed
    environment. Nothing that it starts outlives the call.

    Args:
        files: relative path to content, text as UTF-8.
        argv: what follows ``python``, such as ``["main.py"]`` or ``["-c", "print(1)"]``.
        limits: what it may use.
        stdin: its standard input.
        isolation: the means; the strongest that work here by default.
        slots: what bounds how many run at once.

    Raises:
        ValueError: a path of ``files`` that leads out of the directory.
        SandboxUnavailableError: nothing here could keep the program in; the message says why.
    """
    require_linux()
    for name in files:
        _check_relative(name)
    chosen = isolation or strongest_isolation()
    with slots:
        return run_once(files, argv, limits, stdin, chosen, this_interpreter())


@cache
def strongest_isolation() -> Isolation:
    """The first that runs an empty program here: namespaces, else Landlock, else rlimits alone; found once.

    Raises :class:`SandboxUnavailableError` with every reason where none does.
    """
    require_linux()
    filtered = seccomp.supported()
    candidates = [Isolation(namespaces=True, seccomp=filtered)]
    # Without a filter, code under the user's own id could signal that user's processes and open sockets.
    if filtered:
        locks = [True, False] if landlock_abi() else [False]
        candidates += [Isolation(namespaces=False, seccomp=True, landlock=lock) for lock in locks]
    reasons: list[str] = []
    for candidate in candidates:
        if not (reason := _failure(candidate)):
            return Isolation(candidate.namespaces, candidate.seccomp, candidate.landlock, "; ".join(reasons))
        reasons.append(f"{candidate.means}: {reason}")
    raise SandboxUnavailableError(
        f"model-written code cannot be kept in on this machine ({'; '.join(reasons)}): allow unprivileged user "
        "namespaces, or run as an ordinary user whose Python all users may read"
    )


def _failure(candidate: Isolation) -> str:
    try:
        result = run_once({}, ["-c", ""], Limits(), b"", candidate, this_interpreter())
    except SandboxUnavailableError as error:
        return str(error)
    return "" if result.ok else f"an empty program failed: {result.stderr.decode(errors='replace')[-200:]}"


def _check_relative(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise ValueError(f"run_python: {name!r} is not a path inside the sandbox's directory; give a relative one")
