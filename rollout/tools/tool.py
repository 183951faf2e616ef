"""The seam of tools: a name, a JSON schema of arguments, and a call that answers with text, never with an exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match


@dataclass(frozen=True)
class ToolResult:
    """What an agent reads.

    Attributes:
        text: the answer; with an error, what there was before it.
        error: what went wrong and what to do about it, for the agent; empty for success.
    """

    text: str
    error: str = ""


class Tool(Protocol):
    """Something that an agent can use. Tools hold configuration, no state of an episode."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Do it. What the arguments or the world are to blame for is a result with ``error``, not an exception."""
        ...


def object_schema(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """The JSON schema of a flat object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def complaint(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """What is wrong with ``arguments`` by the tool's schema, in words that an agent can act on; empty if nothing."""
    worst = best_match(Draft202012Validator(tool.parameters).iter_errors(dict(arguments)))
    if worst is None:
        return ""
    takes = ", ".join(tool.parameters["properties"])
    return f"{tool.name}: {worst.json_path}: {worst.message:.200}; it takes {takes}"


def cut(text: str, start: int, length: int) -> str:
    """``length`` characters from ``start``, and a line on how to read on where something is left."""
    part = text[start : start + length]
    left = len(text) - start - len(part)
    return f"{part}\n[{left} more characters; read on with start={start + length}]" if left > 0 else part
