"""The bench compares what it says it compares, on a model small enough for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval.bench.lts_decisions import Workload, main, make_controller, make_episode


def test_the_episode_grows_from_an_empty_bank(tiny_model_dir: Path) -> None:
    backbone, _ = make_controller(str(tiny_model_dir))
    episode = make_episode(Workload(str(tiny_model_dir), teams=3, steps=4, entries=6), backbone)
    assert episode.seen == (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5)
    assert episode.keys.shape == (6, 32)
    assert episode.length == 1 + 6 + 12 * 3


def test_the_last_line_is_the_result(tiny_model_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--steps", "5", "--entries", "9", "--threads", "1", "--repeats", "1"]
    main(["--model", str(tiny_model_dir), *small])
    lines = capsys.readouterr().out.splitlines()
    result = json.loads(lines[-1])
    assert list(result) == ["bench", "packed_speedup", "cached_speedup", "max_logit_diff"]
    assert result["bench"] == "lts_decisions"
    assert result["max_logit_diff"] < 1e-3
    assert result["packed_speedup"] > 0
    assert "15: 55 tokens packed" in lines[0]  # 1 + 9 + 3 · 15
