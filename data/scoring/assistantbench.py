"""How AssistantBench is scored (Yoran et al., 2024, §4): partial credit by the type of the gold answer.

- number: max(0, 1 − |ln(answer / gold)|), zero taken as 1e-4;
- string: F1 of the sets of words, 0 unless the two share a number where the gold answer has any;
- object: F1 of precision and recall over keys, each key's value by its own rule, 0 where the types differ;
- list (a line each): the best one-to-one alignment, averaged over the longer of the two lists.

Departures from the published scorer, which reads every comma as a decimal point and takes a text as one element even
where the gold answer is a list: ``1,200`` is a thousand and two hundred here, and a list may be given line by line.
"""

from __future__ import annotations

import ast
import json
import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from data.scoring.final_answer import final_answer

T = TypeVar("T")

_ZERO = 1e-4
_DEEPEST = 100
_UNITS = re.compile(r"[$%]|sqft|square kilometers")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def score_assistantbench(text: str, gold: str) -> dict[str, float]:
    """``accuracy`` (graded), ``exact_match`` (accuracy 1) and ``answered`` of the final answer of ``text``.

    The paper's precision is the mean accuracy over the mean of ``answered``.
    """
    answer = final_answer(text)
    accuracy = assistantbench_accuracy(answer, gold) if answer else 0.0
    return {"accuracy": accuracy, "exact_match": float(accuracy == 1.0), "answered": float(bool(answer))}


def assistantbench_accuracy(answer: str, gold: str) -> float:
    """The graded score in [0, 1] of ``answer``, already extracted: empty is 0."""
    wanted, given = _lines(gold), _given(answer)
    if not given or not wanted:
        return 0.0
    if len(wanted) == 1 and (number := parse_number(wanted[0])) is not None:
        return _value_score(parse_number(given[0]), number) if len(given) == 1 else 0.0
    objects = [value for line in wanted if isinstance(value := _object(line), dict)]
    if len(objects) == len(wanted):
        return _aligned([each if isinstance(each, dict) else {} for each in given], objects, _object_f1)
    if len(wanted) == 1 and not _is_json_list(answer):
        given = [" ".join(map(str, given))]
    return _aligned([_words(each) for each in given], [_words(line) for line in wanted], _words_f1)


def number_score(answer: float, gold: float) -> float:
    """max(0, 1 − |ln(answer / gold)|); 1 for two zeros, 0 where the signs differ or a number is not finite."""
    if answer == gold == 0:
        return 1.0
    answer, gold = answer or _ZERO, gold or _ZERO
    if not math.isfinite(answer) or not math.isfinite(gold) or (answer > 0) != (gold > 0):
        return 0.0
    return max(0.0, 1.0 - abs(math.log(abs(answer)) - math.log(abs(gold))))


def parse_number(value: object) -> float | None:
    """A number, or a text that is one but for units ($, %, sqft, square kilometers) and thousands separators."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _float(str(value))
    if not isinstance(value, str):
        return None
    bare = _UNITS.sub("", value).strip()
    return _float(bare.replace(",", "") if _THOUSANDS.fullmatch(bare) else bare.replace(",", "."))


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _given(answer: str) -> list[object]:
    """The elements of an answer: of a JSON list, else its lines, those that are JSON objects decoded."""
    whole = _json(answer)
    if isinstance(whole, list):
        return [each for each in whole if each not in ("", None)]
    if isinstance(whole, dict):
        return [whole]
    decoded = [(line, _json(line)) for line in _lines(answer)]
    return [value if isinstance(value, dict) else line for line, value in decoded]


def _is_json_list(answer: str) -> bool:
    return isinstance(_json(answer), list)


def _json(text: str) -> object:
    """``None`` for what is not JSON, or nested so deeply that no answer means it (its text could not be had)."""
    try:
        return json.loads(text) if _depth(text) <= _DEEPEST else None
    except (ValueError, RecursionError):
        return None


def _depth(text: str) -> int:
    """Of the brackets, those in strings counted too."""
    return max(accumulate((char in "[{") - (char in "]}") for char in text), default=0)


def _object(line: str) -> object:
    """A gold line as an object; the data set writes some with Python's quotes."""
    value = _json(line)
    if value is not None or not line.startswith("{"):
        return value
    try:
        return ast.literal_eval(line)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _aligned(given: Sequence[T], wanted: Sequence[T], score: Callable[[T, T], float]) -> float:
    scores = np.array([[score(one, gold) for one in given] for gold in wanted])
    best = scores[linear_sum_assignment(scores, maximize=True)]
    return min(1.0, float(best.sum()) / max(len(given), len(wanted)))


def _object_f1(given: Mapping[str, object], wanted: Mapping[str, object]) -> float:
    recall, precision = _coverage(given, wanted), _coverage(wanted, given)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _coverage(given: Mapping[str, object], wanted: Mapping[str, object]) -> float:
    """The mean score of ``wanted``'s keys in ``given``."""
    scores = [_value_score(given[key], value) if key in given else 0.0 for key, value in wanted.items()]
    return sum(scores) / len(scores) if scores else 0.0


def _value_score(given: object, wanted: object) -> float:
    one, gold = parse_number(given), parse_number(wanted)
    if one is not None and gold is not None:
        return number_score(one, gold)
    if one is not None or gold is not None or type(given) is not type(wanted):
        return 0.0
    if isinstance(given, list) and isinstance(wanted, list) and given and wanted:
        return _aligned([_words(each) for each in given], [_words(each) for each in wanted], _words_f1)
    return _words_f1(_words(given), _words(wanted))


def _words(value: object) -> frozenset[str]:
    """The normalised words of a text, cut at blanks and hyphens; numbers in one form, articles and marks gone."""
    return frozenset(word for token in re.split(" |-", str(value).lower()) for word in _normal(token).split())


def _normal(token: str) -> str:
    bare = token if _float(token) is not None else token.translate(_PUNCTUATION)
    number = _float(bare)
    return _ARTICLES.sub(" ", bare if number is None else str(number))


def _words_f1(given: frozenset[str], wanted: frozenset[str]) -> float:
    numbers = {word for word in wanted if _float(word) is not None}
    if numbers and not numbers & given:
        return 0.0
    shared = len(given & wanted)
    return 2 * shared / (len(given) + len(wanted)) if shared else 0.0
