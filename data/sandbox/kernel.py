"""The Linux calls that Python 3.11 has no name for, through ctypes; each raises ``OSError`` as ``os`` would."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REMOUNT: Final = 32
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECCOMP: Final = 22
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2
_MNT_DETACH: Final = 2
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
# The calls above 424 have one number on every architecture.
_SYS_MOUNT_SETATTR: Final = 442
_SYS_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *args: object, what: str) -> int:
    """A raw system call; ``what`` names it in the error."""
    return _check(_libc.syscall(ctypes.c_long(number), *args), what)


def unshare(flags: int) -> None:
    """Give this process namespaces of its own."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    """See mount(2)."""
    result = _libc.mount(
        source.encode(), bytes(target), kind.encode() if kind else None, ctypes.c_ulong(flags), options.encode()
    )
    _check(result, f"mount {source} on {target}")


def make_read_only(target: Path, nodev: bool = True) -> None:
    """The mount at ``target`` and every one below it: read-only, no set-user-id programs, no devices."""

    class MountAttr(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]

    attributes = MountAttr(attr_set=1 | 2 | (4 if nodev else 0))
    arguments = (_AT_FDCWD, bytes(target), _AT_RECURSIVE, ctypes.byref(attributes), ctypes.sizeof(attributes))
    syscall(_SYS_MOUNT_SETATTR, *arguments, what=f"mount_setattr {target}")


def pivot_root(new_root: Path) -> None:
    """Make ``new_root`` the root directory and let go of the old one, which nothing can reach any more."""
    os.chdir(new_root)
    syscall(_SYS_PIVOT_ROOT[platform.machine()], b".", b".", what="pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount2 of the old root")
    os.chdir("/")


def die_with_parent(signal: int) -> None:
    """Get ``signal`` when the parent thread ends. A change of user undoes it, so call it after."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "PR_SET_PDEATHSIG")


def adopt_orphans() -> None:
    """Descendants whose parent ends become children of this process."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "PR_SET_CHILD_SUBREAPER")


def hide_memory() -> None:
    """No other process of this user may trace this one or read its ``/proc`` files."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE")


def no_new_privileges() -> None:
    """No program executed from here on gains rights, set-user-id or not."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")


def set_seccomp(program: bytes) -> None:
    """Install a classic BPF filter of 8 bytes an instruction; after :func:`no_new_privileges`."""

    class SockFprog(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    filter_program = SockFprog(len(program) // 8, program)
    _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filter_program), 0, 0), "PR_SET_SECCOMP")
