"""A local corpus to search instead of the web: a folder of text, Markdown and HTML files, or JSONL records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

_PLAIN = (".txt", ".md")
_HTML = (".html", ".htm")


@dataclass(frozen=True)
class Document:
    """One thing to be found.

    Attributes:
        title: shown with the result.
        address: what the agent opens it by: a URL, or the path within the corpus.
        text: what is searched.
    """

    title: str
    address: str
    text: str


def load_corpus(path: Path) -> list[Document]:
    """All documents of a folder (in order of path) or of a JSONL file with ``title``, ``url`` and ``text``.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: a line that is not such a record, by file and line; or a corpus without a document.
    """
    if not path.exists():
        raise FileNotFoundError(f"the search corpus {path} does not exist: give a folder or a JSONL file")
    documents = list(_from_folder(path) if path.is_dir() else _from_lines(path))
    if not documents:
        raise ValueError(f"the search corpus {path} holds no document: .txt, .md, .html files or JSONL records")
    return documents


def _from_folder(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (*_PLAIN, *_HTML) and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            title, text = html_text(text) if path.suffix.lower() in _HTML else (_first_line(text), text)
            yield Document(title or path.stem, path.relative_to(folder).as_posix(), text)


def _from_lines(path: Path) -> Iterator[Document]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _from_record(line, f"{path}, line {number}")


def _from_record(line: str, where: str) -> Document:
    try:
        record = json.loads(line)
        return Document(str(record["title"]), str(record["url"]), str(record["text"]))
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{where}: a record needs title, url and text ({type(error).__name__}: {error})") from error


def _first_line(text: str) -> str:
    return next((line.strip("# ").strip() for line in text.splitlines() if line.strip()), "")


def html_text(source: str) -> tuple[str, str]:
    """Title and visible text of a page, by the parser of the standard library."""
    parser = _TextParser()
    parser.feed(source)
    parser.close()
    return " ".join("".join(parser.title).split()), "\n".join(filter(None, map(str.strip, parser.text)))


class _TextParser(HTMLParser):
    _unseen = ("script", "style", "noscript", "template", "title")

    def __init__(self) -> None:
        super().__init__()
        self.title: list[str] = []
        self.text: list[str] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._unseen:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.text.append(data)
        elif self.inside[-1] == "title":
            self.title.append(data)
