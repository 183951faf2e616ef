"""Files that come with a task: text, tables, spreadsheets, PDF, Word, images' metadata, archives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollout.tools.documents import MAX_BYTES, UnreadableError, read_in_sandbox
from rollout.tools.tool import ToolResult, complaint, cut, object_schema


class FileTool:
    """Reads what lies in one folder, by name.

    Args:
        folder: nothing outside it is read, through links neither.
        max_characters: that the agent reads at once.
    """

    name = "read_file"
    description = (
        "Read a file that belongs to the task: text, CSV, Excel, PDF, Word, an archive's contents, an image's metadata."
    )
    parameters = object_schema(
        {"path": {"type": "string", "description": "name of the file"}},
        {"start": {"type": "integer", "description": "first character to show; 0 if not given"}},
    )

    def __init__(self, folder: Path, max_characters: int = 8000) -> None:
        self.folder = folder
        self.max_characters = max_characters

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """The file as text, from ``start`` on."""
        if wrong := complaint(self, arguments):
            return ToolResult("", wrong)
        path = (self.folder / arguments["path"].replace("\0", "")).resolve()
        if not path.is_relative_to(self.folder.resolve()) or not path.is_file():
            names = sorted(entry.name for entry in self.folder.iterdir() if entry.is_file())
            return ToolResult("", f"read_file: there is no file {arguments['path']!r:.100}; there are {names[:20]}")
        if path.stat().st_size > MAX_BYTES:
            return ToolResult("", f"read_file: {path.name} has more than the {MAX_BYTES} bytes that are read")
        try:
            text = await read_in_sandbox(path.read_bytes(), path.suffix)
        except UnreadableError as error:
            return ToolResult("", f"read_file: {path.name} cannot be read: {error}")
        return ToolResult(cut(text, max(0, arguments.get("start", 0)), self.max_characters))
