"""What a response is held to, one of a list or JSON of a schema: an engine constrains decoding or checks afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from data.task import Task


@dataclass(frozen=True)
class Choices:
    """The response is exactly one of ``options``."""

    options: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.options or not all(self.options):
            raise ValueError(f"Choices: give at least one option and no empty one, got {list(self.options)}")


@dataclass(frozen=True)
class JsonSchema:
    """The response is one JSON value of ``schema`` (JSON Schema, plain values)."""

    schema: Mapping[str, object]


Structure = Choices | JsonSchema


def answer_structure(task: Task) -> Structure | None:
    """What the final answer to ``task`` is held to: a MAS passes it with the call whose reply is its answer."""
    return Choices(task.choices) if task.choices else None
