"""LTS on the real path by its own commands and the committed config: train, resume, live comparison, tables.

MagenticOne teams search the bundled corpus with real tools; the language model is a script, the controller tiny.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.cli import main as evaluate
from eval.lts_live import main as live
from lightning_modules.cli import train
from lightning_modules.lts import LTS
from rollout.engine import Request
from rollout.replay_engine import ReplayEngine
from rollout.teams_episode import TeamsEpisode, episode_from_dict
from tests.lightning_modules.controller_parts import save_tiny_qwen3
from tests.rollout.test_magentic_teams import reply

ROOT = Path(__file__).parents[2]
TEAMS = "--model.init_args.teams.init_args"


class ScriptedModel(ReplayEngine):
    """Searches, opens the page, answers; its aggregator is right for every other seed, so that returns differ."""

    def __init__(self) -> None:
        super().__init__(script=_reply)


def _reply(request: Request) -> str:
    assert request.messages is not None
    if "Weigh the teams' answers" in request.messages[-1].content and request.sampling.seed % 2:
        return json.dumps({"reason": "a guess", "answer": "nothing"})
    return reply(request)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed config with a script for a model."""
    raw: Any = yaml.safe_load((ROOT / "configs" / "train" / "lts_assistantbench_sample.yaml").read_text("utf-8"))
    settings = raw["model"]["init_args"]
    settings["backbone"] = str(save_tiny_qwen3(tmp_path / "qwen3"))
    settings["layers"] = None
    teams = settings["teams"]["init_args"]
    teams["engine"] = {"class_path": "tests.eval.test_lts_full_path.ScriptedModel"}
    teams["mas"]["init_args"]["tools"]["init_args"]["corpus"] = str(ROOT / "data" / "sample" / "corpus.jsonl")
    path = tmp_path / "lts_scripted.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def episodes_of(path: Path) -> list[tuple[str, TeamsEpisode]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(line.pop("variant"), episode_from_dict(line)) for line in lines]


def test_train_resume_compare_and_tabulate(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--config", str(config), "--data.train_limit", "2"]
    cut = train([*flags, "--trainer.max_steps", "1"])
    assert cut.trainer.global_step == 1
    resumed = train([*flags, "--ckpt_path", "last"])
    assert resumed.run_directory == cut.run_directory
    assert resumed.trainer.global_step == 2  # one iteration of collection, then two passes of one
    module = resumed.model
    assert isinstance(module, LTS)
    collected = [episode for group in module.episodes.values() for episode in group]
    assert [len(group) for group in module.episodes.values()] == [2, 2]
    assert all(0 < (step.probability or 0) < 1 for episode in collected for step in episode.admissions)
    assert not any(episode.failure or episode.simulated for episode in collected)

    checkpoint = str(resumed.run_directory / "checkpoints" / "last.ckpt")
    found = tmp_path / "live"
    live(
        [
            "--config",
            str(config),
            "--checkpoint",
            checkpoint,
            "--limit",
            "2",
            "--out",
            str(found),
            f"{TEAMS}.teams",
            "2",
        ]
    )
    played = episodes_of(found / "episodes.jsonl")
    assert [variant for variant, _ in played] == [
        v for v in ("none", "add_all", "llm", "orchestrator", "lts") for _ in "ab"
    ]
    assert {len(episode.results) for _, episode in played} == {2}
    shared = [episode for variant, episode in played if variant == "add_all"]
    assert all(len(episode.entries) == len(episode.admissions) > 0 for episode in shared)
    outputs = [step.output for _, episode in played for result in episode.results for step in result.steps]
    assert any(output.startswith("search(") for output in outputs)
    assert any(output.startswith("open_page(") for output in outputs)
    results = json.loads((found / "results.json").read_text(encoding="utf-8"))
    assert results["controller_trained"] is True
    assert 0 < results["variants"]["lts"]["decision_share"] < 100

    capsys.readouterr()
    evaluate(["--lts.run", str(resumed.run_directory), "--lts.team_counts", "[2]", "--lts.limit", "2"])
    printed = capsys.readouterr().out
    assert printed.startswith("# LTS, 2 held-out tasks\n")
    assert "SIMULATION" not in printed
    assert "| method | K | shared memory | Easy (n=" in printed
    assert "runtime, s" in printed


def test_a_checkpoint_of_another_controller_is_refused(config: Path, tmp_path: Path) -> None:
    import torch

    torch.save({"state_dict": {"composer.queries": torch.zeros(1)}, "episodes": {}}, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match="other trained weights"):
        live(["--config", str(config), "--checkpoint", str(tmp_path / "other.ckpt")])
