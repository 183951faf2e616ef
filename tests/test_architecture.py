"""The house rules that a reader can rely on: which way imports go, how long a file gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("data", "memory", "rollout", "lightning_modules", "eval")
LONGEST_FILE = 500
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def relative_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported_modules(source: str, package: str) -> Iterator[str]:
    """Dotted names of all that `source`, a module of `package`, imports anywhere: in functions and for types too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            anchor = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            yield ".".join([*anchor, *([node.module] if node.module else [])])


def forbidden_imports(source: str, package: str) -> list[str]:
    """Imports of a room that lies to the right of the module's own, or of one of the scripts."""
    to_the_right = (*ROOMS[ROOMS.index(package.split(".")[0]) + 1 :], "train", "tests")
    return [name for name in imported_modules(source, package) if name.split(".")[0] in to_the_right]


def has_future_annotations(source: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
        for node in ast.parse(source).body
    )


def is_only_docstring(source: str) -> bool:
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in ast.parse(source).body)


@pytest.mark.parametrize(
    ("source", "package", "found"),
    [
        ("import torch, memory.bank", "data", ["memory.bank"]),
        ("from rollout import engine", "memory.text", ["rollout"]),
        ("def late() -> None:\n    import eval.table", "lightning_modules", ["eval.table"]),
        ("from data.task import Task\nfrom . import bank\nfrom .. import memory", "memory.text", []),
        ("import train", "eval", ["train"]),
        ("from memory.memory import Memory", "eval", []),
    ],
)
def test_an_import_to_the_right_is_found(source: str, package: str, found: list[str]) -> None:
    assert forbidden_imports(source, package) == found


def test_every_room_has_modules() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=relative_name)
def test_imports_go_one_way(path: Path) -> None:
    package = ".".join(path.relative_to(ROOT).parent.parts)
    assert forbidden_imports(path.read_text(encoding="utf-8"), package) == []


@pytest.mark.parametrize("path", [*MODULES, ROOT / "train.py", ROOT / "eval.py"], ids=relative_name)
def test_a_file_stays_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", MODULES, ids=relative_name)
def test_annotations_are_never_evaluated(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert is_only_docstring(source) or has_future_annotations(source)
