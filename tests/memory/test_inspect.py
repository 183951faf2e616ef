"""The stores of a run as a table, and the history of one entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from memory.comem.event import event_to_dict
from memory.inspect import main
from tests.memory.comem.parts import Scripted, a_memory


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """ann's good insight is promoted and later forgotten; bob's stays private."""
    play = Scripted(a_memory(n_min=1))
    play.play("door", 0.0, ann=["use the key"], bob=["ring the bell"])
    play.play("door", 0.0)
    play.play("door", 1.0)
    for _ in range(3):
        play.play("door", 0.0, judge=0.0)
    play.play("door", 1.0, ann=["knock twice"])
    (tmp_path / "checkpoints").mkdir()
    torch.save({"comem": play.memory.state_dict()}, tmp_path / "checkpoints" / "last.ckpt")
    lines = [json.dumps(event_to_dict(event)) for event in play.events]
    (tmp_path / "comem_events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def told(run: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    assert main([str(run), *flags]) == 0
    return capsys.readouterr().out.splitlines()


def test_entries_are_listed_and_filtered(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = told(run, capsys)
    assert every[0].split() == ["entry", "tier", "agent", "S", "use", "succ", "mean", "R", "miss", "content"]
    assert every[-1] == f"{len(every) - 2} of {len(every) - 2} entries"
    found = told(run, capsys, "--agent", "ann", "--contains", "KNOCK", "--store", "private")
    assert found[1].split() == ["m6-ann-0", "private", "ann", "50.0", "0", "0", "-", "0", "knock", "twice"]
    assert found[2] == "1 of 1 entries"
    assert told(run, capsys, "--contains", "no such")[-1] == "0 of 0 entries"
    assert told(run, capsys, "--limit", "0")[-1].startswith("0 of ")


def test_an_entrys_history_goes_from_birth_to_its_end_and_says_why(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = told(run, capsys, "--entry", "m0-ann-0c")
    kinds = [line.split()[2] for line in lines]
    assert kinds[:2] == ["born", "used"]
    assert kinds[-1] == "forgotten"
    assert kinds.index("promoted") < kinds.index("scored")
    assert "«use the key»" in lines[0]
    assert "updates running" in lines[-1]
    assert told(run, capsys, "--kind", "forgotten")[-1].split()[:3] == lines[-1].split()[:3]


def test_what_is_not_there_is_said(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere")]) == 1
    assert "give the directory of a run" in capsys.readouterr().err
    assert main([str(run), "--entry", "m9-cat-0"]) == 1
    assert "no event of the run is about 'm9-cat-0'" in capsys.readouterr().err
    torch.save({"experience_bank": {}}, run / "checkpoints" / "last.ckpt")
    assert main([str(run)]) == 1
    assert "holds no CoMem" in capsys.readouterr().err
