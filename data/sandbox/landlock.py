"""Landlock: which files a process may touch where it cannot have a mount namespace. Needs Linux 5.13 and no rights."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from data.sandbox.kernel import syscall

_SYS_CREATE_RULESET: Final = 444
_SYS_ADD_RULE: Final = 445
_SYS_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15
_SCOPES: Final = 1 | 2  # abstract sockets and signals stay inside
SCOPED_SIGNALS_ABI: Final = 6


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def landlock_abi() -> int:
    """The kernel's Landlock version; 0 where it has none."""
    try:
        return syscall(_SYS_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION, what="landlock")
    except OSError:
        return 0


def restrict_files(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """From here on this process and its children reach these files and directories only. After no_new_privileges."""
    abi = landlock_abi()
    # 13 rights in version 1; refer, truncate and ioctl came with 2, 3 and 5.
    handled = (1 << 13) - 1 | sum(1 << bit for bit, since in ((13, 2), (14, 3), (15, 5)) if abi >= since)
    attributes = _Ruleset(handled, 0, _SCOPES if abi >= SCOPED_SIGNALS_ABI else 0)
    size = ctypes.c_size_t(24 if abi >= SCOPED_SIGNALS_ABI else 8)
    ruleset = syscall(_SYS_CREATE_RULESET, ctypes.byref(attributes), size, 0, what="landlock_create_ruleset")
    for path, rights in [*((path, _READ) for path in readable), *((path, handled) for path in writable)]:
        _allow(ruleset, path, rights & handled)
    syscall(_SYS_RESTRICT_SELF, ruleset, 0, what="landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = _PathBeneath(rights if path.is_dir() else rights & _ON_FILES, parent)
    syscall(_SYS_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0, what=f"landlock_add_rule {path}")
    os.close(parent)
