"""The bench that kills replicas: its counting by hand, and two trials over a scripted server behind real processes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from data.task import Task
from eval.bench.replicas import Bench, Trial, count
from eval.bench.tcp_proxy import ProxyProcess, free_port
from tests.rollout.loopback_server import loopback_server
from tests.rollout.scripted_replica import ScriptedReplica

TASKS = (Task("t0", "?", ("a",), "sample"), Task("t1", "?", ("a",), "sample"))
ALL = [(("t0", 0, 0), 0), (("t0", 0, 1), 0), (("t1", 0, 0), 1), (("t1", 0, 1), 2)]


def test_every_call_once_is_nothing_lost_and_nothing_doubled() -> None:
    assert count(ALL, TASKS) == Trial(lost=0, doubled=0, resent=2)


def test_what_is_missing_is_lost_and_what_is_there_twice_or_was_not_asked_for_is_doubled() -> None:
    assert count(ALL[1:], TASKS) == Trial(lost=1, doubled=0, resent=2)
    assert count([*ALL, ALL[0], ALL[0]], TASKS) == Trial(lost=0, doubled=2, resent=2)
    assert count([*ALL, (("t1", 0, 2), 0)], TASKS) == Trial(lost=0, doubled=1, resent=2)
    assert count([], TASKS) == Trial(lost=4, doubled=0, resent=0)


def test_a_killed_proxy_is_a_replica_that_dies_and_comes_back(tiny_model_dir: Path, tmp_path: Path) -> None:
    replica = ScriptedReplica(model=str(tiny_model_dir), max_model_len=2048, delay_s=0.5)
    with loopback_server(replica) as server:
        port = int(server.url.rpartition(":")[2])
        trials = Bench(str(tiny_model_dir), port, 6, 16, tmp_path / "trace.jsonl").run(2, random.Random(21))
    assert [(trial.lost, trial.doubled) for trial in trials] == [(0, 0), (0, 0)]
    assert sum(trial.resent for trial in trials) > 0


def test_a_proxy_that_cannot_start_says_so() -> None:
    with loopback_server(ScriptedReplica()) as server:
        taken = int(server.url.rpartition(":")[2])
        proxy = ProxyProcess(taken, free_port())
        with pytest.raises(RuntimeError, match=f"port {taken} is taken"):
            proxy.start()
