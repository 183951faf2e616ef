"""The sandbox against its hostile suite, and what it costs beside a bare process.

Every program of ``hostile.yaml`` is scored as a solution. It is contained if the verdict is a failure, the canaries are
unharmed and, in the end, no process is left. The overhead is a run of an empty program in the sandbox less the same
program in a plain subprocess, in turn.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from data.sandbox.limits import Limits
from data.sandbox.sandbox import run_python, strongest_isolation
from eval.bench.hostile import attempt_all, canaries, load_programs
from eval.bench.result import print_result


def main(argv: Sequence[str]) -> None:
    """Print each program's verdict, then the result; exit status 1 if one was not contained."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench sandbox", description=__doc__)
    parser.add_argument("--repeats", type=int, default=11, help="timed pairs; the overhead is the median")
    parser.add_argument("--at-once", type=int, default=2, help="sandboxes at once")
    args = parser.parse_args(argv)
    print(f"isolation        {strongest_isolation().means}  {strongest_isolation().reason}")
    programs = load_programs()
    with canaries() as host:
        attempts = attempt_all(programs, host, args.at_once)
        left = host.left_running()
    for tried in attempts:
        said = "contained" if tried.contained else "NOT CONTAINED"
        print(f"{said:<13}  {tried.program.name:<34}  {tried.harm or tried.outcome.reason}")
    if left:
        print(f"{len(left)} processes are left: {sorted(left)}")
    contained = sum(tried.contained for tried in attempts) if not left else 0
    overhead_ms = 1000 * median_overhead(args.repeats)
    print_result("sandbox", contained=contained, tried=len(attempts), median_overhead_ms=overhead_ms)
    if contained < len(attempts):
        sys.exit(1)


def median_overhead(repeats: int) -> float:
    """Seconds."""
    plain = [sys.executable, "-s", "-c", "pass"]
    limits = Limits()
    pairs = [
        (_time(lambda: run_python({}, ["-c", "pass"], limits)), _time(lambda: subprocess.run(plain, check=True)))
        for _ in range(repeats + 1)
    ]
    return statistics.median(sandboxed - bare for sandboxed, bare in pairs[1:])  # the first pair warms the caches


def _time(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
