"""The progress ledger: five questions that the orchestrator answers before every step, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout.structure import JsonSchema


@dataclass(frozen=True)
class Lengths:
    """Most characters of what a reply holds (ours): bounds, so that it ends before its token limit and is whole JSON.

    Attributes:
        reason: of each reason of a ledger or selection.
        instruction: to an agent.
        text: of an agent's words beside a tool.
        argument: of each argument of a tool.
    """

    reason: int = 300
    instruction: int = 600
    text: int = 2000
    argument: int = 4000


@dataclass(frozen=True)
class Ledger:
    """The five answers, under their published names. The reasons only make the model think before it answers."""

    is_request_satisfied: bool
    is_in_loop: bool
    is_progress_being_made: bool
    instruction_or_question: str
    next_speaker: str


def ledger_schema(speakers: Sequence[str], lengths: Lengths = Lengths()) -> JsonSchema:
    """What a ledger is held to: each field ``{reason, answer}``, the next speaker one of ``speakers``."""
    answers: dict[str, dict[str, Any]] = {
        "is_request_satisfied": {"type": "boolean"},
        "is_in_loop": {"type": "boolean"},
        "is_progress_being_made": {"type": "boolean"},
        "instruction_or_question": {"type": "string", "minLength": 1, "maxLength": lengths.instruction},
        "next_speaker": {"enum": list(speakers)},
    }
    reason = {"type": "string", "maxLength": lengths.reason}
    return _object({name: _object({"reason": reason, "answer": answer}).schema for name, answer in answers.items()})


def read_ledger(reply: str) -> Ledger:
    """The ledger of a reply that :func:`ledger_schema` accepts."""
    fields: Mapping[str, Mapping[str, Any]] = json.loads(reply)
    return Ledger(**{name: field["answer"] for name, field in fields.items()})


def stalls_after(stalls: int, ledger: Ledger) -> int:
    """The stall counter: one more when looping or without progress, else one less, never below 0."""
    stalled = ledger.is_in_loop or not ledger.is_progress_being_made
    return stalls + 1 if stalled else max(0, stalls - 1)


def selection_schema(keys: int, most: int, lengths: Lengths = Lengths()) -> JsonSchema:
    """Up to ``most`` numbers of the keys 1 to ``keys``."""
    numbers = {"type": "array", "items": {"enum": list(range(1, keys + 1))}, "maxItems": most}
    return _object({"reason": {"type": "string", "maxLength": lengths.reason}, "wanted": numbers})


def read_selection(reply: str) -> tuple[int, ...]:
    """The places, from 0, that a reply which :func:`selection_schema` accepts asks for, each once."""
    return tuple(number - 1 for number in dict.fromkeys(json.loads(reply)["wanted"]))


def _object(properties: Mapping[str, Any]) -> JsonSchema:
    return JsonSchema(
        {
            "type": "object",
            "properties": dict(properties),
            "required": list(properties),
            "additionalProperties": False,
        }
    )
