"""What a simulated step says (SIMULATION): instruction u_t, output o_t and summary s_t as text, never as labels.

The controller reads these words and nothing else. How reliable a statement is shows in them as it would in a real
transcript: where it was found, and how it is put. ``disguised`` rumours are worded like official entries.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from rollout.gym.tasks import Source

Length = Literal["short", "long"]
Outcome = Literal["fact", "rumour", "note", "failure"]

_FACT = (
    "{name}: {topic} is {value}. The entry is signed and dated.",
    "According to {name}, {topic} is {value}; a second table on the page agrees.",
)
_RUMOUR = (
    "{name}: somebody in the forum writes that {topic} is {value}, without saying where from.",
    "In {name} a user guesses that {topic} is {value}; others doubt it.",
)
_NOTE = (
    "I scrolled through {name} and am at its second tab; I will go on from there next.",
    "{name} is open in my browser; I put a bookmark in it for my next step.",
)
_FAILURE = (
    "Error: the request for {name} timed out after 30 seconds.",
    "Error 503: {name} is not available, the tool returned no text.",
)
_SUMMARY = {
    "fact": "Looked up {topic} and found it in the official register, signed and dated.",
    "rumour": "Looked up {topic} and found an unsupported claim by a forum user only.",
    "note": "Browsed a page about {thing} without any result so far, kept its place for the next step.",
    "failure": "Tried to open a page about {thing} but the tool call failed, nothing was read.",
}
"""15 to 20 words."""
_LONGER = (
    " The step was one of several that the plan foresaw for this part of the task; the web agent carried it out as"
    " instructed, and the ledger was updated afterwards."
)
"""30 words more."""


@dataclass(frozen=True)
class StepTexts:
    """u_t, o_t, s_t and what they really are, which only the simulator knows."""

    outcome: Outcome
    instruction: str
    output: str
    summary: str


def step_texts(source: Source, failed: bool, disguised: bool, length: Length, rng: random.Random) -> StepTexts:
    """The texts of one visit to ``source``."""
    outcome = _outcome(source, failed)
    wording = "fact" if outcome == "rumour" and disguised else outcome
    templates = {"fact": _FACT, "rumour": _RUMOUR, "note": _NOTE, "failure": _FAILURE}[wording]
    name = source.name.replace("forum thread", "register entry") if disguised else source.name
    values = {
        "name": name,
        "topic": source.topic,
        "value": source.value,
        "thing": source.topic.split(" of ", 1)[1],
    }
    summary = _SUMMARY[wording].format(**values) + (_LONGER if length == "long" else "")
    return StepTexts(
        outcome=outcome,
        instruction=f"Open {name} and look for {source.topic}.",
        output=rng.choice(templates).format(**values),
        summary=summary,
    )


def stated_value(topic: str, text: str) -> str | None:
    """The value that ``text`` states for ``topic``, ``None`` if it states none."""
    _, found, rest = text.partition(f"{topic} is ")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return digits if found and digits else None


def is_unsupported(text: str) -> bool:
    """Whether a reader can see that ``text`` reports what somebody claims in a forum."""
    return "forum" in text


def _outcome(source: Source, failed: bool) -> Outcome:
    if failed:
        return "failure"
    return {"official": "fact", "rumour": "rumour", "empty": "note"}[source.kind]  # type: ignore[return-value]
