"""Bad configs through the parser of ``train.py``: refused when read, with the key, before a model is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightning_modules import latentmem, lts
from lightning_modules.cli import build

ROOT = Path(__file__).parents[2]
OPENAI = "model.init_args.engine=rollout.openai_engine.OpenAIEngine"
SERVER = "model.init_args.engine=rollout.vllm_server_engine.VLLMServerEngine"
SECRET = "sk-0123456789abcdef"


def refused(args: list[str], config: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What ``train.py`` says before it ends; a backbone is never loaded."""

    def loaded(*_: object, **__: object) -> None:
        raise AssertionError("the config was accepted")

    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(latentmem, "Backbone", loaded)
    monkeypatch.setattr(lts, "Backbone", loaded)
    with pytest.raises(SystemExit) as ended:
        build(["--config", f"configs/{config}.yaml", *[f"--{arg}" for arg in args]])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("args", "key", "why"),
    [
        (["model.init_args.mas=MacNett"], "mas", "did you mean 'rollout.mas.macnet.MacNet'?"),
        (["model.init_args.mas=MacNet", "model.init_args.mas.agents_total=five"], "agents_total", "five"),
        (["model.init_args.mas=MacNet", "model.init_args.mas.edges=[[0,1],[1,0]]"], "mas.init_args.edges", "the cycle"),
        (["model.init_args.mas=DyLAN", "model.init_args.mas.team=[expert,critik]"], "critik", "did you mean"),
        (["model.init_args.rollout.max_tokens=-1"], "rollout.max_tokens", "at least 1"),
        (["model.init_args.rollout.injection=somewhere"], "injection", "before_generation_prompt"),
        (["model.init_args.lmpo.micro_batch=0"], "lmpo.micro_batch", "at least 1"),
        (["model.init_args.engine.max_model_length=9"], "max_model_length", "did you mean 'max_model_len'?"),
        (["model.init_args.engine.gpu_memory_utilization=45"], "engine.init_args.gpu_memory_utilization", "at most 1"),
        (["model.init_args.engine.dtype=flaot32"], "dtype", "float32"),
        ([SERVER, "model.init_args.engine.model=x", "model.init_args.engine.urls=[]"], "urls", "at least one URL"),
        ([OPENAI, "model.init_args.engine.model=x"], "api_key_env", "OPENAI_API_KEY is not set"),
        (
            [OPENAI, "model.init_args.engine.model=x", "model.init_args.engine.api_key_env=PATH"],
            "model.engine",
            "takes text only",
        ),
    ],
)
def test_a_bad_setting_of_latentmem(
    args: list[str], key: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(args, "quickstart", monkeypatch, capsys)
    assert key in said
    assert why in said


@pytest.mark.parametrize("name", ["teams.init_args.teams", "max_concurrent"])
def test_no_team_and_no_place_for_an_episode(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused([f"model.init_args.{name}=0"], "train/lts_gym", monkeypatch, capsys)
    assert f"{name} is 0; it must be at least 1" in said


def test_a_key_in_the_place_of_its_name_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [OPENAI, "model.init_args.engine.model=x", f"model.init_args.engine.api_key_env={SECRET}"]
    said = refused(args, "quickstart", monkeypatch, capsys)
    assert "api_key_env must be the NAME of an environment variable" in said
    assert SECRET not in said
