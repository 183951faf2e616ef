"""Inside the launcher: from a fresh process to the program, each step giving up something.

    launcher   makes the namespaces, stays outside the PID namespace, kills it when the parent says so or ends
      first    process 1 of the namespace: builds the view, waits for the program, takes everything with it
        program  limited, without rights, filtered; then ``execve``

Where namespaces cannot be had, launcher and first are one process, which adopts and kills what the program leaves.
It speaks JSON lines with the parent over one socket, which the program never holds.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data.sandbox import kernel, landlock, supervise, view
from data.sandbox.limits import Limits, apply_rlimits
from data.sandbox.seccomp import seccomp_program

_NAMESPACES = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)


class Launcher:
    """One run, from the request to the ending."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.lines = connection.makefile("rb")
        self.request: dict[str, Any] = json.loads(self.lines.readline())
        self.limits = Limits(**self.request["limits"])
        self.root = Path(self.request["root"])

    def run(self) -> None:
        """In namespaces or without; returns when the program and all that it started have ended."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        if self.request["namespaces"]:
            self._run_in_namespaces()
        else:
            self._run_without()

    def _run_in_namespaces(self) -> None:
        kernel.unshare(_NAMESPACES)
        self._say(unshared=True)
        self.lines.readline()  # the parent has written the maps of users and groups
        _bring_up_loopback()
        launcher = os.getpid()
        first = _fork(lambda: self._be_first(launcher), self._say)
        _close_standard_streams()
        self._wait_for(first)

    def _be_first(self, launcher: int) -> None:
        kernel.die_with_parent(signal.SIGKILL)
        kernel.hide_memory()
        view.enter_view(self.root, self.request["readable"], self.limits.disk_bytes)
        program = _fork(lambda: self._be_program(view.WORK, running=2), self._say)
        _close_standard_streams()

        def exceeded() -> str:
            too_much = supervise.memory_of(supervise.all_processes()) > self.limits.memory_bytes
            return "memory" if too_much else ""

        self._say(**vars(supervise.supervise(program, exceeded, interval_s=0.05)))

    def _run_without(self) -> None:
        kernel.adopt_orphans()
        kernel.hide_memory()
        running = _threads_of(self._outside_user())
        program = _fork(lambda: self._be_program(self.root, running), self._say)
        _close_standard_streams()
        ending = supervise.supervise(program, self._exceeded_without, interval_s=0.1)
        supervise.kill_descendants()
        self._say(**vars(ending))

    def _exceeded_without(self) -> str:
        if select.select([self.connection], [], [], 0)[0]:
            return "stopped"
        if supervise.memory_of(iter(supervise.descendants(os.getpid()))) > self.limits.memory_bytes:
            return "memory"
        return "disk" if _over_disk(self.root, self.limits.disk_bytes) else ""

    def _outside_user(self) -> int:
        user = self.request["user"]
        return os.getuid() if user is None else int(user)

    def _be_program(self, work: Path, running: int) -> None:
        """Never returns: gives up everything, then becomes the program."""
        os.setsid()
        own_user = self.request["user"] is None
        if not own_user:
            _become(view.USER if self.request["namespaces"] else self.request["user"])
        os.chdir(work)
        _write_files(self.request["files"])
        apply_rlimits(self.limits, running)
        kernel.no_new_privileges()
        environment = _environment(work)
        exposed = own_user and not self.request["namespaces"]
        if self.request["landlock"]:
            writable = [work, Path("/dev/null"), Path("/dev/full")]
            readable = [*map(Path, self.request["readable"]), Path("/dev/zero"), Path("/dev/urandom")]
            landlock.restrict_files(readable, writable)
        if self.request["seccomp"]:
            scoped = self.request["landlock"] and landlock.landlock_abi() >= landlock.SCOPED_SIGNALS_ABI
            as_user = os.getpid() if exposed else None
            kernel.set_seccomp(seccomp_program(self.request["namespaces"], as_user, signals_scoped=scoped))
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, for itself
            signal.signal(ignored, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execve(self.request["argv"][0], self.request["argv"], environment)

    def _wait_for(self, first: int) -> None:
        """Until process 1 has ended, and with it the namespace; it is killed once the parent closes its side."""
        ended = os.pidfd_open(first)
        ready, _, _ = select.select([ended, self.connection], [], [])
        if ended not in ready:
            os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)

    def _say(self, **message: object) -> None:
        self.connection.sendall(json.dumps(message).encode() + b"\n")


def main() -> None:
    """Entry point; the one argument is the number of the socket's file descriptor."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    Launcher(connection).run()


def _fork(work: Callable[[], None], say: Callable[..., None]) -> int:
    """The child's process id; the child does ``work`` and ends, telling of an ``OSError``."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except OSError as error:
        say(error=str(error))
    finally:
        os._exit(0)


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _bring_up_loopback() -> None:
    """So that a program can talk to itself over 127.0.0.1; there is no other interface."""
    import fcntl
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # SIOCSIFFLAGS with IFF_UP | IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh22x", b"lo", 0x41))


def _close_standard_streams() -> None:
    """Only the program holds the pipes, so that they end when it does."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.close(null)


def _write_files(files: dict[str, str]) -> None:
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content))


def _environment(work: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(work),
        "TMPDIR": "/tmp" if work == view.WORK else str(work),
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    }


def _over_disk(folder: Path, disk_bytes: int) -> bool:
    """Whether the files below take more than that, or are too many."""
    found = [os.path.join(top, name) for top, _, names in os.walk(folder) for name in names]
    sizes = [os.lstat(path).st_size for path in found if os.path.lexists(path)]
    return sum(sizes) > disk_bytes or len(sizes) > view.INODES


def _threads_of(user: int) -> int:
    return sum(supervise.threads(process) for process in supervise.all_processes() if supervise.owner(process) == user)
