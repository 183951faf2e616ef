"""The paper's tables in form and the five-seed document, on a tiny controller and a handful of simulated tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.cli import main as evaluate
from eval.lts_gym import checks, document, seed_rows, table
from lightning_modules.cli import train
from tests.lightning_modules.controller_parts import save_tiny_qwen3

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The gym's config with the tiny Qwen3 and few tasks, in its own directory."""
    raw: Any = yaml.safe_load((CONFIGS / "train" / "lts_gym.yaml").read_text(encoding="utf-8"))
    settings = raw["model"]["init_args"]
    settings["backbone"] = str(save_tiny_qwen3(tmp_path / "qwen3"))
    settings["layers"] = None
    settings["teams"]["init_args"]["max_steps"] = 5
    settings["reinforce"] |= {"group_size": 2}
    raw["data"]["benchmark"]["init_args"] = {"train": 2, "test": 6}
    raw["data"]["epochs"] = {"epochs": 1, "passes": 1, "collect_batch": 2, "reuse_batch": 2}
    path = tmp_path / "lts_gym.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def test_eval_prints_the_papers_tables(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train(["--config", str(config)]).run_directory
    assert {path.name for path in (run / "checkpoints").iterdir()} >= {"collect.ckpt", "reuse.ckpt", "last.ckpt"}
    settings = tmp_path / "tables.yaml"
    settings.write_text("lts:\n  team_counts: [2]\n", encoding="utf-8")
    capsys.readouterr()
    evaluate(["--config", str(settings)])
    printed = capsys.readouterr().out
    for number in (1, 2, 3, 5, 6, 7):
        assert f"## Table {number}:" in printed
    assert "a SIMULATION" in printed.splitlines()[0]
    assert "## Figure 3: cumulative distribution of the runtime, simulated s" in printed
    assert "| LTS-AddAll | 100.0 |" in printed  # Table 3: everything is saved
    assert "| method | K | shared memory | level 1 (n=2) | level 2 (n=2) | level 3 (n=2) | all (n=6) |" in printed
    assert "runtime, s |" not in printed
    assert (run / "lts_runtime_cdf.png").stat().st_size > 0
    found = json.loads((run / "lts_results.json").read_text(encoding="utf-8"))
    conditions = {(each["variant"], each["teams"], each["summary"]) for each in found["conditions"]}
    assert ("none", 1, "short") in conditions
    assert ("lts", 2, "short") in conditions
    assert ("lts", 3, "long") in conditions
    for each in found["conditions"]:
        assert each["simulated"]
        assert each["runtime_cdf"][-1][1] == 1.0
        assert each["episodes"] == 6
    assert "eval.py --config" in (run / "lts_tables.md").read_text(encoding="utf-8")


def test_without_a_run_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=r"python train\.py --config configs/train/lts_gym\.yaml"):
        evaluate(["--config", str(CONFIGS / "eval" / "lts.yaml")])


def test_a_seed_is_trained_once_and_kept(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = seed_rows(str(config), 1, [], tmp_path / "keep")
    assert list(rows) == [
        "none", "add_all", "llm", "orchestrator", "lts", "lts, no usage bonus", "lts, no sparsity",
    ]  # fmt: skip
    monkeypatch.setattr("eval.lts_gym.train_controller", None)  # a second training would fail
    assert seed_rows(str(config), 1, [], tmp_path / "keep") == rows
    with pytest.raises(TypeError):
        seed_rows(str(config), 2, [], tmp_path / "keep")


def rows_of(saved: float, score: float) -> dict[str, dict[str, Any]]:
    def row(score: float, runtime: float, saved: float | None) -> dict[str, Any]:
        return {
            "episodes": 9, "score": score, "score_first": score, "runtime_s": runtime, "saved": saved,
            "recall": None, "cross_team_recall": None, "steps": 20.0,
        }  # fmt: skip

    return {
        "none": row(0.5, 400, None),
        "add_all": row(0.4, 250, 100.0),
        "lts": row(score, 300, saved),
        "lts, no usage bonus": row(0.5, 300, 50.0),
        "lts, no sparsity": row(0.5, 300, 96.0),
    }


def test_the_document_has_mean_and_spread_by_hand() -> None:
    found = [rows_of(30.0, 0.6), rows_of(40.0, 0.7)]
    lines = table(found).splitlines()
    # Scores 60 and 70: mean 65, sample deviation sqrt(50) = 7.1; saved 30 and 40: 35 and 7.1.
    assert next(line for line in lines if line.startswith("| lts |")) == (
        "| lts | 65.0 ± 7.1 | 65.0 ± 7.1 | 300.0 ± 0.0 | 35.0 ± 7.1 | – | – | 20.0 ± 0.0 |"
    )
    text = document(found, [0, 1], "python -m eval.lts_gym", "seed: 0", ["--model.init_args.layers", "4"])
    assert "a simulation" in text.splitlines()[0]
    assert "2 seeds (0, 1)" in text
    assert "--model.init_args.layers 4" in text


def test_an_aim_that_was_missed_is_called_so() -> None:
    assert [line.split(":")[0] for line in checks([rows_of(30.0, 0.6)])] == ["met"] * 5
    missed = checks([rows_of(60.0, 0.39)])
    assert [line.split(":")[0] for line in missed] == ["NOT met", "NOT met", "met", "met", "NOT met"]
    assert "50.0 against 60.0 %" in missed[-1]
