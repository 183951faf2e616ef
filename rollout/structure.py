"""What a response is held to, one of a list or JSON of a schema: an engine constrains decoding or checks afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from data.task import Task

NO_GRAMMAR = frozenset(
    {
        "multipleOf",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "propertyNames",
        "patternProperties",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
        "unevaluatedItems",
        "not",
        "if",
        "then",
        "else",
    }
)
"""Keywords that no context-free grammar holds, or that vLLM's grammar compiler (xgrammar) refuses or ignores."""

_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired")
_PLAIN_VALUES = ("enum", "const", "default", "examples")


@dataclass(frozen=True)
class Choices:
    """The response is exactly one of ``options``."""

    options: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.options or not all(self.options):
            raise ValueError(f"Choices: give at least one option and no empty one, got {list(self.options)}")


@dataclass(frozen=True)
class JsonSchema:
    """The response is one JSON value of ``schema`` (JSON Schema 2020-12, plain values, no reference to the outside).

    Raises:
        ValueError: what is no such schema; the message has the path of the fault, ``$`` being the schema.
    """

    schema: Mapping[str, object]

    def __post_init__(self) -> None:
        fault = _schema_fault(self.schema)
        if fault is not None:
            raise ValueError(f"JsonSchema: {fault}")


Structure = Choices | JsonSchema


def answer_structure(task: Task) -> Structure | None:
    """What the final answer to ``task`` is held to: a MAS passes it with the call whose reply is its answer."""
    return Choices(task.choices) if task.choices else None


def grammar_fault(structure: Structure) -> str | None:
    """Why ``structure`` cannot constrain decoding, with the path of the keyword; ``None`` when it can."""
    if isinstance(structure, Choices):
        return None
    for path, keyword, _ in _keywords(structure.schema):
        if keyword in NO_GRAMMAR:
            return f"{path} cannot constrain decoding; leave it out, or check it where the answer is used"
    return None


def _schema_fault(schema: Mapping[str, object]) -> str | None:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path} is wrong: {error.message}"
    for path, keyword, value in _keywords(schema):
        if keyword in ("$ref", "$dynamicRef") and not str(value).startswith("#"):
            return f"{path} refers to {value!r}, outside of the schema; put it under $defs and refer to #/$defs/..."
    return None


def _keywords(node: object, path: str = "$") -> Iterator[tuple[str, str, object]]:
    """(path, keyword, value) of every keyword of a schema and of the schemas in it, names and values left out."""
    if isinstance(node, (list, tuple)):
        for place, item in enumerate(node):
            yield from _keywords(item, f"{path}[{place}]")
    elif isinstance(node, Mapping):
        for keyword, value in node.items():
            here = f"{path}.{keyword}"
            yield here, keyword, value
            if keyword in _NAMED_SCHEMAS and isinstance(value, Mapping):
                for name, schema in value.items():
                    yield from _keywords(schema, f"{here}.{name}")
            elif keyword not in _PLAIN_VALUES:
                yield from _keywords(value, here)
