"""How GAIA is scored: the rule of its leaderboard.

A gold answer that reads as a number is compared as one; one with a comma or semicolon element by element, in order and
equal in number; any other as a string without white space, case and punctuation. So "1,000" is a list of two: the data
set writes its numbers without separators. One departure: an answer that is no number never equals a number (the
leaderboard turns it into infinity, which a gold "inf" would equal).
"""

from __future__ import annotations

import re
import string

from data.scoring.final_answer import final_answer

_SEPARATORS = re.compile("[,;]")
_UNITS = str.maketrans("", "", "$%,")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def score_gaia(text: str, gold: str) -> dict[str, float]:
    """``exact_match`` of the final answer of ``text``, and ``answered``: whether there is one at all."""
    answer = final_answer(text)
    return {"exact_match": float(gaia_match(answer, gold)), "answered": float(bool(answer))}


def gaia_match(answer: str, gold: str) -> bool:
    """Whether ``answer``, already extracted, is ``gold``. An empty answer never is."""
    if not answer.strip():
        return False
    if _number(gold) is not None:
        return _same_number(answer, gold)
    if not _SEPARATORS.search(gold):
        return _bare(answer).translate(_PUNCTUATION) == _bare(gold).translate(_PUNCTUATION)
    given, wanted = _SEPARATORS.split(answer), _SEPARATORS.split(gold)
    return len(given) == len(wanted) and all(map(_same_element, given, wanted))


def _same_element(answer: str, gold: str) -> bool:
    return _same_number(answer, gold) if _number(gold) is not None else _bare(answer) == _bare(gold)


def _same_number(answer: str, gold: str) -> bool:
    number = _number(answer.translate(_UNITS))
    return number is not None and number == _number(gold)


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text).lower()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
