"""One record of a data set and the place it came from.

The place is what makes an error useful: every check of a field goes through it and names file, line and field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

Record = Mapping[str, object]


@dataclass(frozen=True)
class Place:
    """Where a record came from, for example ``facts.jsonl, line 3``. Dotted fields are looked up by their last part.

    A list or an object may stand in the record as JSON text, which is how CSV and PopQA write them.
    """

    where: str

    def error(self, field: str, problem: str) -> ValueError:
        """The error to raise for ``field``."""
        return ValueError(f"{self.where}: field {field!r} {problem}")

    def text(self, record: Record, field: str) -> str:
        """A field that is a non-empty string, or a number taken as one."""
        value = self.value(record, field)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.error(field, f"must be a non-empty string, got {value!r}")
        return value

    def optional_text(self, record: Record, field: str) -> str:
        """As :meth:`text`; empty where the field is missing, null or blank."""
        value = record.get(field)
        return "" if value is None or (isinstance(value, str) and not value.strip()) else self.text(record, field)

    def boolean(self, record: Record, field: str) -> bool:
        """A field that is a boolean, or ``true`` or ``false`` in any case."""
        value = self.value(record, field)
        word = value.strip().lower() if isinstance(value, str) else value
        if word is True or word == "true":
            return True
        if word is False or word == "false":
            return False
        raise self.error(field, f"must be true or false, got {value!r}")

    def texts(self, record: Record, field: str) -> list[str]:
        """A field that is a list of strings; may be empty."""
        value = self._decoded(record, field)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(field, f"must be a list of strings, got {value!r}")
        return value

    def objects(self, record: Record, field: str) -> list[Record]:
        """A field that is a list of JSON objects; empty where the field is missing, null or blank."""
        if record.get(field) in (None, ""):
            return []
        value = self._decoded(record, field)
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self.error(field, f"must be a list of objects, got {value!r}")
        return value

    def mapping(self, record: Record, field: str) -> Record:
        """A field that is a JSON object."""
        value = self._decoded(record, field)
        if not isinstance(value, Mapping):
            raise self.error(field, f"must be an object, got {value!r}")
        return value

    def value(self, record: Record, field: str) -> object:
        """A field that is there, whatever it holds."""
        key = field.rpartition(".")[2]
        if key not in record:
            raise self.error(field, f"is missing; the record has {', '.join(sorted(record)) or 'no fields'}")
        return record[key]

    def _decoded(self, record: Record, field: str) -> object:
        value = self.value(record, field)
        if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
            return value
        return decode_json(value, Place(f"{self.where}: field {field!r}"))


Row = tuple[Record, Place]


def decode_json(text: str, place: Place) -> object:
    """``text`` as a JSON value. Raises ``ValueError`` naming the place."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place.where}: not valid JSON ({error or 'nested too deeply'})") from error
