"""What a sandboxed run may use, and how that becomes rlimits."""

from __future__ import annotations

import resource
from dataclasses import dataclass, fields

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Upper bounds of one run; all `ours`, sized for one function and its tests.

    Attributes:
        cpu_s: seconds of processor time, of each process.
        wall_s: seconds from start to end, waiting for a free slot not counted; then everything is killed.
        memory_bytes: address space of each process, and the memory of all of them together.
        processes: processes and threads at once.
        file_bytes: of each file.
        disk_bytes: of all files together.
        open_files: of each process.
        output_bytes: of standard output and of standard error; more ends the run.
    """

    cpu_s: int = 10
    wall_s: float = 30.0
    memory_bytes: int = 1024 * MIB
    processes: int = 64
    file_bytes: int = 16 * MIB
    disk_bytes: int = 64 * MIB
    open_files: int = 128
    output_bytes: int = MIB

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"Limits.{field.name} must be positive, got {getattr(self, field.name)}")


def apply_rlimits(limits: Limits, running: int) -> None:
    """Bind this process and its children; ``running`` threads of the same user are there already and do not count."""
    hard_cpu = limits.cpu_s + 1  # SIGXCPU first, SIGKILL a second later
    bounds = {
        resource.RLIMIT_CPU: (limits.cpu_s, hard_cpu),
        resource.RLIMIT_AS: (limits.memory_bytes, limits.memory_bytes),
        resource.RLIMIT_FSIZE: (limits.file_bytes, limits.file_bytes),
        resource.RLIMIT_NOFILE: (limits.open_files, limits.open_files),
        resource.RLIMIT_NPROC: (limits.processes + running, limits.processes + running),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_MEMLOCK: (0, 0),
        resource.RLIMIT_MSGQUEUE: (0, 0),
    }
    for name, (soft, hard) in bounds.items():
        resource.setrlimit(name, _within(name, soft, hard))


def _within(name: int, soft: int, hard: int) -> tuple[int, int]:
    """Not above the hard limit that this process is under already, which only root could raise."""
    ceiling = resource.getrlimit(name)[1]
    if ceiling == resource.RLIM_INFINITY:
        return soft, hard
    return min(soft, ceiling), min(hard, ceiling)
