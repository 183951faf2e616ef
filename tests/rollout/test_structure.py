from __future__ import annotations

import pytest

from data.task import Task
from rollout.structure import Choices, JsonSchema, answer_structure, grammar_fault

LEDGER = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"$ref": "#/$defs/fact"}}, "done": {"type": "boolean"}},
    "required": ["facts", "done"],
    "additionalProperties": False,
    "$defs": {"fact": {"type": "string", "maxLength": 20}},
}


def test_a_task_with_choices_is_answered_by_one_of_them() -> None:
    task = Task("t0", "Where?", ("Lima",), "sample", choices=("Lima", "Quito"))
    assert answer_structure(task) == Choices(("Lima", "Quito"))
    assert answer_structure(Task("t0", "Where?", ("Lima",), "sample")) is None


@pytest.mark.parametrize("options", [(), ("",), ("yes", "")])
def test_choices_need_options(options: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="Choices: give at least one option and no empty one"):
        Choices(options)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "objekt"}, r"^JsonSchema: \$\.type is wrong: 'objekt' is not valid"),
        ({"properties": {"n": {"minimum": "3"}}}, r"\$\.properties\.n\.minimum is wrong"),
        ({"properties": {"n": {"$ref": "other.json"}}}, r"\$\.properties\.n\.\$ref refers to 'other.json', outside"),
        ({"anyOf": [{"type": "string"}, {"$ref": "http://a/b"}]}, r"\$\.anyOf\[1\]\.\$ref refers to"),
    ],
)
def test_what_is_no_schema_is_refused_with_its_path(schema: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JsonSchema(schema)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "number", "multipleOf": 2}, "$.multipleOf"),
        ({"properties": {"tags": {"type": "array", "uniqueItems": True}}}, "$.properties.tags.uniqueItems"),
        ({"anyOf": [{"type": "string"}, {"not": {"type": "null"}}]}, "$.anyOf[1].not"),
        ({"$defs": {"x": {"propertyNames": {"maxLength": 3}}}}, "$.$defs.x.propertyNames"),
    ],
)
def test_what_no_grammar_holds_is_named_by_its_path(schema: dict[str, object], path: str) -> None:
    fault = grammar_fault(JsonSchema(schema))
    assert fault is not None
    assert fault.startswith(f"{path} cannot constrain decoding")


def test_what_a_grammar_holds_has_no_fault() -> None:
    assert grammar_fault(JsonSchema(LEDGER)) is None
    assert grammar_fault(Choices(("yes", "no"))) is None


def test_names_and_values_are_no_keywords() -> None:
    """A property called ``not``, and an enumeration of objects with a key called ``if``."""
    schema = {"properties": {"not": {"type": "string"}, "contains": {"enum": [{"if": 1}]}}, "default": {"not": 1}}
    assert grammar_fault(JsonSchema(schema)) is None
