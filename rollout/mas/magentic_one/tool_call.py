"""An agent's turn as a structured reply: a call of one of its tools, or words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout.structure import JsonSchema
from rollout.tools.tool import Tool, ToolResult

LARGEST_INTEGER = 10_000_000


@dataclass(frozen=True)
class ToolCall:
    """Which tool with which arguments."""

    tool: str
    arguments: Mapping[str, Any]


def turn_schema(tools: Sequence[Tool], text_characters: int, argument_characters: int) -> JsonSchema:
    """``{"tool": …, "arguments": …}`` of any of ``tools``, or ``{"text": …}``.

    Strings are bounded (ours), so that a reply ends before its token limit and is whole JSON.
    """
    calls = [
        _closed({"tool": {"const": tool.name}, "arguments": bounded(tool.parameters, argument_characters)})
        for tool in tools
    ]
    return JsonSchema({"anyOf": [*calls, _closed({"text": {"type": "string", "maxLength": text_characters}})]})


def bounded(schema: Mapping[str, Any], characters: int) -> dict[str, Any]:
    """``schema`` with a bound on every string and integer that has none."""
    bounds: dict[str, Any] = {}
    if schema.get("type") == "string" and not {"enum", "const", "maxLength"} & schema.keys():
        bounds = {"maxLength": characters}
    if schema.get("type") == "integer" and not {"enum", "const", "maximum"} & schema.keys():
        bounds = {"minimum": 0, "maximum": LARGEST_INTEGER}
    inside = {
        name: {key: bounded(part, characters) for key, part in value.items()}
        if name == "properties"
        else bounded(value, characters)
        for name, value in schema.items()
        if isinstance(value, Mapping)
    }
    return {**bounds, **schema, **inside}


def read_turn(reply: str) -> ToolCall | str:
    """The call, or the words, of a reply that :func:`turn_schema` accepts."""
    turn: Mapping[str, Any] = json.loads(reply)
    return str(turn["text"]).strip() if "text" in turn else ToolCall(turn["tool"], turn["arguments"])


def tool_output(call: ToolCall, result: ToolResult) -> str:
    """o_t of a step with a tool: the call, what came back, and what went wrong."""
    parts = [f"{call.tool}({json.dumps(call.arguments, ensure_ascii=False)})", result.text, result.error]
    return "\n".join(part for part in parts if part)


def tool_list(tools: Sequence[Tool]) -> str:
    """A line a tool: name, arguments, what it is for."""
    return "\n".join(f"- {tool.name}({', '.join(tool.parameters['properties'])}): {tool.description}" for tool in tools)


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
