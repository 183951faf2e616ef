"""What installing relies on: a lock of exact versions that setup.cfg accepts, and sentences for what is missing."""

from __future__ import annotations

import ast
import configparser
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from requirements import preflight

ROOT = Path(__file__).resolve().parents[1]
LOCKS = tuple(ROOT / "requirements" / name for name in ("cpu.txt", "models.txt", "alfworld.txt"))
PYTHONS = ("3.11", "3.12", "3.13")
FORBIDDEN = ("torchvision", "torchaudio", "torchcodec", "triton", "llama-cpp-python", "llm", "vllm")


def requirement_lines(text: str) -> list[Requirement]:
    """The requirements of a pip file, without comments and blank lines."""
    bare = (line.split("#")[0].strip() for line in text.splitlines())
    return [Requirement(line) for line in bare if line]


def locked() -> list[Requirement]:
    return [requirement for lock in LOCKS for requirement in requirement_lines(lock.read_text(encoding="utf-8"))]


def pins_on(python: str) -> dict[str, Version]:
    """The version of each package that the lock gives to a Linux machine with this Python."""
    machine = {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    chosen = [r for r in locked() if r.marker is None or r.marker.evaluate(machine)]
    assert len(chosen) == len({canonicalize_name(r.name) for r in chosen}), "a package is locked twice"
    return {canonicalize_name(r.name): Version(next(iter(r.specifier)).version) for r in chosen}


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def declared() -> Iterator[Requirement]:
    """What setup.cfg asks for that the CPU lock answers: the requirements and every extra but `cuda`."""
    cfg = setup_cfg()
    yield from requirement_lines(cfg["options"]["install_requires"])
    for extra, lines in cfg["options.extras_require"].items():
        if extra != "cuda":
            yield from requirement_lines(lines)


def preflight_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "requirements" / "preflight.py")
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)


def assert_is_one_sentence(said: str) -> None:
    assert said.count("\n") == 1
    assert said.startswith("mas-memory: ")
    assert said.endswith(".\n")


def test_every_locked_version_is_exact() -> None:
    for requirement in locked():
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", str(requirement)
        assert "*" not in specifier.version
        assert Version(specifier.version).local is None, f"{requirement}: only some indexes have a local version"


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_is_for_the_cpu(python: str) -> None:
    names = pins_on(python)
    assert not set(FORBIDDEN) & set(names)
    assert not [name for name in names if name.startswith(("nvidia-", "cuda-"))]


@pytest.mark.parametrize("python", PYTHONS)
def test_setup_cfg_accepts_what_is_locked(python: str) -> None:
    pins = pins_on(python)
    for requirement in declared():
        assert pins[canonicalize_name(requirement.name)] in requirement.specifier, str(requirement)


def test_every_requirement_of_the_lock_is_declared() -> None:
    asked = {canonicalize_name(r.name) for r in declared()}
    needed_to_install = {"python-multipart", "setuptools", "uvloop", "wheel"}
    direct = requirement_lines((ROOT / "requirements" / "cpu.in").read_text(encoding="utf-8"))
    assert {canonicalize_name(r.name) for r in direct} <= asked | needed_to_install


def test_withdrawn_releases_of_lightning_are_refused() -> None:
    (lightning,) = (r for r in declared() if r.name == "lightning")
    assert [v for v in ("2.6.1", "2.6.2", "2.6.3", "2.6.6", "3.0") if v in lightning.specifier] == ["2.6.1", "2.6.6"]


def test_setup_cfg_and_preflight_agree_on_pythons() -> None:
    allowed = SpecifierSet(setup_cfg()["options"]["python_requires"])
    assert [f"3.{minor}" for minor in range(9, 16) if f"3.{minor}" in allowed] == list(PYTHONS)
    fits = [m for m in range(9, 16) if preflight.python_complaint((3, m), "python3", []) is None]
    assert [f"3.{minor}" for minor in fits] == list(PYTHONS)


def test_eval_is_a_package_and_a_script() -> None:
    """`eval/` and `eval.py` share a name: the import gives the package, whatever the current folder is."""
    code = "import eval, eval.__main__" if (ROOT / "eval" / "__main__.py").exists() else "import eval"
    subprocess.run([sys.executable, "-c", f"{code}; assert eval.__path__"], cwd=ROOT, check=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", f"{code}; assert eval.__path__"], cwd="/", env=environment, check=True)


def test_preflight_runs_on_old_pythons() -> None:
    source = (ROOT / "requirements" / "preflight.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))


def test_preflight_is_silent_where_nothing_is_missing(tmp_path: Path) -> None:
    assert preflight.disk_complaint(6 * preflight.GIB, 6.0, "/") is None
    assert preflight.venv_complaint([], (3, 12)) is None
    assert preflight_process("space", "0.001", str(tmp_path / ".venv")).stderr == ""


def test_an_old_python_is_named_with_one_that_fits() -> None:
    said = preflight.python_complaint((3, 9), "python3", ["python3.12"])
    assert said is not None
    assert "'python3' is Python 3.9" in said
    assert "needs 3.11 to 3.13" in said
    assert said.endswith("make train PYTHON=python3.12")


def test_a_python_without_venv_names_the_module_and_the_package() -> None:
    said = preflight.venv_complaint(["ensurepip"], (3, 11))
    assert said is not None
    assert "ensurepip" in said
    assert "python3.11-venv" in said


def test_a_full_disk_stops_with_a_sentence(tmp_path: Path) -> None:
    result = preflight_process("space", "1e9", str(tmp_path / ".venv"))
    assert result.returncode == 1
    assert_is_one_sentence(result.stderr)
    assert str(tmp_path) in result.stderr
    assert "free some room" in result.stderr


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError(Failed to establish a new connection: "
            " [Errno -3] Temporary failure in name resolution)'\n"
            "ERROR: Could not find a version that satisfies the requirement absl-py==2.5.1 (from versions: 2.5.0)\n",
            "the Python package registry cannot be reached",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement peft==99.0 (from versions: 0.1, 0.2)\n",
            "the package registry has no peft==99.0 that fits this machine's Python",
        ),
        ("ERROR: Could not install packages: [Errno 28] No space left on device\n", "the disk filled up"),
        ("Collecting x\nERROR: hash mismatch\n", "pip could not install the packages: ERROR: hash mismatch"),
        ("", "it gave no reason"),
    ],
)
def test_pips_failure_becomes_a_sentence(tmp_path: Path, log: str, reason: str) -> None:
    path = tmp_path / "install.log"
    path.write_text(log, encoding="utf-8")
    result = preflight_process("explain", str(path))
    assert result.returncode == 1
    assert_is_one_sentence(result.stderr)
    assert reason in result.stderr
