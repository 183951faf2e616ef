"""Python that agents write, run in the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from data.sandbox.limits import Limits
from data.sandbox.sandbox import run_python
from rollout.tools.tool import ToolResult, complaint, cut, object_schema


class PythonTool:
    """One program a call; nothing is kept from one call to the next.

    Args:
        limits: of each program.
        max_characters: of what it printed that the agent reads.
    """

    name = "python"
    description = (
        "Run a Python program and return what it prints. It starts anew at each call, without network and without "
        "files; print every result that you need."
    )
    parameters = object_schema({"code": {"type": "string", "description": "the whole program"}})

    def __init__(self, limits: Limits = Limits(), max_characters: int = 8000) -> None:
        self.limits = limits
        self.max_characters = max_characters

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Standard output as text; a program that failed or was stopped is an error with its last words."""
        if wrong := complaint(self, arguments):
            return ToolResult("", wrong)
        files = {"main.py": arguments["code"].encode(errors="replace")}
        result = await asyncio.to_thread(run_python, files, ["main.py"], self.limits)
        text = cut(result.stdout.decode(errors="replace"), 0, self.max_characters)
        if result.ok:
            return ToolResult(text)
        if result.timed_out:
            return ToolResult(text, f"python: stopped after {self.limits.wall_s:g} s")
        if result.truncated or result.exceeded:
            return ToolResult(text, f"python: stopped, it used more {result.exceeded or 'output'} than it may")
        how = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
        return ToolResult(text, f"python: ended with {how}\n{result.stderr.decode(errors='replace')[-2000:]}")
