"""Opening a page: fetched with checked addresses, read in the sandbox, shown in parts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from rollout.tools.documents import UnreadableError, read_in_sandbox
from rollout.tools.tool import ToolResult, complaint, cut, object_schema
from rollout.tools.web import Page, WebError, WebLimits, fetch

_SUFFIXES: Final = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/csv": ".csv",
    "application/zip": ".zip",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "image/png": ".png",
    "image/jpeg": ".jpg",
}


class PageTool:
    """Opens web addresses.

    Args:
        limits: of one fetch.
        max_characters: that the agent reads at once.
    """

    name = "open_page"
    description = "Open a web address and read its main text; also PDF, Word, Excel and CSV files on the web."
    parameters = object_schema(
        {"url": {"type": "string", "description": "starts with http:// or https://"}},
        {"start": {"type": "integer", "description": "first character to show; 0 if not given"}},
    )

    def __init__(self, limits: WebLimits = WebLimits(), max_characters: int = 8000) -> None:
        self.limits = limits
        self.max_characters = max_characters

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Title and main text, from ``start`` on, under the address where it was found."""
        if wrong := complaint(self, arguments):
            return ToolResult("", wrong)
        try:
            page = await fetch(arguments["url"], self.limits)
            text = await read_in_sandbox(page.body, suffix_of(page), page.charset)
        except (WebError, UnreadableError) as error:
            return ToolResult("", f"open_page: {error}")
        shown = cut(text, max(0, arguments.get("start", 0)), self.max_characters)
        return ToolResult(f"{page.url}\n{shown}" + ("\n[the page was longer than is read]" if page.cut else ""))


def suffix_of(page: Page) -> str:
    """The kind of document by its media type, else by its address, else by how it begins."""
    if suffix := _SUFFIXES.get(page.content_type):
        return suffix
    if page.content_type in ("", "application/octet-stream", "binary/octet-stream"):
        if page.body.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
            return ".html"
        return PurePosixPath(urlsplit(page.url).path).suffix
    return ".txt"
