"""Ctrl-C in a process of its own: real signals, sent while some episodes are done and others run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.trace import TracedEpisode
from rollout.trace_reader import read_trace

ROOT = Path(__file__).resolve().parents[2]

CODE = """
import asyncio, signal, sys, threading
from pathlib import Path
from rollout.mas.autogen import AutoGen
from rollout.replay_engine import ReplayEngine
from rollout.runner import EpisodeRunner, RolloutSettings, RunInterrupted
from rollout.trace import TraceWriter
from tests.rollout.parts import PHASE, TASKS, TOKENIZER, Facts, embed


class Waits(ReplayEngine):
    aborted = 0

    async def generate(self, request):
        if request.key.task in ("t1", "t3"):
            print("waiting", flush=True)
            try:
                await asyncio.sleep(600)
            finally:
                Waits.aborted += 1
        return await super().generate(request)


def interrupted(work):
    try:
        work()
    except RunInterrupted as interrupt:
        print("kept", *(made.task.id for made in interrupt.finished), flush=True)
    print("aborted", Waits.aborted, flush=True)


def read_stream():
    for made in runner.stream(TASKS, 1, PHASE, None):
        print("got", made.task.id, flush=True)


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
engine = Waits(script=lambda request: "answer 0")
settings, trace = RolloutSettings(max_tokens=16), TraceWriter(Path(sys.argv[1]))
runner = EpisodeRunner(engine, AutoGen(), TOKENIZER, embed, Facts(), settings, trace)
interrupted(lambda: runner.run(TASKS, 1, PHASE, None))
interrupted(read_stream)
runner.close()
print("threads", *(thread.name for thread in threading.enumerate()), flush=True)
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(tmp_path / "trace.jsonl")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    yield process
    process.kill()
    process.wait()


def test_ctrl_c_keeps_what_finished_and_leaves_nothing_behind(child: subprocess.Popen[str], tmp_path: Path) -> None:
    """t1 and t3 wait for ever; t0 is done, and t2 too, behind t1. A run, then a stream of the same runner."""
    path = tmp_path / "trace.jsonl"
    assert lines_of(child, 2) == ["waiting", "waiting"]
    interrupt(child, path, episodes=1)
    assert lines_of(child, 2) == ["kept t0 t2", "aborted 2"]
    assert episodes_in(path)[:2] == ["t0", "t2"]  # the stream may have traced its own t0 by now
    assert sorted(lines_of(child, 3)) == ["got t0", "waiting", "waiting"]
    interrupt(child, path, episodes=3)
    out, err = child.communicate(timeout=120)
    assert out.splitlines() == ["kept t2", "aborted 4", "threads MainThread"], err
    assert (child.returncode, err) == (0, "")
    assert episodes_in(path) == ["t0", "t2", "t0", "t2"]


def lines_of(child: subprocess.Popen[str], count: int) -> list[str]:
    assert child.stdout is not None
    return [child.stdout.readline().rstrip("\n") for _ in range(count)]


def interrupt(child: subprocess.Popen[str], path: Path, episodes: int) -> None:
    """Once t0's line is there; t2 finishes in the same turns of the loop."""
    deadline = time.monotonic() + 60
    while not path.exists() or len(episodes_in(path)) < episodes:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(child.pid, signal.SIGINT)


def episodes_in(path: Path) -> list[str]:
    return [record.task for record in read_trace(path) if isinstance(record, TracedEpisode)]
