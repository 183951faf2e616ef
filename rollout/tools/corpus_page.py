"""Opening what the search of a local corpus found: the offline counterpart of :class:`rollout.tools.page.PageTool`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollout.tools.corpus import Document
from rollout.tools.page import PageTool
from rollout.tools.tool import ToolResult, complaint, cut


class CorpusPageTool:
    """Opens the documents of a corpus by their addresses, under the name and arguments of the web's tool."""

    name = PageTool.name
    description = "Open an address that the search gave and read its text."
    parameters = PageTool.parameters

    def __init__(self, documents: Sequence[Document], max_characters: int = 8000) -> None:
        self.documents = {document.address: document for document in documents}
        self.max_characters = max_characters

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Title and text, from ``start`` on."""
        if wrong := complaint(self, arguments):
            return ToolResult("", wrong)
        document = self.documents.get(arguments["url"])
        if document is None:
            return ToolResult(
                "", f"open_page: {arguments['url']!r:.200} is not in the corpus; open what a search found"
            )
        return ToolResult(
            cut(f"{document.title}\n{document.text}", max(0, arguments.get("start", 0)), self.max_characters)
        )
