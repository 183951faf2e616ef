"""Keeps a solution from looking at its judge, inside the sandbox; there it lies beside ``judge.py``.

Frames, the collector's lists and the code of the tests are how Python finds what it was not given: the seal, the
outcomes so far, the values that are expected. An audit hook, which nothing can take away, ends the process at once when
code that is not installed asks for one of them.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import os
import re
import sys
import threading
from collections.abc import Collection
from types import CodeType, FrameType
from typing import Any

_EVENTS = frozenset(
    {
        "sys._getframe",
        "sys._current_frames",
        "sys._current_exceptions",
        "sys.settrace",
        "sys.setprofile",
        "gc.get_objects",
        "gc.get_referrers",
        "gc.get_referents",
    }
)
_SUSPENDED = frozenset({"gi_frame", "cr_frame", "ag_frame"})
_ATTRIBUTES = _SUSPENDED | {"tb_frame", "__code__"}
_MEMORY = re.compile(r"/proc/.*/mem")
# They hand on what they ask for, so that who asked is further up.
_GO_BETWEENS = frozenset({inspect.__file__, dis.__file__})
_INSTALLED = tuple({*map(os.path.realpath, (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)))})


def forbid_prying(trusted: Collection[str], tests: str) -> None:
    """From here on, for good.

    Args:
        trusted: files whose code may look, beside what is installed.
        tests: file name under which the tests are compiled; their code is not to be read.
    """
    look, this_thread, leave = sys._getframe, threading.get_ident, os._exit
    write, to = os.write, os.dup(2)  # pytest takes 2 itself away while a test runs
    looking: set[int] = set()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if not _may_pry(event, args) or this_thread() in looking:
            return
        looking.add(this_thread())  # seeing who asks raises events too
        if _concerns_judge(event, args, tests):
            asker = look(1).f_code.co_filename if _keeps(event, args) else _asker(look(1))
            if not _is_installed(asker, trusted):
                with contextlib.suppress(OSError):  # it may have closed every descriptor
                    write(to, f"\n{asker} looked at what judges it: {event}\n".encode())
                leave(1)
        looking.discard(this_thread())

    sys.addaudithook(hook)


def _may_pry(event: str, args: tuple[Any, ...]) -> bool:
    if event == "object.__getattr__":
        return args[1] in _ATTRIBUTES
    return event in _EVENTS or (event == "open" and isinstance(args[0], str) and bool(_MEMORY.match(args[0])))


def _concerns_judge(event: str, args: tuple[Any, ...], tests: str) -> bool:
    """All do but the code of what is not a test: decorators, say, look at the functions that tests give them."""
    if event == "object.__getattr__" and args[1] == "__code__":
        code = getattr(args[0], "__code__", None)
        return isinstance(code, CodeType) and code.co_filename == tests and code.co_name.startswith("test")
    return True


def _keeps(event: str, args: tuple[Any, ...]) -> bool:
    """``inspect`` looks at the frame of a generator to tell its state, and keeps it to itself."""
    return event == "object.__getattr__" and args[1] in _SUSPENDED


def _asker(frame: FrameType | None) -> str:
    while frame is not None and frame.f_code.co_filename in _GO_BETWEENS:
        frame = frame.f_back
    return "" if frame is None else frame.f_code.co_filename


def _is_installed(file: str, trusted: Collection[str]) -> bool:
    return file in trusted or os.path.realpath(file).startswith(_INSTALLED) or file.startswith("<frozen ")
