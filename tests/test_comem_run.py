"""CoMem by the commands: every overlay parses over its base, and a run trains, stops, goes on and is inspected."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import yaml
from jsonargparse import ActionConfigFile
from lightning.pytorch.cli import LightningArgumentParser

from data.datamodule import TaskDataModule
from eval.cli import main as evaluate
from lightning_modules.cli import train
from lightning_modules.task_stream import TaskStream
from memory.inspect import main as inspect

CONFIGS = Path(__file__).parent.parent / "configs"
BASE = CONFIGS / "train" / "comem.yaml"
OVERLAYS = sorted((CONFIGS / "comem").glob("*.yaml"))


@cache
def parser() -> LightningArgumentParser:
    made = LightningArgumentParser()
    made.add_argument("--config", action=ActionConfigFile)
    made.add_lightning_class_args(L.Trainer, "trainer")
    made.add_subclass_arguments(L.LightningModule, "model")
    made.add_lightning_class_args(TaskDataModule, "data")
    made.add_argument("--seed_everything", type=int)
    return made


@cache
def parsed(*configs: Path) -> Any:
    return parser().parse_args([flag for config in configs for flag in ("--config", str(config))])


def flat(values: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in vars(values).items():
        found |= flat(value, f"{prefix}{key}.") if hasattr(value, "__dict__") else {f"{prefix}{key}": value}
    return found


def leaves(raw: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in raw.items():
        found |= leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_an_overlay_changes_what_it_names_and_nothing_else(overlay: Path) -> None:
    base, merged = flat(parsed(BASE)), flat(parsed(BASE, overlay))
    changed = {key for key in merged if key != "config" and repr(merged[key]) != repr(base.get(key))}
    named = leaves(yaml.safe_load(overlay.read_text(encoding="utf-8")))
    assert {key for key in changed if not key.startswith("data.benchmark.")} <= named.keys()
    assert {key: merged[key] for key in named if key != "trainer.callbacks"} == {
        key: value for key, value in named.items() if key != "trainer.callbacks"
    }


SWEPT = [path for path in OVERLAYS if path.stem.rpartition("_")[2].isdigit()]
DECIMAL = ("alpha", "w")


@pytest.mark.parametrize("overlay", SWEPT, ids=lambda path: path.stem)
def test_a_point_of_a_sweep_is_the_one_value_that_its_name_says(overlay: Path) -> None:
    name, _, digits = overlay.stem.rpartition("_")
    value = float(f"{digits[0]}.{digits[1:]}") if name in DECIMAL else int(digits)
    before, after = (
        vars(parsed(*configs).model.init_args.memory.init_args.settings) for configs in ((BASE,), (BASE, overlay))
    )
    assert {key: after[key] for key in after if after[key] != before[key]} == {name: value}


def test_the_sweeps_are_the_papers() -> None:
    stems = {path.stem for path in OVERLAYS}
    assert {f"k_{k}" for k in (1, 5, 7)} | {f"k_max_{n}" for n in (3, 4, 6, 7, 8)} <= stems
    assert {f"alpha_0{n}" for n in (3, 4, 6, 7, 8)} | {"private_only", "collective_only"} <= stems
    assert {"n_min_1", "n_min_5", "w_00", "w_10"} <= stems


@pytest.mark.parametrize(
    ("name", "gone"),
    [("private_only", {"CollectiveCuration", "Promotion"}), ("collective_only", {"Promotion", "RollingPruning"})],
)
def test_an_ablation_takes_mechanisms_away_and_changes_none_that_stays(name: str, gone: set[str]) -> None:
    def mechanisms(*configs: Path) -> dict[str, str]:
        listed = parsed(*configs).trainer.callbacks
        return {each.class_path.rpartition(".")[2]: repr(each.get("init_args")) for each in listed}

    base = mechanisms(BASE)
    assert len(base) == 7
    left = {mechanism: settings for mechanism, settings in base.items() if mechanism not in gone}
    assert mechanisms(BASE, CONFIGS / "comem" / f"{name}.yaml") == left


@pytest.mark.parametrize(
    ("name", "reward", "k_max"), [("pddl_sample", "progress", 5), ("alfworld_sample", "success", 6)]
)
def test_a_sample_of_a_world_holds_its_actions_to_those_listed(name: str, reward: str, k_max: int) -> None:
    merged = parsed(BASE, CONFIGS / "comem" / f"{name}.yaml")
    world, model = merged.data.benchmark.init_args, merged.model.init_args
    assert (model.rollout.constrained_actions, world.list_actions) == (True, True)
    assert (model.memory.init_args.settings.reward, model.memory.init_args.settings.k_max) == (reward, k_max)


@pytest.fixture
def config(tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped config with the tiny random model and six tasks."""
    raw = yaml.safe_load(BASE.read_text(encoding="utf-8"))
    settings = raw["model"]["init_args"]
    settings["backbone"] = str(tiny_model_dir)
    settings["engine"] = {
        "class_path": "rollout.transformers_engine.TransformersEngine",
        "init_args": {"model": str(tiny_model_dir), "max_model_len": 4096},
    }
    settings["rollout"]["max_tokens"] = 3
    for callback in raw["trainer"]["callbacks"]:
        for asked in callback.get("init_args", {}).values():
            if isinstance(asked, dict):
                asked["init_args"]["max_tokens"] = 4
    raw["data"]["stream"] |= {"tasks": 6, "tasks_in_flight": 2}
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def test_a_stream_stops_goes_on_and_is_inspected(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = TaskStream.training_step

    def cut(module: TaskStream, batch: Any, batch_idx: int) -> None:
        if batch.step == 2:
            raise ConnectionAbortedError("power cut")
        step(module, batch, batch_idx)

    monkeypatch.setattr(TaskStream, "training_step", cut)
    with pytest.raises(ConnectionAbortedError):
        train(["--config", str(config)])
    monkeypatch.setattr(TaskStream, "training_step", step)
    run = train(["--config", str(config), "--ckpt_path", "last"]).run_directory
    assert run == Path("runs/tiny/000")
    results = json.loads((run / "stream_results.json").read_text(encoding="utf-8"))
    assert (results["episodes"], results["tasks_in_flight"]) == (6, 2)
    assert len({row["task"] for row in results["rows"]}) == 6
    lifecycle = json.loads((run / "comem_results.json").read_text(encoding="utf-8"))
    assert (lifecycle["episodes"], lifecycle["tasks_in_flight"]) == (6, 2)
    # A random model writes no JSON: every reflection is given up, counted, and the run goes on.
    assert lifecycle["questions"]["unreadable"] == 12
    capsys.readouterr()
    assert inspect([str(run)]) == 0
    assert "0 of 0 entries" in capsys.readouterr().out
    evaluate(["--run", str(run), "--limit", "3"])
    frozen = json.loads((run / "eval" / "test_results.json").read_text(encoding="utf-8"))
    assert (frozen["memory_is"], frozen["episodes"], frozen["tasks_in_flight"]) == ("frozen", 3, 2)
    assert "memory CoMem: frozen" in capsys.readouterr().out
    flags = ["--benchmark", "data.strategyqa.StrategyQA", "--benchmark.init_args.source", "sample", "--limit", "2"]
    evaluate(["--run", str(run), *flags, "--update_every", "1"])
    learning = json.loads((run / "eval" / "strategyqa" / "test_results.json").read_text(encoding="utf-8"))
    assert (learning["memory_is"], learning["episodes"], learning["tasks_in_flight"]) == ("learning", 2, 1)
