"""Text out of documents: a script that runs inside the sandbox, for their parsers meet bytes from strangers.

``python reading.py FILE [CHARSET]`` prints the text of one file, chosen by its suffix. An error is the last line of
standard error.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROWS = 2000
MEMBERS = 200
MEMBER_BYTES = 1 << 20
_META_CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?\s*([\w-]+)", re.IGNORECASE)


def read_document(path: Path, charset: str = "") -> str:
    """The text of a file: by its suffix, else as text if it is. Raises ``ValueError`` for bytes that are no text."""
    suffix = path.suffix.lower()
    if suffix in _HTML:
        return read_html(path, charset)
    return _READERS[suffix](path) if suffix in _READERS else read_text(path, charset)


def decoded(content: bytes, charset: str = "") -> str:
    """By the given charset if it is known, else UTF-8, else the likeliest. Raises ``ValueError`` for binary content."""
    from charset_normalizer import from_bytes

    if b"\0" in content[:4096] and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("this is not a text, and its kind is not known")
    for name in (charset, "utf-8-sig"):
        try:
            return content.decode(codecs.lookup(name).name) if name else content.decode("utf-8-sig")
        except (LookupError, UnicodeDecodeError):
            continue
    best = from_bytes(content).best()
    return str(best) if best else content.decode("latin-1")


def read_text(path: Path, charset: str = "") -> str:
    """A plain text file."""
    return decoded(path.read_bytes(), charset)


def read_html(path: Path, charset: str = "") -> str:
    """The main text of a page with its title; all visible text where no main part is found."""
    import trafilatura

    content = path.read_bytes()
    named = _META_CHARSET.search(content[:4096])
    source = decoded(content, charset or (named[1].decode() if named else ""))
    title = re.search(r"<title[^>]*>(.*?)</title>", source, re.IGNORECASE | re.DOTALL)
    heading = " ".join(title[1].split()) if title else ""
    text = trafilatura.extract(source, include_tables=True, include_links=True, favor_recall=True)
    return f"{heading}\n\n{text or trafilatura.html2txt(source)}".strip()


def read_table(path: Path) -> str:
    """CSV or TSV, a row a line, cells parted by tabs."""
    text = read_text(path)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    return _rows(csv.reader(io.StringIO(text), delimiter=delimiter))


def read_spreadsheet(path: Path) -> str:
    """Every sheet by name, with values in place of formulas."""
    import openpyxl

    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    sheets = [(sheet.title, _rows(sheet.iter_rows(values_only=True))) for sheet in book.worksheets]
    return "\n\n".join(f"# sheet {title}\n{rows}" for title, rows in sheets)


def read_pdf(path: Path) -> str:
    """Page by page."""
    import pypdf

    pages = pypdf.PdfReader(path).pages
    return "\n\n".join(f"# page {number}\n{page.extract_text()}" for number, page in enumerate(pages, 1))


def read_word(path: Path) -> str:
    """Paragraphs and tables in their order."""
    import docx
    from docx.table import Table

    parts = docx.Document(str(path)).iter_inner_content()
    return "\n".join(
        _rows([cell.text for cell in row.cells] for row in part.rows) if isinstance(part, Table) else part.text
        for part in parts
    )


def read_image(path: Path) -> str:
    """Format, size and tags; what it shows is not read."""
    from PIL import ExifTags, Image

    with Image.open(path) as image:
        tags = {ExifTags.TAGS.get(tag, tag): value for tag, value in image.getexif().items()}
        lines = [f"{image.format} image, {image.width} x {image.height} pixels, mode {image.mode}"]
    return "\n".join([*lines, *(f"{name}: {value!s:.200}" for name, value in tags.items())])


def read_archive(path: Path) -> str:
    """What is in it, and the text of the members that are text. Nothing is unpacked to disk."""
    members = list(_members(path))
    listing = [f"{name} ({size} bytes)" for name, size, _ in members]
    texts = [_member_text(name, content) for name, _, content in members]
    return "\n".join([f"# archive of {len(members)} files", *listing, *filter(None, texts)])


def _members(path: Path) -> Iterator[tuple[str, int, bytes]]:
    """Name, stated size and the first bytes of each of the first files; of one compressed file, the size read."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in [entry for entry in archive.infolist() if not entry.is_dir()][:MEMBERS]:
                with archive.open(entry) as file:
                    yield entry.filename, entry.file_size, file.read(MEMBER_BYTES)
        return
    if not tarfile.is_tarfile(path) and path.suffix.lower() in _COMPRESSED:
        with _COMPRESSED[path.suffix.lower()](path) as file:
            content = file.read(MEMBER_BYTES)
        yield path.stem, len(content), content
        return
    with tarfile.open(path) as archive:
        for number, member in enumerate(archive):
            if number >= MEMBERS:
                return
            if member.isfile() and (opened := archive.extractfile(member)):
                yield member.name, member.size, opened.read(MEMBER_BYTES)


def _member_text(name: str, content: bytes) -> str:
    try:
        return f"\n## {name}\n{content.decode()}"
    except UnicodeDecodeError:
        return ""


def _rows(rows: Iterable[Iterable[object]]) -> str:
    lines = []
    for number, row in enumerate(rows):
        if number >= ROWS:
            lines.append(f"[only the first {ROWS} rows]")
            break
        lines.append("\t".join("" if cell is None else str(cell) for cell in row).rstrip())
    return "\n".join(lines)


_COMPRESSED: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_HTML = (".html", ".htm", ".xhtml")
_READERS: dict[str, Callable[[Path], str]] = {
    **dict.fromkeys((".csv", ".tsv"), read_table),
    **dict.fromkeys((".xlsx", ".xlsm"), read_spreadsheet),
    ".pdf": read_pdf,
    ".docx": read_word,
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"), read_image),
    **dict.fromkeys((".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz"), read_archive),
}

if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        print(read_document(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
    except Exception as error:  # noqa: BLE001 - whatever a parser raises becomes the one line that the agent reads
        sys.exit(f"{type(error).__name__}: {error}")
