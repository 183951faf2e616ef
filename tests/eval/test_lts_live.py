"""The real path from the command line's parts, on a scripted engine; the configs that it is started with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import lightning as L
import pytest
import yaml
from lightning.pytorch.cli import LightningArgumentParser

from data.datamodule import TaskDataModule
from eval.lts_live import Played, table, write
from rollout.replay_engine import ReplayEngine
from rollout.teams_episode import episode_from_dict
from tests.rollout.test_magentic_teams import TASK, reply, teams_on
from tests.rollout.watched_engine import WatchedEngine

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.fixture(scope="module")
def played() -> Played:
    teams = teams_on(WatchedEngine(ReplayEngine(script=reply)))
    return {
        "none": [asyncio.run(teams.episode(TASK, 0, 7, "none"))],
        "llm": [asyncio.run(teams.episode(TASK, 0, 7, "llm"))],
    }


def test_a_line_a_variant_with_dashes_where_nothing_was_decided(played: Played) -> None:
    title, _, head, _, none, llm = table(played, "accuracy").splitlines()
    assert title == "## 1 tasks, one episode each"
    names = [cell.strip() for cell in head.strip("|").split("|")]
    rows = [dict(zip(names, map(str.strip, row.strip("|").split("|")), strict=True)) for row in (none, llm)]
    assert [row["variant"] for row in rows] == ["none (M1-Parallel)", "LTS-LLM"]
    assert [row["score %"] for row in rows] == ["100.0", "100.0"]
    assert [row["memories saved %"] for row in rows] == ["–", "50.0"]
    assert [row["steps"] for row in rows] == ["6.0", "2.0"]  # the first team shares before the others begin
    assert {row["failed teams"] for row in rows} == {"0"}


def test_what_is_written_can_be_read_again(played: Played, tmp_path: Path) -> None:
    write(tmp_path, played, "accuracy", "a command", trained=False)
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["controller_trained"] is False
    assert results["variants"]["none"]["runtime_cdf"][-1][1] == 1.0
    lines = [json.loads(line) for line in (tmp_path / "episodes.jsonl").read_text(encoding="utf-8").splitlines()]
    read = [(line.pop("variant"), episode_from_dict(line)) for line in lines]
    assert read == [(variant, episode) for variant, episodes in played.items() for episode in episodes]


@pytest.mark.parametrize(
    "path", ["train/lts_assistantbench.yaml", "train/lts_assistantbench_sample.yaml", "eval/lts_gaia_sample.yaml"]
)
def test_the_configs_parse(path: str) -> None:
    """Down to every key and type; nothing is built."""
    parser = LightningArgumentParser()
    parser.add_lightning_class_args(L.Trainer, "trainer")
    parser.add_subclass_arguments(L.LightningModule, "model")
    parser.add_lightning_class_args(TaskDataModule, "data")
    parser.add_argument("--seed_everything", type=int)
    parser.parse_object(yaml.safe_load((CONFIGS / path).read_text(encoding="utf-8")))
