from __future__ import annotations

import json

import pytest

from rollout.mas.magentic_one.tool_call import (
    LARGEST_INTEGER,
    ToolCall,
    bounded,
    read_turn,
    tool_list,
    tool_output,
    turn_schema,
)
from rollout.structure import grammar_fault
from rollout.tools.page import PageTool
from rollout.tools.python import PythonTool
from rollout.tools.tool import ToolResult
from rollout.validate_structure import validate_structure
from tests.rollout.magentic_one.scripted_team import EchoTool

TOOLS = (EchoTool("search"), PageTool())
SCHEMA = turn_schema(TOOLS, text_characters=10, argument_characters=20)


@pytest.mark.parametrize(
    "turn",
    [
        {"tool": "search", "arguments": {"query": "chairs"}},
        {"tool": "open_page", "arguments": {"url": "https://a"}},
        {"tool": "open_page", "arguments": {"url": "https://a", "start": 600}},
        {"text": "six"},
    ],
)
def test_a_turn_is_a_call_or_words(turn: dict[str, object]) -> None:
    assert validate_structure(json.dumps(turn), SCHEMA) == json.dumps(turn)


@pytest.mark.parametrize(
    "turn",
    [
        {"tool": "delete", "arguments": {"query": "x"}},
        {"tool": "search", "arguments": {"url": "https://a"}},
        {"tool": "search", "arguments": {"query": "x" * 21}},
        {"tool": "open_page", "arguments": {"url": "https://a", "start": -1}},
        {"tool": "open_page", "arguments": {"url": "https://a", "start": LARGEST_INTEGER + 1}},
        {"tool": "search", "arguments": {"query": "x"}, "text": "both"},
        {"text": "x" * 11},
    ],
)
def test_what_is_no_turn(turn: dict[str, object]) -> None:
    assert not isinstance(validate_structure(json.dumps(turn), SCHEMA), str)


def test_the_tools_that_exist_can_constrain_decoding() -> None:
    assert grammar_fault(turn_schema((*TOOLS, PythonTool()), 10, 20)) is None


def test_reading_a_turn() -> None:
    assert read_turn('{"tool": "search", "arguments": {"query": "chairs"}}') == ToolCall("search", {"query": "chairs"})
    assert read_turn('{"text": " six\\n"}') == "six"


def test_bounds_go_where_there_are_none() -> None:
    schema = {
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "mode": {"type": "string", "enum": ["a"]},
            "short": {"type": "string", "maxLength": 3},
            "many": {"type": "array", "items": {"type": "integer"}},
        },
    }
    assert bounded(schema, 9) == {
        "type": "object",
        "properties": {
            "type": {"type": "string", "maxLength": 9},
            "mode": {"type": "string", "enum": ["a"]},
            "short": {"type": "string", "maxLength": 3},
            "many": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER}},
        },
    }


def test_the_output_of_a_step_shows_the_call_and_what_went_wrong() -> None:
    call = ToolCall("search", {"query": "Stühle"})
    assert tool_output(call, ToolResult("1. six")) == 'search({"query": "Stühle"})\n1. six'
    assert tool_output(call, ToolResult("", "search: down")) == 'search({"query": "Stühle"})\nsearch: down'


def test_tools_are_listed_with_their_arguments() -> None:
    assert tool_list([EchoTool("search")]) == "- search(query): Says what it was told."
