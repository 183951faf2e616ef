"""The file system that sandboxed code sees: the Python installation, read-only, and a small writable memory disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from data.sandbox import kernel

WORK: Final = Path("/box")
USER: Final = 1000  # the program's user and group inside
INODES: Final = 16384

_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_PLAIN: Final = kernel.MS_NOSUID | kernel.MS_NODEV
_TEXTS: Final = {
    "etc/passwd": f"root:x:0:0::/:/bin/sh\nsandbox:x:{USER}:{USER}::/box:/bin/sh\n",
    "etc/group": f"root:x:0:\nsandbox:x:{USER}:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}


def enter_view(root: Path, readable: Sequence[str], disk_bytes: int) -> None:
    """Replace this mount namespace's tree, for good. The caller is the first process of its PID namespace.

    ``/box`` (where the program starts), ``/tmp`` and ``/dev/shm`` share ``disk_bytes`` and are gone with the namespace;
    all else is read-only.

    Args:
        root: an empty directory to mount on; outside the namespace it stays empty.
        readable: what to show, each under its own path.
        disk_bytes: of everything that is written.
    """
    kernel.mount("none", Path("/"), None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", root, "tmpfs", _PLAIN, "size=1m,mode=755")
    _devices(root)
    _scratch(root, disk_bytes)
    for path in _outermost(readable):  # after the disk: a Python below /tmp would be hidden by it
        _show(root, path)
    for name, text in _TEXTS.items():
        _parent(root / name).write_text(text)
    _processes(root / "proc")
    kernel.pivot_root(root)
    kernel.mount("none", Path("/"), None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _PLAIN)


def _outermost(paths: Sequence[str]) -> list[str]:
    """Without those that lie below another one."""
    return [path for path in sorted(paths) if not any(path.startswith(f"{other}/") for other in paths)]


def _show(root: Path, path: str) -> None:
    target = _parent(root / path.lstrip("/"))
    if os.path.islink(path) and Path(path).parent == Path("/"):  # /bin -> usr/bin
        target.symlink_to(os.readlink(path))
        return
    if Path(path).is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    kernel.mount(path, target, None, kernel.MS_BIND | kernel.MS_REC)
    kernel.make_read_only(target)


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _devices(root: Path) -> None:
    for name in _DEVICES:
        target = _parent(root / "dev" / name)
        target.touch()
        kernel.mount(f"/dev/{name}", target, None, kernel.MS_BIND)
    for name, link in {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        (root / "dev" / name).symlink_to(f"/proc/self/{link}")


def _scratch(root: Path, disk_bytes: int) -> None:
    disk = root / "disk"
    disk.mkdir()
    kernel.mount("tmpfs", disk, "tmpfs", _PLAIN, f"size={disk_bytes},nr_inodes={INODES},mode=755")
    for name, target in {"box": root / "box", "tmp": root / "tmp", "shm": root / "dev/shm"}.items():
        source = disk / name
        source.mkdir()
        if name == "box":
            os.chown(source, USER, USER)
        else:
            source.chmod(0o1777)  # as on any system; nobody but root moves what is shown below /tmp
        target.mkdir()
        kernel.mount(str(source), target, None, kernel.MS_BIND)


def _processes(target: Path) -> None:
    target.mkdir()
    kernel.mount("proc", target, "proc", _PLAIN | kernel.MS_NOEXEC | kernel.MS_RDONLY)
