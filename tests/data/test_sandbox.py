"""Running a program: what it gets, what it is told, what stops it, and which means keep it in."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from data.sandbox import landlock, sandbox, seccomp
from data.sandbox.interpreter import Interpreter, this_interpreter
from data.sandbox.isolation import Isolation, SandboxUnavailableError
from data.sandbox.kernel import adopt_orphans
from data.sandbox.limits import MIB, Limits
from data.sandbox.sandbox import SandboxResult, run_python, strongest_isolation
from data.sandbox.supervise import running_descendants

SMALL = Limits(cpu_s=2, wall_s=20.0, memory_bytes=256 * MIB, processes=16, file_bytes=2 * MIB, disk_bytes=4 * MIB)
LANDLOCK = Isolation(namespaces=False, seccomp=True, landlock=True)
DEBIAN_PYTHON = Path("/usr/bin/python3")


def run(code: str, limits: Limits = SMALL, isolation: Isolation | None = None) -> SandboxResult:
    return run_python({"main.py": code}, ["main.py"], limits, isolation=isolation)


@pytest.fixture
def without_namespaces(monkeypatch: pytest.MonkeyPatch) -> Isolation:
    """As in a container that forbids them; root's own Python may be closed to others, so the system's is taken."""
    if not DEBIAN_PYTHON.exists() or not landlock.landlock_abi():
        pytest.skip("needs /usr/bin/python3 and Landlock")
    readable = tuple(path for path in this_interpreter().readable if path.startswith(("/usr", "/lib", "/bin", "/etc")))
    monkeypatch.setattr(sandbox, "this_interpreter", lambda: Interpreter(str(DEBIAN_PYTHON), readable))
    return LANDLOCK


def test_a_program_gets_its_files_arguments_and_input() -> None:
    code = "import sys, part; print(part.x, sys.argv[1:], sys.stdin.read(), open('deep/data.bin', 'rb').read())"
    files: dict[str, str | bytes] = {"main.py": code, "part.py": "x = 'é'", "deep/data.bin": b"\xff"}
    result = run_python(files, ["main.py", "a b"], SMALL, stdin=b"line")
    assert result.stdout.decode() == "é ['a b'] line b'\\xff'\n"
    assert result.ok
    assert result.exit_code == 0
    assert result.signal is None


@pytest.mark.parametrize("size", [0, 1, 200_000])
def test_input_of_any_size_arrives_whole(size: int) -> None:
    result = run_python({}, ["-c", "import sys; print(len(sys.stdin.buffer.read()))"], SMALL, stdin=b"x" * size)
    assert int(result.stdout) == size


def test_input_that_is_not_read_hurts_no_one() -> None:
    assert run_python({}, ["-c", "pass"], SMALL, stdin=b"x" * 1_000_000).ok


def test_how_it_ended_is_told() -> None:
    assert run("raise SystemExit(3)").exit_code == 3
    killed = run("import os; os.kill(os.getpid(), 15)")
    assert (killed.exit_code, killed.signal, killed.ok) == (None, 15, False)
    failed = run("import sys; print('out'); sys.exit('the reason')")
    assert (failed.stdout, failed.stderr, failed.exit_code) == (b"out\n", b"the reason\n", 1)


def test_the_wall_limit_ends_it() -> None:
    result = run("import time; print('began', flush=True); time.sleep(60)", Limits(wall_s=3.0))
    assert result.timed_out
    assert not result.ok
    assert 3.0 <= result.wall_s < 15


def test_the_processor_limit_ends_it() -> None:
    result = run("while True: pass", Limits(cpu_s=1, wall_s=60.0))
    assert result.signal in (24, 9)
    assert not result.timed_out


def test_output_beyond_the_limit_ends_it() -> None:
    result = run("while True: print('x' * 1000)", Limits(output_bytes=5000))
    assert result.truncated
    assert len(result.stdout) == 5000
    assert not result.ok


def test_memory_is_limited_for_one_and_for_all_together() -> None:
    assert b"MemoryError" in run("bytearray(300 << 20)").stderr
    fork = (
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        x = b'x' * (100 << 20); time.sleep(20)\n"
    )
    assert run(f"{fork}time.sleep(20)", SMALL).exceeded == "memory"


def test_files_are_limited_for_one_and_for_all_together() -> None:
    assert b"File too large" in run("open('a', 'wb').write(bytes(3 << 20))").stderr
    many = "for i in range(8): open(f'/tmp/{i}', 'wb').write(bytes(1 << 20))"
    assert b"No space left" in run(many).stderr


def test_a_daemon_ends_with_the_program() -> None:
    adopt_orphans()
    before = running_descendants(os.getpid())
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        time.sleep(600)
    os._exit(0)
print("done")
"""
    result = run(code)
    assert result.stdout == b"done\n"
    assert running_descendants(os.getpid()) == before


def test_nothing_of_the_parent_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    (tmp_path / "token").write_text("secret")
    code = f"import os; print('SOME_TOKEN' in os.environ, os.path.exists({str(tmp_path / 'token')!r}), os.getppid())"
    assert run(code).stdout.split()[:2] == [b"False", b"False"]


def test_installed_packages_can_be_imported_and_not_changed() -> None:
    code = "import numpy, pytest; print(numpy.arange(3).sum()); open(numpy.__file__, 'a')"
    result = run(code, Limits())
    assert result.stdout == b"3\n"
    assert result.stderr.splitlines()[-1].startswith((b"OSError: [Errno 30] Read-only", b"PermissionError"))


def test_a_program_can_talk_to_itself_over_the_loopback() -> None:
    code = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
client.sendall(b"hello")
print(server.accept()[0].recv(5))
"""
    assert run(code).stdout == b"b'hello'\n"


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", "."])
def test_a_file_outside_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="relative"):
        run_python({name: "x"}, ["-c", "pass"])


def test_a_python_below_tmp_is_shown_there_and_cannot_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a checkout in /tmp; what the program writes there lies beside it."""
    if not strongest_isolation().namespaces:
        pytest.skip("needs namespaces")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        part = Path(folder) / "env" / "part"
        part.mkdir(parents=True)
        (part / "x.txt").write_text("seen")
        here = this_interpreter()
        shown = Interpreter(here.executable, (*here.readable, str(part)))
        monkeypatch.setattr(sandbox, "this_interpreter", lambda: shown)
        code = f"""
import os, pathlib
part = pathlib.Path({str(part)!r})
print((part / "x.txt").read_text())
pathlib.Path("/tmp/mine").write_text("free")
for act in (lambda: (part / "x.txt").write_text("changed"), lambda: os.rename({folder!r}, "/tmp/moved")):
    try:
        act()
    except OSError:
        print("refused")
"""
        assert run(code).stdout.decode().split() == ["seen", "refused", "refused"]


def test_slots_bound_how_many_run_at_once() -> None:
    slots, now, most = threading.Semaphore(2), [], []

    class Counted:
        def __enter__(self) -> None:
            slots.acquire()
            now.append(1)
            most.append(len(now))

        def __exit__(self, *_: object) -> None:
            now.pop()
            slots.release()

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _: run_python({}, ["-c", "pass"], slots=Counted()), range(6)))
    assert all(result.ok for result in results)
    assert max(most) <= 2


def test_no_directory_is_left() -> None:
    before = set(Path(tempfile.gettempdir()).glob("mas-sandbox-*"))
    run("import os; os.mkdir('closed', 0); open('x', 'w')")
    # Others may run sandboxes of their own at this moment.
    time.sleep(0.1)
    mine = [path for path in set(Path(tempfile.gettempdir()).glob("mas-sandbox-*")) - before if any(path.iterdir())]
    assert mine == []


@pytest.mark.parametrize("name", ["cpu_s", "wall_s", "memory_bytes", "processes", "output_bytes"])
def test_a_limit_is_positive(name: str) -> None:
    with pytest.raises(ValueError, match=f"Limits.{name} must be positive"):
        Limits(**{name: 0})


def test_the_strongest_means_are_named() -> None:
    assert strongest_isolation().means in ("namespaces+seccomp+rlimits", "landlock+seccomp+rlimits", "seccomp+rlimits")
    assert run("pass").means == strongest_isolation().means


def test_elsewhere_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SandboxUnavailableError, match=r"needs Linux .* and this is win32"):
        run_python({}, ["-c", "pass"])


def test_where_nothing_works_every_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Interpreter("/nonexistent/python", this_interpreter().readable)
    monkeypatch.setattr(sandbox, "this_interpreter", lambda: broken)
    strongest_isolation.cache_clear()
    with pytest.raises(SandboxUnavailableError, match=r"namespaces\+seccomp\+rlimits: .*No such file.*rlimits: "):
        strongest_isolation()


def test_without_namespaces_landlock_takes_over(without_namespaces: Isolation, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "token").write_text("secret")
    (tmp_path / "token").chmod(0o666)
    code = f"""
import os, socket
for attempt in (
    lambda: open({str(tmp_path / "token")!r}).read(),
    lambda: open({str(tmp_path / "token")!r}, "w"),
    lambda: os.unlink({str(tmp_path / "token")!r}),
    lambda: os.listdir("/proc"),
    lambda: socket.socket(),
    lambda: os.kill({os.getpid()}, 0),
):
    try:
        attempt()
        print("got through")
    except OSError as error:
        print(type(error).__name__)
open("mine", "w").write("works")
print(open("mine").read())
"""
    result = run(code, isolation=without_namespaces)
    assert result.means == "landlock+seccomp+rlimits"
    assert result.stdout.split() == [*[b"PermissionError"] * 6, b"works"]


def test_without_namespaces_nothing_outlives_the_program_either(without_namespaces: Isolation) -> None:
    adopt_orphans()
    before = running_descendants(os.getpid())
    code = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)"
    )
    assert run(code, isolation=without_namespaces).ok
    assert running_descendants(os.getpid()) == before
    disk = "import time\nfor i in range(8): open(f'{i}', 'wb').write(bytes(1 << 20))\ntime.sleep(20)"
    assert run(disk, isolation=without_namespaces).exceeded == "disk"
    assert run("import time; time.sleep(60)", Limits(wall_s=2.0), without_namespaces).timed_out


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("as_user", [None, 4711])
def test_every_jump_of_the_filter_lands_inside_it(machine: str, as_user: int | None) -> None:
    import struct

    program = seccomp.seccomp_program(True, as_user, machine=machine)
    code = list(struct.iter_unpack("=HBBI", program))
    jumps = [(at, max(true, false)) for at, (kind, true, false, _) in enumerate(code) if kind in (0x15, 0x35, 0x45)]
    assert all(at + 1 + distance < len(code) for at, distance in jumps)
    assert code[-1][0] == 0x06
    assert not seccomp.supported("riscv64")
