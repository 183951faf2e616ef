"""Files of every kind, made here by the real libraries, read in the sandbox; archives and paths with bad intentions."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rollout.tools import reading
from rollout.tools.documents import UnreadableError, read_in_sandbox
from rollout.tools.files import FileTool
from rollout.tools.python import PythonTool
from rollout.tools.tool import ToolResult, complaint, cut

PDF = b"""%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R /Resources <</Font <</F 5 0 R>>>>>> endobj
4 0 obj <</Length 45>> stream
BT /F 12 Tf 20 100 Td (Hello from page) Tj ET
endstream endobj
5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> endobj
trailer <</Root 1 0 R>>
startxref
0
%%EOF
"""


def read(folder: Path, path: str, **arguments: object) -> ToolResult:
    return asyncio.run(FileTool(folder).call({"path": path, **arguments}))


def test_text_tables_and_charsets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("naïve café, à Orléans, où l'été est très doux".encode("latin-1"))
    assert "café" in reading.read_document(tmp_path / "a.txt")
    (tmp_path / "b.csv").write_text('name,age\n"Doe, Jane",7\n')
    assert reading.read_document(tmp_path / "b.csv") == "name\tage\nDoe, Jane\t7"
    (tmp_path / "c.tsv").write_text("x\ty\n")
    assert reading.read_document(tmp_path / "c.tsv") == "x\ty"
    (tmp_path / "d.py").write_text("print(1)")
    assert reading.read_document(tmp_path / "d.py") == "print(1)"


def test_a_long_table_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" * (reading.ROWS + 5))
    assert reading.read_document(tmp_path / "a.csv").endswith(f"[only the first {reading.ROWS} rows]")


def test_spreadsheets(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Sales"
    book.active.append(["item", "price"])
    book.active.append(["tea", 2.5])
    book.create_sheet("Empty")
    book.save(tmp_path / "book.xlsx")
    assert read(tmp_path, "book.xlsx").text == "# sheet Sales\nitem\tprice\ntea\t2.5\n\n# sheet Empty\n"


def test_word_keeps_paragraphs_and_tables_in_order(tmp_path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_paragraph("Before")
    document.add_table(1, 2).rows[0].cells[1].text = "cell"
    document.add_paragraph("After")
    document.save(str(tmp_path / "a.docx"))
    assert reading.read_document(tmp_path / "a.docx") == "Before\n\tcell\nAfter"


def test_pdf_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(PDF)
    assert read(tmp_path, "a.pdf").text == "# page 1\nHello from page"


def test_images_give_their_metadata(tmp_path: Path) -> None:
    from PIL import Image

    image = Image.new("RGB", (30, 20))
    exif = image.getexif()
    exif[0x010F] = "Camera maker"
    image.save(tmp_path / "a.jpg", exif=exif)
    assert reading.read_document(tmp_path / "a.jpg") == "JPEG image, 30 x 20 pixels, mode RGB\nMake: Camera maker"


def test_archives_are_listed_and_never_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../evil.txt", "text of evil")
        archive.writestr("image.bin", b"\xff\xfe\xfd")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        entry = tarfile.TarInfo("/abs/file.txt")
        entry.size = 4
        tar.addfile(entry, io.BytesIO(b"text"))
    text = reading.read_document(tmp_path / "a.zip")
    assert text.splitlines()[:3] == ["# archive of 2 files", "../../evil.txt (12 bytes)", "image.bin (3 bytes)"]
    assert "text of evil" in text
    assert (
        reading.read_document(tmp_path / "a.tar.gz")
        == "# archive of 1 files\n/abs/file.txt (4 bytes)\n\n## /abs/file.txt\ntext"
    )
    assert not (tmp_path.parent / "evil.txt").exists()


@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_one_compressed_file_is_read_no_further_than_its_first_bytes(
    tmp_path: Path, suffix: str, packed: Callable[[bytes], bytes]
) -> None:
    (tmp_path / f"log.txt{suffix}").write_bytes(packed(b"one line"))
    assert reading.read_document(tmp_path / f"log.txt{suffix}") == (
        "# archive of 1 files\nlog.txt (8 bytes)\n\n## log.txt\none line"
    )
    (tmp_path / f"zeros{suffix}").write_bytes(packed(b"0" * (8 << 20)))
    assert len(reading.read_document(tmp_path / f"zeros{suffix}")) < reading.MEMBER_BYTES + 100


def test_a_bomb_is_read_no_further_than_its_first_bytes() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros.txt", "w") as file:
        for _ in range(64):
            file.write(b"0" * (1 << 20))
    text = asyncio.run(read_in_sandbox(packed.getvalue(), ".zip"))
    assert text.splitlines()[1] == f"zeros.txt ({64 << 20} bytes)"
    assert len(text) < reading.MEMBER_BYTES + 200


@pytest.mark.parametrize("suffix", [".pdf", ".xlsx", ".docx", ".zip", ".png"])
def test_damaged_files_are_errors_for_the_agent(suffix: str) -> None:
    with pytest.raises(UnreadableError, match=r"\w"):
        asyncio.run(read_in_sandbox(b"this is something else", suffix))


def test_binary_files_of_no_known_kind_are_refused() -> None:
    with pytest.raises(UnreadableError, match="not a text"):
        asyncio.run(read_in_sandbox(b"\x00\x01\x02", ".bin"))


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "here.txt").write_text("here")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    for path in ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt", "none.txt", "", "a\0b"):
        result = read(folder, path)
        assert result.text == ""
        assert "there is no file" in result.error
        assert "'here.txt'" in result.error
    assert read(folder, "here.txt", start=2) == ToolResult("re")


def test_python_prints_or_says_what_went_wrong() -> None:
    tool = PythonTool()
    assert asyncio.run(tool.call({"code": "print(6 * 7)"})) == ToolResult("42\n")
    failed = asyncio.run(tool.call({"code": "print('before')\n1 / 0"}))
    assert failed.text == "before\n"
    assert "exit code 1" in failed.error
    assert "ZeroDivisionError" in failed.error


def test_arguments_are_held_to_the_schema(tmp_path: Path) -> None:
    tool = FileTool(tmp_path)
    assert complaint(tool, {"path": "a", "start": 3}) == ""
    assert "$: 'path' is a required property; it takes path, start" in complaint(tool, {})
    assert "('file' was unexpected); it takes path, start" in complaint(tool, {"path": "a", "file": "b"})
    assert "$.start: True is not of type 'integer'" in complaint(tool, {"path": "a", "start": True})
    assert asyncio.run(tool.call({})).error.startswith("read_file: ")


def test_a_long_text_says_how_to_read_on() -> None:
    assert cut("abcdef", 0, 6) == "abcdef"
    assert cut("abcdef", 2, 2) == "cd\n[2 more characters; read on with start=4]"
    assert cut("abc", 9, 2) == ""
