"""How ALFWorld names things and words commands: readable names, its two grammars, and commands in either of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

Grammar = Literal["move", "put"]
"""``move X to Y`` is ALFWorld's wording since 0.4, ``put X in/on Y`` the one before, which published prompts use."""

_MOVE, _PUT = "move {o} to {r}", "put {o} in/on {r}"
_MOVED, _WAS_PUT = "You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."
_HELP_MOVE, _HELP_PUT = "move (object) to (receptacle):  ", "put (object) in/on (receptacle):  "
_PUT_COMMAND = re.compile(r"(?:put|move|place) (?P<object>.+?) (?:in/on|into|onto|in|on|to) (?P<place>.+)")


def readable_names(ids: Sequence[str]) -> dict[str, str]:
    """``apple_bar__minus_00_dot_47...`` as ``apple 2``: things of a kind are numbered down through their sorted ids.

    As ALFWorld numbers them, so that its published games read as they do there; what has no ``_bar_`` keeps its id.
    """
    kinds = {each: _kind(each) for each in ids}
    left = Counter(kinds.values())
    names = {}
    for each in sorted(ids):
        kind = kinds[each]
        names[each] = each if kind is None else f"{kind} {left[kind]}"
        left[kind] -= 1
    return names


def _kind(identifier: str) -> str | None:
    kind, bar, rest = identifier.partition("_bar_")
    if not bar:
        return None
    return f"{kind}basin" if "basin" in rest else kind


def in_grammar(grammar_text: str, grammar: Grammar) -> str:
    """A game's grammar with the commands, answers and help of ``grammar``, whichever it was written in."""
    pairs = ((_MOVE, _PUT), (_MOVED, _WAS_PUT), (_HELP_MOVE, _HELP_PUT))
    for move, put in pairs:
        old, new = (move, put) if grammar == "put" else (put, move)
        grammar_text = grammar_text.replace(old, new)
    return grammar_text


def as_command(action: str, grammar: Grammar) -> str:
    """An agent's text as a command of ``grammar``: lower case, single spaces, no final stop, either wording of put."""
    command = " ".join(action.lower().split()).strip(" .!'\"`>")
    put = _PUT_COMMAND.fullmatch(command)
    if put is None:
        return command
    thing, place = put["object"], put["place"]
    return f"move {thing} to {place}" if grammar == "move" else f"put {thing} in/on {place}"
