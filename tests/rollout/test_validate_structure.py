from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.structure import Choices, JsonSchema
from rollout.validate_structure import Mismatch, validate_structure
from tests.rollout.test_structure import LEDGER

YES_NO = Choices(("yes", "no", "not sure"))
SCHEMA = JsonSchema(LEDGER)
GOOD = '{"facts": ["a"], "done": true}'


@pytest.mark.parametrize("text", ["yes", " yes\n", "```\nyes\n```", "```text\nyes\n```"])
def test_a_choice_may_stand_in_white_space_or_a_fence(text: str) -> None:
    assert validate_structure(text, YES_NO) == "yes"


@pytest.mark.parametrize("text", ["", "Yes", "yes.", "yes, no", "The answer is yes", "yes\nno", "`yes`"])
def test_what_is_not_exactly_one_option_is_a_mismatch(text: str) -> None:
    assert validate_structure(text, YES_NO) == Mismatch(f"{text!r} is none of ['yes', 'no', 'not sure']")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n {GOOD} \n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"```JSON  \n{GOOD}```",
        f"  ```json\n{GOOD}\n  ```",
    ],
)
def test_json_may_stand_in_white_space_or_a_fence(text: str) -> None:
    assert validate_structure(text, SCHEMA) == GOOD


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is no JSON (Expecting value"),
        (f"Here it is: {GOOD}", "is no JSON"),
        (f"{GOOD} {GOOD}", "is no JSON (Extra data"),
        ('{"facts": [], "done": tr', "is no JSON"),
        ('{"facts": [], "done": NaN}', "NaN is no JSON number"),
        ('{"facts": []}', "$ is not of the schema: 'done' is a required property"),
        ('{"facts": ["a", 3], "done": true}', "$.facts[1] is not of the schema: 3 is not of type 'string'"),
        ('{"facts": [], "done": 1}', "$.done is not of the schema: 1 is not of type 'boolean'"),
        ('{"facts": [], "done": true, "more": 1}', "$ is not of the schema: Additional properties"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_mismatch_says_where(text: str, reason: str) -> None:
    found = validate_structure(text, SCHEMA)
    assert isinstance(found, Mismatch)
    assert reason in found.reason
    assert len(found.reason) < 600


@given(facts=st.lists(st.text(max_size=20), max_size=4), done=st.booleans(), fence=st.booleans())
def test_every_value_of_the_schema_passes_however_it_is_written(facts: list[str], done: bool, fence: bool) -> None:
    text = json.dumps({"facts": facts, "done": done}, indent=2 if fence else None)
    assert validate_structure(f"```json\n{text}\n```" if fence else text, SCHEMA) == text


@given(text=st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    for structure in (YES_NO, SCHEMA):
        found = validate_structure(text, structure)
        assert isinstance(found, Mismatch) or found in text
