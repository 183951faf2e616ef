"""Rows of a local JSON or JSON Lines file or of a hub data set, each with the place it came from.

The place is what makes an error useful: every check of a field goes through it and names file, line and field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Record = Mapping[str, object]


@dataclass(frozen=True)
class Place:
    """Where a record came from, for example ``facts.jsonl, line 3``. Dotted fields are looked up by their last part."""

    where: str

    def error(self, field: str, problem: str) -> ValueError:
        """The error to raise for ``field``."""
        return ValueError(f"{self.where}: field {field!r} {problem}")

    def text(self, record: Record, field: str) -> str:
        """A field that is a non-empty string, or an integer taken as one."""
        value = self._value(record, field)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.error(field, f"must be a non-empty string, got {value!r}")
        return value

    def texts(self, record: Record, field: str) -> list[str]:
        """A field that is a list of strings; may be empty."""
        value = self._value(record, field)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(field, f"must be a list of strings, got {value!r}")
        return value

    def json_texts(self, record: Record, field: str) -> list[str]:
        """As :meth:`texts`, for a list that is written as JSON text; a plain list is accepted too."""
        value = self._value(record, field)
        if not isinstance(value, str):
            return self.texts(record, field)
        try:
            decoded = json.loads(value)
        except json.JSONDecodeError as error:
            raise self.error(field, f"must be a JSON list, got {value!r} ({error})") from error
        return self.texts({field.rpartition(".")[2]: decoded}, field)

    def mapping(self, record: Record, field: str) -> Record:
        """A field that is a JSON object."""
        value = self._value(record, field)
        if not isinstance(value, Mapping):
            raise self.error(field, f"must be an object, got {value!r}")
        return value

    def _value(self, record: Record, field: str) -> object:
        key = field.rpartition(".")[2]
        if key not in record:
            raise self.error(field, f"is missing; the record has {', '.join(sorted(record)) or 'no fields'}")
        return record[key]


def local_records(path: Path, name: str) -> list[tuple[Record, Place]]:
    """The records of ``path``, or of ``name.jsonl`` or ``name.json`` when ``path`` is a directory.

    Raises ``FileNotFoundError`` saying what may be given, ``ValueError`` for a line that is not a JSON object.
    """
    file = _find(path, name)
    text = file.read_text(encoding="utf-8")
    return _array(text, file) if file.suffix == ".json" else _lines(text, file)


def hub_records(repository: str, config: str | None, split: str) -> list[tuple[Record, Place]]:
    """The rows of a hub data set, through ``datasets`` and its cache.

    Raises ``FileNotFoundError`` saying how else to provide them when the hub cannot be reached.
    """
    try:
        from datasets import load_dataset

        rows = load_dataset(repository, config, split=split)
    except (ImportError, OSError) as error:
        raise FileNotFoundError(
            f"could not load {repository} (split {split!r}) from the hub: {type(error).__name__}: {error}. "
            "Either connect and install `datasets`, or download its rows as JSON or JSON Lines and give their file or "
            "directory as `path`, or use source='sample', which is bundled"
        ) from error
    return [(row, Place(f"{repository} {split}, row {number}")) for number, row in enumerate(rows)]


def _find(path: Path, name: str) -> Path:
    if path.is_file():
        return path
    for candidate in (path / f"{name}.jsonl", path / f"{name}.json"):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(
        f"no data at {path}: give a .json or .jsonl file, a directory with {name}.jsonl or {name}.json, "
        "no path at all (the hub is asked), or source='sample', which is bundled"
    )


def _lines(text: str, file: Path) -> list[tuple[Record, Place]]:
    records = []
    # Not splitlines(): it also cuts at separators that may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = Place(f"{file}, line {number}")
            records.append((_object(_decode(line, place), place), place))
    return records


def _array(text: str, file: Path) -> list[tuple[Record, Place]]:
    rows = _decode(text, Place(str(file)))
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise ValueError(f"{file}: a .json file must hold a list of objects, got {type(rows).__name__}")
    places = [Place(f"{file}, item {number}") for number in range(1, len(rows) + 1)]
    return [(_object(row, place), place) for row, place in zip(rows, places, strict=True)]


def _decode(text: str, place: Place) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place.where}: not valid JSON ({error})") from error


def _object(value: object, place: Place) -> Record:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place.where}: must be a JSON object, got {type(value).__name__}")
    return value
