"""Ctrl-C in a process of its own: a real signal, sent while some episodes are done and others run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rollout.trace import TracedEpisode
from rollout.trace_reader import read_trace

ROOT = Path(__file__).resolve().parents[2]

CODE = """
import asyncio, signal, sys, threading
from pathlib import Path
from rollout.replay_engine import ReplayEngine
from rollout.runner import EpisodeRunner, RolloutSettings, RunInterrupted
from rollout.trace import TraceWriter
from tests.rollout.parts import PHASE, TASKS, TOKENIZER, Facts, embed
from rollout.mas.autogen import AutoGen


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


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
engine = Waits(script=lambda request: "answer 0")
settings, trace = RolloutSettings(max_tokens=16), TraceWriter(Path(sys.argv[2]))
runner = EpisodeRunner(engine, AutoGen(), TOKENIZER, embed, Facts(), settings, trace)
try:
    if sys.argv[1] == "run":
        runner.run(TASKS, 1, PHASE, None)
    else:
        for made in runner.stream(TASKS, 1, PHASE, None):
            print("got", made.task.id, flush=True)
except RunInterrupted as interrupt:
    print("kept", *(made.task.id for made in interrupt.finished), flush=True)
print("aborted", Waits.aborted, flush=True)
runner.close()
print("threads", *(thread.name for thread in threading.enumerate()), flush=True)
"""


@pytest.mark.parametrize(("way", "kept"), [("run", "kept t0 t2"), ("stream", "kept t2")])
def test_ctrl_c_keeps_what_finished_and_leaves_nothing_behind(tmp_path: Path, way: str, kept: str) -> None:
    path = tmp_path / "trace.jsonl"
    child = subprocess.Popen(
        [sys.executable, "-c", CODE, way, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    seen = [child.stdout.readline() for _ in range(2 if way == "run" else 3)]
    assert sorted(seen) == ["got t0\n", "waiting\n", "waiting\n"][-len(seen) :]
    wait_for_lines(path)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert out.splitlines() == [kept, "aborted 2", "threads MainThread"], err
    assert (child.returncode, err) == (0, "")
    assert [record.task for record in read_trace(path) if isinstance(record, TracedEpisode)] == ["t0", "t2"]


def wait_for_lines(path: Path) -> None:
    """t0's are written at once; t2 finishes in the same turns of the loop, and waits for t1."""
    deadline = time.monotonic() + 30
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
