"""Every command of the README, the docs and the configs' remarks: its real parser takes it, its target and files exist.

Nothing heavy is started: ``train.py`` goes as far as the resolved config, ``eval.py`` and ``python -m`` as far as the
parsed arguments, ``make`` is asked what it would do. What is quick, a look at a bundled data set, is done.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import jsonargparse
import pytest
from tensorboard.program import TensorBoard

from eval.cli import main as evaluate
from lightning_modules.cli import MemoryCLI, build

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
STARTS = re.compile(r"(?:python|make|tensorboard|pip|sh|docker|vllm)(?= )")
WITHIN = re.compile(r"(?<=; )python -m .*")  # a remark beside a file of a tree
REMARK = re.compile(r"^#.*?(python (?:train|eval)\.py .+)$", re.MULTILINE)  # of a config
INLINE = re.compile(r"`((?:python|make|tensorboard) [^`]+)`")
PLACEHOLDERS = {
    "NAME [PATH]": "strategyqa sample",
    "…": "configs/train/lts_assistantbench_sample.yaml",
    "RUN": "runs/quickstart/000",
}


def commands(text: str) -> Iterator[str]:
    """Commands of fenced blocks and of inline code, without their remarks.

    A fenced block with one command holds nothing else, so that a line which is none of the known programs is a command
    too, and has no rule.
    """
    prose, *rest = re.split(r"^```.*$", text, flags=re.MULTILINE)
    yield from INLINE.findall(prose)
    for block, after in zip(rest[::2], rest[1::2], strict=True):
        lines = [line.split(" #")[0].strip() for line in block.splitlines() if line.strip()]
        if any(map(STARTS.match, lines)):
            yield from (line for line in lines if line and not line.startswith("#"))
        else:
            yield from (found[0].strip() for line in lines if (found := WITHIN.search(line)))
        yield from INLINE.findall(after)


class Parsed(Exception):  # noqa: N818 - it is what should happen
    """The arguments are good; the work that would follow is not done."""


def parse_only(patch: pytest.MonkeyPatch, main: Callable[[Sequence[str]], object], arguments: Sequence[str]) -> None:
    """Run ``main`` up to the end of the first ``parse_args``."""

    def stopping(parse: Callable[..., object]) -> Callable[..., object]:
        def parse_args(*args: object, **kwargs: object) -> object:
            parse(*args, **kwargs)
            raise Parsed

        return parse_args

    with patch.context() as context:
        for parser in (argparse.ArgumentParser, jsonargparse.ArgumentParser):
            context.setattr(parser, "parse_args", stopping(parser.parse_args))
        with pytest.raises(Parsed):
            main(arguments)


def check_train(patch: pytest.MonkeyPatch, arguments: Sequence[str], runs: Path) -> None:
    """Up to the resolved config, every value of it checked against its type; a run to go on from is there."""
    last = runs / "quickstart/000/checkpoints/last.ckpt"
    last.parent.mkdir(parents=True, exist_ok=True)
    last.touch()
    with patch.context() as context:
        context.setattr(MemoryCLI, "instantiate_classes", lambda self: None)
        build([*arguments, "--runs", str(runs)])


def check_module(patch: pytest.MonkeyPatch, name: str, arguments: Sequence[str]) -> None:
    """``python -m name``: a package's ``__main__``, or the module itself."""
    spec = find_spec(name)
    assert spec is not None, f"there is no module {name}"
    module = import_module(f"{name}.__main__" if spec.submodule_search_locations else name)
    if name == "data.check":
        module.main(arguments)
    else:
        parse_only(patch, module.main, arguments)


def check(patch: pytest.MonkeyPatch, command: str, runs: Path) -> None:
    """Raises ``SystemExit`` or ``AssertionError`` for a command that would not start."""
    for placeholder, value in PLACEHOLDERS.items():
        command = command.replace(placeholder, value)
    words = shlex.split(command)
    missing = [word for word in words if word.endswith((".yaml", ".py")) and not (ROOT / word).is_file()]
    assert not missing, f"{command!r} names {missing}, which do not exist"
    match words:
        case ["python", "train.py", *arguments]:
            check_train(patch, arguments, runs)
        case ["python", "eval.py", *arguments]:
            parse_only(patch, evaluate, arguments)
        case ["python", "-m", name, *arguments]:
            check_module(patch, name, arguments)
        case ["make", *targets]:
            made = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True)
            assert made.returncode == 0, made.stderr
        case ["tensorboard", *arguments]:
            TensorBoard().configure(["tensorboard", *arguments])
        case _:
            raise AssertionError(f"no rule covers {command!r}")


def documented() -> list[str]:
    found = {each for page in PAGES for each in commands(page.read_text("utf-8"))}
    return sorted(found.union(*(REMARK.findall(config.read_text("utf-8")) for config in CONFIGS)))


@pytest.mark.parametrize("command", documented())
def test_a_documented_command_would_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str) -> None:
    monkeypatch.chdir(ROOT)
    check(monkeypatch, command, tmp_path)


PAGE = """Then `python eval.py --limit 3` and `short.py`.
```
make test       # all
pip install x
```
In between `make lint`.
```
a tree   by it; python -m memory.inspect RUN
```
```
data  <-  memory
```
"""


def test_commands_are_found_in_blocks_and_in_prose() -> None:
    found = ["python eval.py --limit 3", "make test", "pip install x", "make lint", "python -m memory.inspect RUN"]
    assert list(commands(PAGE)) == found


@pytest.mark.parametrize(
    "command",
    [
        "python train.py --model.init_args.lmpo.group_sice 4",
        "python train.py --data.lmpo.steps many",
        "python train.py --config configs/missing.yaml",
        "python eval.py --limits 50",
        "python eval.py --mas rollout.mas.dylan.DyLANs",
        "python eval.py --config configs/train/latentmem.yaml",
        "python -m eval.bench rolout --episodes 3",
        "python -m eval.bench rollout --episode-count 3",
        "python -m eval.missing",
        "python -m eval.lts_live --config configs/missing.yaml",
        "python -m data.check missing",
        "make missing",
        "tensorboard --logdirs runs",
        "vllm serve x",
    ],
)
def test_a_bad_command_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises((SystemExit, AssertionError, pytest.fail.Exception)):
        check(monkeypatch, command, tmp_path)
