"""How a short answer is scored: SQuAD exact match, token F1, and the lax containment rule beside them.

Exact match and F1 follow SQuAD v1.1 (Rajpurkar et al., 2016): lower case, no punctuation, no articles, single
spaces, the best over all aliases. On ASCII text they agree with it, save one case: an alias of which nothing is
left once normalised ("The", "...") never matches, so an empty answer is never right. Beyond ASCII, every Unicode
punctuation mark counts as punctuation and composed and decomposed letters are the same letter.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

_ARTICLES = frozenset({"a", "an", "the"})
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL | re.IGNORECASE)


def normalise_answer(text: str) -> str:
    """``text`` in lower case, without punctuation and articles, words one space apart."""
    return " ".join(word for word in _words(text) if word not in _ARTICLES)


def normalise_question(text: str) -> str:
    """What two wordings of the very same question share: words without case and punctuation, articles kept."""
    return " ".join(_words(text))


def extract_answer(text: str) -> str:
    """The content of the last complete ``<answer>…</answer>`` pair (the inner one of nested pairs), else all of it."""
    pairs = _ANSWER.findall(text)
    return (pairs[-1] if pairs else text).strip()


def exact_match(answer: str, aliases: Sequence[str]) -> float:
    """1.0 when the normalised answer equals a normalised alias."""
    return float(normalise_answer(answer) in _normal_forms(aliases))


def token_f1(answer: str, aliases: Sequence[str]) -> float:
    """The harmonic mean of word precision and recall, words counted with multiplicity; the best over the aliases."""
    words = normalise_answer(answer).split()
    return max((_overlap_f1(words, alias.split()) for alias in _normal_forms(aliases)), default=0.0)


def lax_match(answer: str, aliases: Sequence[str]) -> float:
    """1.0 when the answer contains an alias anywhere, in the middle of a word too ("au" in "Australia").

    The published LatentMem code compares lower-cased text; here both sides are normalised first, so that an exact
    match is always a lax match. Lenient by design: reported beside exact match, never in its place.
    """
    text = normalise_answer(answer)
    return float(any(alias in text for alias in _normal_forms(aliases)))


def score_short_answer(answer: str, aliases: Sequence[str]) -> dict[str, float]:
    """All three scores of :func:`extract_answer` of ``answer``; raw agent output is fine."""
    final = extract_answer(answer)
    return {
        "exact_match": exact_match(final, aliases),
        "token_f1": token_f1(final, aliases),
        "lax_match": lax_match(final, aliases),
    }


def _words(text: str) -> list[str]:
    composed = unicodedata.normalize("NFC", text.lower())
    bare = "".join(char for char in composed if not _is_punctuation(char))
    # Again, for a letter and its accent that punctuation stood between.
    return unicodedata.normalize("NFC", bare).split()


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char).startswith("P")


def _normal_forms(aliases: Sequence[str]) -> list[str]:
    forms = (normalise_answer(alias) for alias in aliases)
    return [form for form in forms if form]


def _overlap_f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    shared = sum((Counter(answer) & Counter(gold)).values())
    return 2 * shared / (len(answer) + len(gold)) if shared else 0.0
