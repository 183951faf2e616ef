"""Which means keep sandboxed code in, and the identity that it runs under."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

_NOBODY = 65534


@dataclass(frozen=True)
class Isolation:
    """What a run is kept in by.

    Attributes:
        namespaces: user, mount, PID, network, IPC, UTS and cgroup namespaces of its own; else Landlock and a kill loop.
        seccomp: system calls are filtered.
        landlock: files are restricted although there is no mount namespace.
        reason: why it is not the strongest there is; empty where it is.
    """

    namespaces: bool
    seccomp: bool
    landlock: bool = False
    reason: str = ""

    @property
    def means(self) -> str:
        """As results name it, such as ``namespaces+seccomp+rlimits``."""
        named = {"namespaces": self.namespaces, "landlock": self.landlock, "seccomp": self.seccomp, "rlimits": True}
        return "+".join(name for name, used in named.items() if used)


class SandboxUnavailableError(RuntimeError):
    """Nothing here could keep model-written code in."""


def require_linux() -> None:
    """Raises :class:`SandboxUnavailableError` where the sandbox has no means at all."""
    if sys.platform != "linux":
        raise SandboxUnavailableError(
            f"the sandbox needs Linux (namespaces, seccomp, rlimits) and this is {sys.platform}: "
            "run benchmarks that execute model-written code in a Linux container"
        )


def sandbox_user(process: int) -> int | None:
    """The user id that the code runs under, seen from outside; ``None`` for the user's own.

    Root gives every sandbox an id that owns nothing, so that its processes are counted apart and reach no file; where
    a container has too few ids, that of nobody.
    """
    if os.geteuid() != 0:
        return None
    unique = 1_000_000_000 + process
    return unique if _is_mapped(unique) else _NOBODY


def _is_mapped(user: int) -> bool:
    ranges = [map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= user < first + count for first, _, count in ranges)
