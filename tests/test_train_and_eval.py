"""The two commands, end to end on a tiny random model: train, stop, resume, evaluate; and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import lightning as L
import pytest
import torch
import yaml
from lightning.pytorch.cli import LightningArgumentParser
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from data.datamodule import StageBatch, TaskDataModule
from eval.cli import main as evaluate
from lightning_modules.cli import build, train
from lightning_modules.latentmem import LatentMem
from rollout.mas.dylan import DyLAN
from rollout.trace import TracedCall
from rollout.trace_reader import read_trace
from tests.tiny_run import CONFIGS, tiny_quickstart


@pytest.fixture
def config(tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The quickstart's config with the tiny model, the transformers engine and few steps, in its own directory."""
    path = tiny_quickstart(tmp_path, tiny_model_dir)
    monkeypatch.chdir(tmp_path)
    return path


def test_train_leaves_what_the_readme_says_and_eval_reads_it(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli = train(["--config", str(config)])
    run = cli.run_directory
    assert run == Path("runs/tiny/000")
    made = {path.name for path in (run / "checkpoints").iterdir()}
    assert made == {"untrained.ckpt", "collect.ckpt", "sft.ckpt", "lmpo.ckpt", "last.ckpt"}
    assert (run / "config.yaml").is_file()

    evaluate(["--run", str(run), "--limit", "3"])
    rows = json.loads((run / "results.json").read_text(encoding="utf-8"))["rows"]
    assert [row["memory"] for row in rows] == ["none", "text", "latentmem_untrained", "latentmem_sft", "latentmem"]
    assert all(0 <= row["exact_match"] <= 1 and row["seconds"] > 0 and row["tokens"] > 0 for row in rows)
    assert (run / "results.md").is_file()
    assert (run / "results.png").stat().st_size > 1000
    assert "latentmem_untrained" in capsys.readouterr().out


def test_tensorboard_has_every_figure(config: Path) -> None:
    run = train(["--config", str(config), "--data.benchmark.source", "sample"]).run_directory
    events = EventAccumulator(str(run))
    events.Reload()
    lmpo = {
        "reward_mean", "reward_std", "reward_std_within_groups", "groups_without_variance", "latent_norm",
        "retrieval_similarity", "score/exact_match", "rollout_tokens_per_s",
    }  # fmt: skip
    expected = {f"lmpo/{name}" for name in lmpo} | {"sft/loss", "sft/grad_norm", "bank/size"}
    expected |= {"seconds/rollout", "seconds/compose", "seconds/update"}
    assert expected <= set(events.Tags()["scalars"])
    assert "config/text_summary" in events.Tags()["tensors"]
    assert any(tag.startswith("collect/trajectory_0") for tag in events.Tags()["tensors"])


def test_the_trace_has_a_line_for_every_call(config: Path) -> None:
    run = train(["--config", str(config)]).run_directory
    lines = [record for record in read_trace(run / "trace.jsonl") if isinstance(record, TracedCall)]
    # AutoGen has two calls: 2 steps x 2 tasks without memory, 2 steps x 2 tasks x G = 2 with it.
    assert len(lines) == 2 * (2 * 2) + 2 * (2 * 2 * 2)
    assert {line.latent_tokens for line in lines if line.phase == "collect"} == {0}
    assert {line.latent_tokens for line in lines if line.phase == "lmpo"} == {2}


def test_a_stopped_run_goes_on_in_its_directory_and_ends_the_same(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(["--config", str(config)])
    reinforce = LatentMem._reinforce

    def stop_in_the_second_iteration(module: LatentMem, batch: StageBatch) -> None:
        if batch.step == 1:
            raise ConnectionAbortedError("power cut")
        reinforce(module, batch)

    monkeypatch.setattr(LatentMem, "_reinforce", stop_in_the_second_iteration)
    with pytest.raises(ConnectionAbortedError):
        train(["--config", str(config), "--name", "cut"])
    monkeypatch.undo()
    monkeypatch.chdir(config.parent)
    resumed = train(["--config", str(config), "--name", "cut", "--ckpt_path", "last"])
    assert resumed.run_directory == Path("runs/cut/000")
    first, second = (
        torch.load(cli.run_directory / "checkpoints" / "last.ckpt", weights_only=True) for cli in (whole, resumed)
    )
    for name, weight in first["state_dict"].items():
        assert torch.equal(weight, second["state_dict"][name]), name
    outputs = [
        [step["output"] for trajectory in state["experience_bank"]["trajectories"] for step in trajectory["steps"]]
        for state in (first, second)
    ]
    assert outputs[0] == outputs[1]


def test_stages_can_be_skipped(config: Path) -> None:
    run = train(["--config", str(config), "--data.sft.steps", "0", "--data.lmpo.steps", "0"]).run_directory
    assert not (run / "checkpoints" / "sft.ckpt").exists()
    with pytest.raises(FileNotFoundError, match=r"sft\.ckpt"):
        evaluate(["--run", str(run)])
    with pytest.raises(ValueError, match="unknown memory 'latent'"):  # before the first row is answered
        evaluate(["--run", str(run), "--memories", "[none, latent]", "--limit", "2"])
    assert not (run / "eval_trace.jsonl").exists()
    evaluate(["--run", str(run), "--memories", "none,text", "--limit", "2"])


@pytest.mark.parametrize(
    ("flag", "meant"),
    [
        ("--model.init_args.lmpo.group_sise", "group_size"),
        ("--trainer.max_epocs", "max_epochs"),
        ("--data.lmpo.stps", "steps"),
        ("--model.init_args.sead", "seed"),
    ],
)
def test_an_unknown_flag_is_refused_with_the_nearest_name(
    config: Path, flag: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        build(["--config", str(config), flag, "4"])
    assert f"did you mean {meant!r}" in capsys.readouterr().err


def test_an_unknown_key_in_a_config_is_refused_with_the_nearest_name(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(config.read_text(encoding="utf-8").replace("group_size", "groups_size"), encoding="utf-8")
    with pytest.raises(SystemExit):
        build(["--config", str(config)])
    assert "did you mean 'group_size'" in capsys.readouterr().err


def test_last_without_a_run_says_so(config: Path) -> None:
    with pytest.raises(SystemExit, match="no checkpoint below"):
        build(["--config", str(config), "--ckpt_path", "last"])


def test_another_model_for_the_engine_is_refused(config: Path, tiny_model_dir: Path, tmp_path: Path) -> None:
    other = shutil.copytree(tiny_model_dir, tmp_path / "other")
    with pytest.raises(ValueError, match=r"model\.engine\.model"):
        train(["--config", str(config), "--model.init_args.engine.init_args.model", str(other)])


@pytest.mark.parametrize("choice", ["DyLAN", "rollout.mas.dylan.DyLAN", str(CONFIGS / "mas" / "dylan.yaml")])
def test_a_mas_is_chosen_by_name_path_or_file(config: Path, choice: str) -> None:
    cli = build(["--config", str(config), "--model.init_args.mas", choice, "--model.init_args.mas.init_args.keep", "3"])
    assert isinstance(cli.model.mas, DyLAN)
    assert cli.model.mas.keep == 3


RUNS = [path for path in sorted(CONFIGS.glob("**/*.yaml")) if path.parent.name not in ("mas", "comem", "data", "eval")]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_config_parses(path: Path) -> None:
    """Down to every key and type; nothing is built or downloaded."""
    parser = LightningArgumentParser()
    parser.add_lightning_class_args(L.Trainer, "trainer")
    parser.add_subclass_arguments(L.LightningModule, "model")
    parser.add_lightning_class_args(TaskDataModule, "data")
    parser.add_argument("--seed_everything", type=int)
    parser.parse_object(yaml.safe_load(path.read_text(encoding="utf-8")))
