"""BM25 (Robertson and Zaragoza 2009), the offline stand-in for a search engine."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


class BM25:
    """Scores of a query against fixed texts, from an inverted index.

    score(q, d) = Σ_t idf(t) · f (k1 + 1) / (f + k1 (1 − b + b |d| / avgdl)) with
    idf(t) = ln(1 + (N − n + 0.5) / (n + 0.5)), which is never negative.

    Args:
        texts: the documents.
        k1: how fast repeated words stop counting; the usual value.
        b: how much long documents are held back; the usual value.
    """

    def __init__(self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75) -> None:
        counts = [Counter(words(text)) for text in texts]
        lengths = [sum(count.values()) for count in counts]
        average = sum(lengths) / max(1, len(lengths)) or 1.0
        self.postings: dict[str, list[tuple[int, float]]] = {}
        for number, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            for word, times in count.items():
                weight = times * (k1 + 1) / (times + k1 * (1 - b + b * length / average))
                self.postings.setdefault(word, []).append((number, weight))
        self.documents = len(texts)

    def search(self, query: str, limit: int) -> list[tuple[int, float]]:
        """The best documents with their scores, best first; those that share no word with the query are left out."""
        scores: dict[int, float] = {}
        for word in set(words(query)):
            found = self.postings.get(word, [])
            idf = math.log(1 + (self.documents - len(found) + 0.5) / (len(found) + 0.5))
            for number, weight in found:
                scores[number] = scores.get(number, 0.0) + idf * weight
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def words(text: str) -> list[str]:
    """Lower-case words."""
    return _WORD.findall(text.lower())
