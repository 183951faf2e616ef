"""Reading a document in the sandbox: hostile bytes cost bounded time and memory and reach nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from data.sandbox.limits import MIB, Limits
from data.sandbox.sandbox import run_python

READING_LIMITS: Final = Limits(
    cpu_s=30, wall_s=60.0, memory_bytes=1024 * MIB, disk_bytes=96 * MIB, output_bytes=4 * MIB
)
MAX_BYTES: Final = 64 * MIB

_SCRIPT: Final = Path(__file__).with_name("reading.py")


class UnreadableError(Exception):
    """A document whose text could not be had, in words for the agent."""


async def read_in_sandbox(content: bytes, suffix: str, charset: str = "", limits: Limits = READING_LIMITS) -> str:
    """The text of a document of that kind, such as ``".pdf"``.

    Raises:
        UnreadableError: too large, damaged, of no known kind, or a bomb.
    """
    if len(content) > MAX_BYTES:
        raise UnreadableError(f"it has {len(content)} bytes, more than the {MAX_BYTES} that are read")
    name = f"document{suffix.lower()}"
    files = {"reading.py": _SCRIPT.read_bytes(), name: content}
    result = await asyncio.to_thread(run_python, files, ["reading.py", name, charset], limits)
    if result.timed_out or result.exceeded or result.truncated or result.signal:
        raise UnreadableError("it takes more time, memory or text than is allowed; it may be damaged or made to")
    if not result.ok:
        lines = result.stderr.decode(errors="replace").strip().splitlines()
        raise UnreadableError(lines[-1][:300] if lines else "its reader failed without a word")
    return result.stdout.decode(errors="replace").removesuffix("\n")
