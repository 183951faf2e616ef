"""Reading a file of records: JSON Lines, JSON, Parquet, CSV and TSV, each record with the place it came from."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from data.records import Place, Record, Row, decode_json


def read_records(file: Path) -> list[Row]:
    """The records of ``file``, read by its suffix.

    Raises ``ValueError`` naming file and line for what cannot be read, or for a suffix that is none of ``FORMATS``.
    """
    if file.suffix not in FORMATS:
        raise ValueError(f"{file}: unknown format {file.suffix!r}; there are {', '.join(FORMATS)}")
    return FORMATS[file.suffix](file)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not UTF-8 text ({error})") from error


def _json_lines(file: Path) -> list[Row]:
    records = []
    # Not splitlines(): it also cuts at separators that may stand inside a JSON string.
    for number, line in enumerate(_text(file).split("\n"), start=1):
        if line.strip():
            place = Place(f"{file}, line {number}")
            records.append((_object(decode_json(line, place), place), place))
    return records


def _json(file: Path) -> list[Row]:
    rows = decode_json(_text(file), Place(str(file)))
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise ValueError(f"{file}: a .json file must hold a list of objects, got {type(rows).__name__}")
    places = [Place(f"{file}, item {number}") for number in range(1, len(rows) + 1)]
    return [(_object(row, place), place) for row, place in zip(rows, places, strict=True)]


def _parquet(file: Path) -> list[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows: list[Record] = pyarrow.parquet.read_table(file).to_pylist()
    except pyarrow.ArrowException as error:
        raise ValueError(f"{file}: not a readable Parquet file ({error})") from error
    return [(row, Place(f"{file}, row {number}")) for number, row in enumerate(rows)]


def _separated(delimiter: str) -> Callable[[Path], list[Row]]:
    def read(file: Path) -> list[Row]:
        reader = csv.reader(io.StringIO(_text(file), newline=""), delimiter=delimiter, strict=True)
        rows: list[Row] = []
        try:
            header = next(reader, [])
            for cells in reader:
                if cells:
                    place = Place(f"{file}, line {reader.line_num}")
                    rows.append((_cells(header, cells, place), place))
        except csv.Error as error:
            raise ValueError(f"{file}, line {reader.line_num}: not valid {file.suffix} ({error})") from error
        return rows

    return read


def _cells(header: Sequence[str], cells: Sequence[str], place: Place) -> Record:
    if len(header) != len(cells):
        raise ValueError(f"{place.where}: has {len(cells)} cells under a header of {len(header)}")
    return dict(zip(header, cells, strict=True))


def _object(value: object, place: Place) -> Record:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place.where}: must be a JSON object, got {type(value).__name__}")
    return value


FORMATS: Mapping[str, Callable[[Path], list[Row]]] = {
    ".jsonl": _json_lines,
    ".json": _json,
    ".parquet": _parquet,
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
}
"""Reader by suffix, in the order in which a directory is searched."""
