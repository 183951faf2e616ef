"""Where in a response the answer stands: tags, a LaTeX box, or GAIA's closing line."""

from __future__ import annotations

import re

from data.scoring.short_answer import extract_answer

_TAGGED = re.compile(r"<answer>.*</answer>", re.DOTALL | re.IGNORECASE)
_BOX = "\\boxed{"
_CLOSING = re.compile(r"final answer\s*:", re.IGNORECASE)


def marked_answer(text: str) -> str | None:
    """The content of the last ``<answer>…</answer>``, else of the last ``\\boxed{…}``; ``None`` without either."""
    return extract_answer(text) if _TAGGED.search(text) else _last_box(text)


def final_answer(text: str) -> str:
    """:func:`marked_answer`, else what follows the last ``FINAL ANSWER:``, else all of the text; stripped."""
    marked = marked_answer(text)
    if marked is not None:
        return marked
    closings = list(_CLOSING.finditer(text))
    return text[closings[-1].end() if closings else 0 :].strip()


def _last_box(text: str) -> str | None:
    for start in reversed([match.end() for match in re.finditer(re.escape(_BOX), text)]):
        depth = 1
        for place in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if depth == 0:
                return text[start:place].strip()
    return None
