"""Whether a text is what its structure asks for: the rule for engines that cannot constrain decoding."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from rollout.structure import Choices, JsonSchema, Structure

_FENCED = re.compile(r"```[\w-]*[ \t]*\n(?P<inside>.*?)\n?[ \t]*```", re.DOTALL)
_SHOWN = 200


@dataclass(frozen=True)
class Mismatch:
    """Why a text does not hold to its structure."""

    reason: str


def validate_structure(text: str, structure: Structure) -> str | Mismatch:
    """The text itself, without the white space and one Markdown fence around it, or why it is not as asked for."""
    bare = _unfenced(text)
    if isinstance(structure, Choices):
        return bare if bare in structure.options else Mismatch(f"{_short(text)} is none of {list(structure.options)}")
    return _json_mismatch(bare, structure) or bare


def _unfenced(text: str) -> str:
    fenced = _FENCED.fullmatch(text.strip())
    return (fenced["inside"] if fenced else text).strip()


def _json_mismatch(text: str, structure: JsonSchema) -> Mismatch | None:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return Mismatch(f"{_short(text)} is no JSON ({error})")
    worst = best_match(Draft202012Validator(structure.schema).iter_errors(value))
    return None if worst is None else Mismatch(f"{worst.json_path} is not of the schema: {_clip(worst.message)}")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _short(text: str) -> str:
    return repr(_clip(text))


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
