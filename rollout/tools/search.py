"""Web search by an HTTP API, or offline by BM25 over a local corpus: one tool, two sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from rollout.api_key import ApiKey, check_no_secret
from rollout.tools.bm25 import BM25, words
from rollout.tools.corpus import Document, load_corpus
from rollout.tools.tool import ToolResult, complaint, object_schema
from rollout.tools.web import WebError, WebLimits, fetch


@dataclass(frozen=True)
class Found:
    """One result."""

    title: str
    address: str
    snippet: str


class SearchSource(Protocol):
    """Where results come from. Raises :class:`WebError` when it cannot say."""

    async def search(self, query: str, limit: int) -> Sequence[Found]:
        """The best results, best first."""
        ...


class SearchTool:
    """Searches one source.

    Args:
        source: the web or a corpus.
        results: at most, a query.
    """

    name = "search"
    description = "Search the web. Returns titles, addresses and excerpts; open an address to read more."
    parameters = object_schema({"query": {"type": "string", "description": "what to look for, in a few words"}})

    def __init__(self, source: SearchSource, results: int = 8) -> None:
        self.source = source
        self.results = results

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Numbered results."""
        if wrong := complaint(self, arguments):
            return ToolResult("", wrong)
        try:
            found = await self.source.search(arguments["query"], self.results)
        except WebError as error:
            return ToolResult("", f"search: {error}")
        lines = [f"{n}. {hit.title}\n   {hit.address}\n   {hit.snippet}" for n, hit in enumerate(found, 1)]
        return ToolResult("\n".join(lines) or "nothing was found")


class CorpusSearch:
    """BM25 over a local corpus. Opening a found address is the reader's business: see ``corpus_page.py``."""

    def __init__(self, path: Path) -> None:
        self.documents: list[Document] = load_corpus(path)
        self.index = BM25([f"{document.title}\n{document.text}" for document in self.documents])

    async def search(self, query: str, limit: int) -> list[Found]:
        """As :class:`SearchSource`."""
        hits = [self.documents[number] for number, _ in self.index.search(query, limit)]
        return [Found(hit.title, hit.address, snippet(hit.text, query)) for hit in hits]


class WebSearch:
    """An HTTP search API that answers GET with JSON.

    Args:
        url: of the API, without a query.
        key_variable: NAME of the environment variable with the key, which is read at each call and never shown.
        key_header: the header that carries the key.
        query_parameter: the name of the query's parameter.
        results_path: keys that lead to the list of results, such as ``web.results``.
        fields: the keys of title, address and snippet in a result.
        limits: of one request.
    """

    def __init__(
        self,
        url: str,
        key_variable: str,
        key_header: str = "X-Subscription-Token",
        query_parameter: str = "q",
        results_path: str = "web.results",
        fields: tuple[str, str, str] = ("title", "url", "description"),
        limits: WebLimits = WebLimits(),
    ) -> None:
        check_no_secret("url", url)
        self.url = url
        self.key = ApiKey(key_variable, "key_variable")
        self.key_header = key_header
        self.query_parameter = query_parameter
        self.results_path = results_path
        self.fields = fields
        # Followed elsewhere, a redirect would take the key along.
        self.limits = replace(limits, redirects=0)

    async def search(self, query: str, limit: int) -> list[Found]:
        """As :class:`SearchSource`."""
        address = f"{self.url}?{urlencode({self.query_parameter: query})}"
        page = await fetch(address, self.limits, {self.key_header: self.key.read()})
        try:
            results: Any = json.loads(page.body)
            for key in self.results_path.split("."):
                results = results[key]
            return [Found(*(str(hit.get(field, "")) for field in self.fields)) for hit in results[:limit]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WebError(f"{self.url} did not answer with results at {self.results_path!r}: {error!r}") from error


def snippet(text: str, query: str, length: int = 240) -> str:
    """The part of ``text`` in which most of the query's words stand."""
    wanted = set(words(query))
    starts = range(0, max(1, len(text) - length // 2), length // 2)
    best = max(starts, key=lambda start: len(wanted & set(words(text[start : start + length]))))  # the first of equals
    return " ".join(text[best : best + length].split())
