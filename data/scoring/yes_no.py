"""How StrategyQA is scored: the last yes or no of the answer against the boolean; an answer with neither is wrong."""

from __future__ import annotations

import re

from data.scoring.final_answer import marked_answer

_YES_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


def last_yes_no(text: str) -> bool | None:
    """The last whole word ``yes`` or ``no`` inside the marked answer, else in all of the text, as a boolean."""
    marked = marked_answer(text)
    inside = _YES_NO.findall(marked) if marked is not None else []
    words = inside or _YES_NO.findall(text)
    return words[-1].lower() == "yes" if words else None


def score_yes_no(text: str, gold: bool) -> dict[str, float]:
    """``exact_match`` by :func:`last_yes_no`; ``lax_match`` when the gold word is anywhere, in "know" too.

    The second is the published LatentMem code's substring rule: a text that says both words always satisfies it.
    """
    word = "yes" if gold else "no"
    return {"exact_match": float(last_yes_no(text) is gold), "lax_match": float(word in text.lower())}
