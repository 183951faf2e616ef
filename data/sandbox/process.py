"""The parent's side of one sandboxed run: start the launcher, feed and read the program, keep the clock."""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from data.sandbox import view
from data.sandbox.interpreter import Interpreter
from data.sandbox.isolation import Isolation, SandboxUnavailableError, sandbox_user
from data.sandbox.limits import Limits

_ROOT: Final = Path(__file__).resolve().parents[2]
_LAUNCH: Final = "import sys; sys.path.append(sys.argv.pop(1)); from data.sandbox.launch import main; main()"
_GRACE_S: Final = 10.0
_CHUNK: Final = 1 << 16


@dataclass(frozen=True)
class SandboxResult:
    """What a run left behind.

    Attributes:
        exit_code: of the program; ``None`` when a signal ended it.
        signal: that signal.
        stdout: at most ``Limits.output_bytes``; decode with ``errors="replace"``, for programs print what they like.
        stderr: as ``stdout``.
        timed_out: the wall limit ended it.
        truncated: it printed more than it may, which ended it.
        exceeded: the total that ended it, ``"memory"`` or ``"disk"``; empty for none.
        means: what kept it in, such as ``namespaces+seccomp+rlimits``.
        wall_s: from the start of the launcher to the end of the last process.
    """

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    exceeded: str
    means: str
    wall_s: float

    @property
    def ok(self) -> bool:
        """It ended by itself with exit code 0."""
        return self.exit_code == 0 and not (self.timed_out or self.truncated or self.exceeded)


def run_once(
    files: Mapping[str, str | bytes],
    argv: Sequence[str],
    limits: Limits,
    stdin: bytes,
    isolation: Isolation,
    interpreter: Interpreter,
) -> SandboxResult:
    """One run by given means; arguments and result are those of :func:`data.sandbox.sandbox.run_python`.

    Raises:
        SandboxUnavailableError: these means do not work here.
    """
    root = Path(tempfile.mkdtemp(prefix="mas-sandbox-"))
    ours, theirs = socket.socketpair()
    start = time.monotonic()
    try:
        with ours, theirs, _start_launcher(theirs) as launcher:
            theirs.close()
            user = sandbox_user(launcher.pid)
            if user is not None and not isolation.namespaces:
                os.chown(root, user, user)
            request = _request(files, argv, limits, isolation, interpreter)
            ours.sendall(json.dumps({**request, "root": str(root), "user": user}).encode() + b"\n")
            run = _Run(launcher, ours, limits, start + limits.wall_s, stdin, user)
            run.follow()
            return run.result(isolation.means, time.monotonic() - start)
    finally:
        _remove(root)


class _Run:
    """What is known of a run while it goes on."""

    def __init__(
        self,
        launcher: subprocess.Popen[bytes],
        connection: socket.socket,
        limits: Limits,
        deadline: float,
        stdin: bytes,
        user: int | None,
    ) -> None:
        self.launcher = launcher
        self.connection = connection
        self.limits = limits
        self.deadline = deadline
        self.stdin = stdin
        self.user = user
        self.read = {"stdout": bytearray(), "stderr": bytearray(), "connection": bytearray()}
        self.told: dict[str, Any] = {}
        self.timed_out = False
        self.truncated = False
        self.stopped = False

    def follow(self) -> None:
        """Until every stream has ended, which the last process to end closes."""
        with selectors.DefaultSelector() as selector:
            for name in ("stdout", "stderr"):
                selector.register(getattr(self.launcher, name), selectors.EVENT_READ, name)
            selector.register(self.connection, selectors.EVENT_READ, "connection")
            assert self.launcher.stdin is not None
            os.set_blocking(self.launcher.stdin.fileno(), False)
            selector.register(self.launcher.stdin, selectors.EVENT_WRITE, "stdin")
            while len(selector.get_map()) > ("stdin" in {key.data for key in selector.get_map().values()}):
                for key, _ in selector.select(max(0.0, self.deadline - time.monotonic())):
                    if not (self._write(key.fd) if key.data == "stdin" else self._take(key.fd, key.data)):
                        selector.unregister(key.fileobj)
                        if key.data == "stdin":
                            self.launcher.stdin.close()
                if time.monotonic() >= self.deadline:
                    self._out_of_time()
        self.launcher.wait(timeout=_GRACE_S)

    def result(self, means: str, wall_s: float) -> SandboxResult:
        """Raises ``SandboxUnavailableError`` if the program was never started."""
        failed = self.told.get("error") or (self.launcher.returncode and not self.stopped and self._last_words())
        if failed:
            raise SandboxUnavailableError(failed)
        return SandboxResult(
            exit_code=self.told.get("exit_code"),
            signal=self.told.get("signal") or (None if "exit_code" in self.told else int(signal.SIGKILL)),
            stdout=bytes(self.read["stdout"][: self.limits.output_bytes]),
            stderr=bytes(self.read["stderr"][: self.limits.output_bytes]),
            timed_out=self.timed_out,
            truncated=self.truncated,
            exceeded="" if self.stopped else self.told.get("exceeded", ""),
            means=means,
            wall_s=wall_s,
        )

    def _take(self, descriptor: int, name: str) -> bool:
        """Read what is there; whether there may be more."""
        chunk = os.read(descriptor, _CHUNK)
        so_far = self.read[name]
        if name == "connection":
            so_far += chunk
            self._listen(so_far)
        elif len(so_far) + len(chunk) > self.limits.output_bytes:
            so_far += chunk[: self.limits.output_bytes - len(so_far)]
            self.truncated = True
            self._stop()
        else:
            so_far += chunk
        return bool(chunk)

    def _write(self, descriptor: int) -> bool:
        try:
            self.stdin = self.stdin[os.write(descriptor, self.stdin[:_CHUNK]) :]
        except BrokenPipeError:
            return False
        return bool(self.stdin)

    def _listen(self, heard: bytearray) -> None:
        while b"\n" in heard:
            line, _, rest = bytes(heard).partition(b"\n")
            heard[:] = rest
            message = json.loads(line)
            if message.get("unshared"):
                _write_maps(self.launcher.pid, self.user)
                self.connection.sendall(b"mapped\n")
            self.told |= message

    def _out_of_time(self) -> None:
        if self.stopped:  # the launcher had its grace to end everything
            os.killpg(self.launcher.pid, signal.SIGKILL)
        self.timed_out = self.timed_out or not self.stopped
        self._stop()
        self.deadline = time.monotonic() + _GRACE_S

    def _stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            self.connection.shutdown(socket.SHUT_WR)

    def _last_words(self) -> str:
        lines = self.read["stderr"].decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line), f"the launcher ended with {self.launcher.returncode}")


def _start_launcher(connection: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAUNCH, str(_ROOT), str(connection.fileno())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[connection.fileno()],
        env={},
        cwd="/",
        start_new_session=True,
    )


def _request(
    files: Mapping[str, str | bytes],
    argv: Sequence[str],
    limits: Limits,
    isolation: Isolation,
    interpreter: Interpreter,
) -> dict[str, object]:
    contents = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    return {
        "files": {name: base64.b64encode(content).decode() for name, content in contents.items()},
        "argv": [interpreter.executable, "-s", *argv],
        "readable": interpreter.readable,
        "limits": asdict(limits),
        "namespaces": isolation.namespaces,
        "seccomp": isolation.seccomp,
        "landlock": isolation.landlock,
    }


def _write_maps(process: int, user: int | None) -> None:
    """Which users and groups exist inside: the program's, and as root also 0, under which the view is built."""
    folder = Path(f"/proc/{process}")
    if user is None:
        (folder / "setgroups").write_text("deny")
        (folder / "gid_map").write_text(f"{view.USER} {os.getegid()} 1\n")
        (folder / "uid_map").write_text(f"{view.USER} {os.geteuid()} 1\n")
    else:
        for name in ("gid_map", "uid_map"):
            (folder / name).write_text(f"0 0 1\n{view.USER} {user} 1\n")


def _remove(root: Path) -> None:
    """The directory with all that a program without a mount namespace wrote, forbidden folders included."""
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o700)
    shutil.rmtree(root)
