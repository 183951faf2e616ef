"""The Python that model-written code runs on: this one, with its packages, and what of the file system it needs."""

from __future__ import annotations

import os
import site
import sys
from dataclasses import dataclass
from pathlib import Path

# Libraries, programs and the few settings that they read.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
_SETTINGS = ("ld.so.cache", "alternatives", "localtime", "mime.types", "fonts")


@dataclass(frozen=True)
class Interpreter:
    """What to execute.

    Attributes:
        executable: absolute.
        readable: the files and directories that it and its packages need, absolute and existing.
    """

    executable: str
    readable: tuple[str, ...]


def this_interpreter() -> Interpreter:
    """The running Python with its site-packages. An editable install's source lies elsewhere and stays hidden."""
    places = [sys.base_prefix, sys.prefix, *(path for path in site.getsitepackages() if Path(path).is_dir())]
    settings = [f"/etc/{name}" for name in _SETTINGS]
    # A path through a link is needed as written (pyvenv.cfg, links to programs) and as it really is.
    wanted = dict.fromkeys([*_SYSTEM, *settings, *places, *map(os.path.realpath, places)])
    in_environment = Path(os.path.realpath(sys.prefix), "bin", Path(sys.executable).name)
    executable = str(in_environment) if in_environment.exists() else os.path.realpath(sys.executable)
    return Interpreter(executable, tuple(path for path in wanted if Path(path).exists()))
