"""Say in one plain sentence what this machine lacks, before pip runs (`start`, `space`) or after it failed (`explain`).

It runs on whatever Python the user has, so its syntax stays that of 3.6 and it needs nothing but the standard library.
"""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from typing import List, Optional, Tuple

OLDEST = (3, 11)
NEWEST = (3, 13)
GIB = 1024**3
FRESH_INSTALL_GIB = 6.0
REPAIR_GIB = 1.0
NETWORK_SIGNS = (
    "name resolution",
    "Name or service not known",
    "nodename nor servname",
    "NewConnectionError",
    "Failed to establish a new connection",
    "Max retries exceeded",
    "Connection refused",
    "ConnectTimeout",
    "ReadTimeout",
    "Read timed out",
    "ProxyError",
    "SSLError",
    "Connection aborted",
    "Network is unreachable",
)


def python_complaint(version: Tuple[int, int], name: str, others: List[str]) -> Optional[str]:
    """What is wrong with this Python version, or None. `others` are interpreters of this machine that would do."""
    if OLDEST <= version <= NEWEST:
        return None
    advice = "install one of them and name it, as in: make train PYTHON=/path/to/python3.12"
    if others:
        advice = f"this machine has one that fits, so run: make train PYTHON={others[0]}"
    return (
        f"'{name}' is Python {version[0]}.{version[1]}, and this project needs "
        f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}; {advice}"
    )


def venv_complaint(missing: List[str], version: Tuple[int, int]) -> Optional[str]:
    """What is wrong with the interpreter's `venv`, or None. `missing` are the standard modules it lacks."""
    if not missing:
        return None
    return (
        f"this Python lacks the standard module {' and '.join(missing)}, so it cannot make a virtual environment; "
        f"on Debian and Ubuntu: apt-get install python{version[0]}.{version[1]}-venv"
    )


def disk_complaint(free_bytes: int, needed_gib: float, folder: str) -> Optional[str]:
    """What is wrong with the room on the disk that holds `folder`, or None."""
    if free_bytes >= needed_gib * GIB:
        return None
    return (
        f"the disk of {folder} has {free_bytes / GIB:.1f} GiB free, and the packages need {needed_gib:.0f} GiB; "
        "free some room and run make again"
    )


def pip_complaint(log: str, log_path: str) -> str:
    """Why pip failed, read from what it printed."""
    if "No space left on device" in log:
        return "the disk filled up while packages were installed; free some room and run make again"
    if any(sign in log for sign in NETWORK_SIGNS):
        return (
            "the Python package registry cannot be reached; check the network, or pip's proxy and index settings "
            "(pip config list), and run make again "
            f"(details: {log_path})"
        )
    unmet = re.search(r"satisfies the requirement (\S+) \(from versions", log)
    if unmet is not None:
        return f"the package registry has no {unmet.group(1)} that fits this machine's Python (details: {log_path})"
    errors = [line.strip() for line in log.splitlines() if line.startswith(("ERROR", "error"))]
    reason = errors[-1].rstrip(".") if errors else "it gave no reason"
    return f"pip could not install the packages: {reason} (details: {log_path})"


def start_complaint(interpreter: str, venv: str) -> Optional[str]:
    """The first thing that keeps this interpreter from installing into `venv`, or None."""
    version = sys.version_info[:2]
    missing = [module for module in ("venv", "ensurepip") if importlib.util.find_spec(module) is None]
    filled = glob.glob(os.path.join(venv, "lib", "python*", "site-packages", "vllm"))
    needed = REPAIR_GIB if filled else FRESH_INSTALL_GIB
    return (
        python_complaint(version, interpreter, [] if OLDEST <= version <= NEWEST else fitting_interpreters())
        or venv_complaint(missing, version)
        or space_complaint(needed, venv)
    )


def space_complaint(needed_gib: float, venv: str) -> Optional[str]:
    """`disk_complaint` for the disk on which `venv` is or will be."""
    folder = os.path.dirname(os.path.abspath(venv))
    return disk_complaint(shutil.disk_usage(folder).free, needed_gib, folder)


def fitting_interpreters() -> List[str]:
    """Commands on the PATH that start a Python which would do, newest first."""
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    return [name for name in names if shutil.which(name) and starts(name)]


def starts(command: str) -> bool:
    """Whether the command runs at all: a version manager's stand-in may be on the PATH without its Python."""
    quiet = subprocess.DEVNULL
    return subprocess.call([command, "-c", "import venv, ensurepip"], stdout=quiet, stderr=quiet) == 0


def main(arguments: List[str]) -> int:
    """`start INTERPRETER VENV`, `space GIB VENV` or `explain LOG`: 1 and a sentence on stderr if something is amiss."""
    step, rest = arguments[0], arguments[1:]
    complaint = None  # type: Optional[str]
    if step == "start":
        complaint = start_complaint(rest[0], rest[1])
    elif step == "space":
        complaint = space_complaint(float(rest[0]), rest[1])
    else:
        with open(rest[0], encoding="utf-8", errors="replace") as log:
            complaint = pip_complaint(log.read(), rest[0])
    if complaint is None:
        return 0
    sys.stderr.write(f"mas-memory: {complaint}.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
