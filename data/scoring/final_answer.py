"""Where in a response the answer stands: tags, a LaTeX box, or GAIA's closing line."""

from __future__ import annotations

import re

from data.scoring.short_answer import extract_answer

_BOX = "\\boxed{"
_BRACES = re.compile(r"\\boxed\{|[{}]")
_CLOSING = re.compile(r"final answer\s*:", re.IGNORECASE)


def marked_answer(text: str) -> str | None:
    """The content of the last ``<answer>…</answer>``, else of the last ``\\boxed{…}``; ``None`` without either."""
    lower = text.lower()
    opened = lower.find("<answer>")
    tagged = opened >= 0 and lower.find("</answer>", opened) >= 0
    return extract_answer(text) if tagged else _last_box(text)


def final_answer(text: str) -> str:
    """:func:`marked_answer`, else what follows the last ``FINAL ANSWER:``, else all of the text; stripped."""
    marked = marked_answer(text)
    if marked is not None:
        return marked
    closings = list(_CLOSING.finditer(text))
    return text[closings[-1].end() if closings else 0 :].strip()


def _last_box(text: str) -> str | None:
    """Of the boxes that are closed, the one that begins last."""
    open_at: list[int | None] = []  # where the content of a box begins; None for any other brace
    last: tuple[int, int] | None = None
    for match in _BRACES.finditer(text):
        if match[0] != "}":
            open_at.append(match.end() if match[0] == _BOX else None)
        elif open_at and (start := open_at.pop()) is not None:
            last = max(last or (start, match.start()), (start, match.start()))
    return text[last[0] : last[1]].strip() if last else None
