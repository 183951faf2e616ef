"""Peak memory of one piece of work, counted by the kernel in a fresh process.

Why not otherwise: ``tracemalloc`` does not see what torch allocates on the CPU; the high-water mark of a process never
falls, so two measurements in one process blur; and ``ru_maxrss`` of a child starts at its *parent's* peak, since it
survives ``exec``. So each measurement is a spawned process, read from ``VmHWM``, which belongs to the address space.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

_PROC = Path("/proc/self")
Work = Callable[[], object]


@dataclass(frozen=True)
class PeakMemory:
    """Resident memory in MiB: ``before`` the work (interpreter, libraries, model) and at its ``peak``."""

    before_mib: float
    peak_mib: float

    @property
    def growth_mib(self) -> float:
        """What the work itself took at its height."""
        return self.peak_mib - self.before_mib


def measure_peak(prepare: Callable[..., Work], *args: object) -> PeakMemory:
    """Call ``work = prepare(*args)`` and then ``work()`` in a fresh process; measure the second call only.

    Pages count once they are touched, file mappings (a checkpoint read through safetensors) among them. What
    ``prepare`` freed is gone from the peak, but pages that its allocator keeps are in ``before`` and can be used again
    unseen: let it build the model and the batch and no more.

    Args:
        prepare: a function at the top level of an importable module, for the new process has to find it by name.
        args: picklable.

    Raises:
        RuntimeError: the system has no ``/proc/self/clear_refs``, as outside Linux.
        concurrent.futures.process.BrokenProcessPool: the process died, of want of memory for instance.
    """
    if not (_PROC / "clear_refs").exists():
        raise RuntimeError("peak memory is read from /proc/self (clear_refs, VmHWM), which needs Linux")
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, prepare, args).result()


def _measure(prepare: Callable[..., Work], args: tuple[object, ...]) -> PeakMemory:
    work = prepare(*args)
    gc.collect()
    (_PROC / "clear_refs").write_text("5")  # sets the high-water mark back to what is resident now, see proc(5)
    before = _status_mib("VmRSS")
    work()
    return PeakMemory(before, _status_mib("VmHWM"))


def _status_mib(name: str) -> float:
    for line in (_PROC / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {name}: this kernel does not count resident memory")
