"""The same records in every format, and what a file that cannot be read is answered with."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.formats import FORMATS, read_records
from data.records import Place, Record

ROWS = [{"id": "1", "text": 'A, "quoted"\nline\tand tab', "tags": ["x", "é"]}, {"id": "2", "text": "b", "tags": []}]
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text() | st.integers())


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """``rows`` in the format of the path's suffix; lists as JSON text in a table of cells."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows)
    elif path.suffix == ".json":
        path.write_text(json.dumps(list(rows)), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_every_format_gives_the_same_records(tmp_path: Path, suffix: str) -> None:
    records = read_records(write(tmp_path / f"rows{suffix}", ROWS))
    read = [{**record, "tags": place.texts(record, "tags")} for record, place in records]
    assert read == ROWS


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"x": 1}\n{"x": ', "a.jsonl, line 2: not valid JSON"),
        ("a.jsonl", b"[1]\n", "a.jsonl, line 1: must be a JSON object, got list"),
        ("a.jsonl", b"\xff\xfe", "a.jsonl: not UTF-8 text"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl, line 1: not valid JSON"),
        ("a.json", b'{"rows": []}', "a.json: a .json file must hold a list of objects, got dict"),
        ("a.json", b'[{"x": 1}, 2]', "a.json, item 2: must be a JSON object, got int"),
        ("a.csv", b'x,y\n1,"2', "a.csv, line 2: not valid .csv"),
        ("a.csv", b"x,y\n1,2\n3\n", "a.csv, line 3: has 1 cells under a header of 2"),
        ("a.tsv", b"x\ty\n1\t2\t3\n", "a.tsv, line 2: has 3 cells under a header of 2"),
        ("a.parquet", b"PAR1 not really", "a.parquet: not a readable Parquet file"),
        ("a.xlsx", b"", "a.xlsx: unknown format '.xlsx'; there are .jsonl, .json, .parquet, .csv, .tsv"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_records(tmp_path / name)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeffid,text\r\n1,x\r\n".encode())
    assert [record for record, _ in read_records(tmp_path / "a.csv")] == [{"id": "1", "text": "x"}]


@pytest.mark.parametrize("suffix", list(FORMATS))
@given(content=st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_records_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / f"fuzz{suffix}"
    file.write_bytes(content)
    try:
        read_records(file)
    except ValueError as error:
        assert str(file) in str(error)


@pytest.mark.parametrize(
    ("value", "read"), [(True, True), ("False", False), (" TRUE ", True), (1, None), ("yes", None), (None, None)]
)
def test_booleans(value: object, read: bool | None) -> None:
    place = Place("here")
    if read is None:
        with pytest.raises(ValueError, match="here: field 'answer' must be true or false"):
            place.boolean({"answer": value}, "answer")
    else:
        assert place.boolean({"answer": value}, "answer") is read


@given(st.dictionaries(st.sampled_from(["a", "b"]), VALUES))
def test_any_record_gives_values_of_the_kind_asked_for_or_names_the_field(record: Record) -> None:
    place = Place("file, line 1")
    for read, kind in ((place.text, str), (place.optional_text, str), (place.boolean, bool), (place.texts, list)):
        try:
            assert isinstance(read(record, "a"), kind)
        except ValueError as error:
            assert str(error).startswith("file, line 1: field 'a'")
