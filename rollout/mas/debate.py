"""What a debate is and the pure rules over it: consensus, ratings, ranking, agent importance (DyLAN, Liu et al., 2024).

Notation after that paper: a_{t,i} is debater i in round t, w_{t,i,j} the rating that debater j of round t + 1 gives to
what i said in round t, I_{t,i} the contribution of a_{t,i}, and I_i the Agent Importance Score.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

HIGHEST, NEUTRAL = 5, 3
"""Ratings go from 1 to ``HIGHEST``; one that cannot be read counts as ``NEUTRAL`` (ours)."""

_NUMBER = r"\b\d{1,3}\b"
_RATING = r"(?<!/)" + _NUMBER + r"(?!\s*[:=)]|\.\s*\d)"
"""A number that is neither the label in ``2: 5`` nor the scale in ``4/5``."""


@dataclass(frozen=True)
class Round:
    """One round t.

    Attributes:
        replies: what each debater answered, by the debater's place in the team; the ranker's favourite stands first.
        ratings: for each debater j, the ratings of all replies of the round before, in the order of those; none in the
            first round, and none where nobody rates.
    """

    replies: Mapping[int, str]
    ratings: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Debate:
    """All rounds of one task, and the answer that came out."""

    rounds: tuple[Round, ...]
    answer: str


def same_answer(reply: str) -> str:
    """What two replies must share to agree: case, white space and the punctuation around them do not count.

    Ours; the paper compares choices, and programs by BLEU, so that here only programs written alike agree.
    """
    return " ".join(reply.split()).strip(" .,:;!?\"'`").casefold()


def most_frequent(replies: Iterable[str]) -> tuple[str, int]:
    """The reply that most agree with, as the first of them put it, and how many they are; of equals the first."""
    said = list(replies)
    keys = [same_answer(reply) for reply in said]
    key, count = Counter(keys).most_common(1)[0]
    return said[keys.index(key)], count


def consensus(replies: Sequence[str]) -> bool:
    """More than floor(2n/3) of the n replies agree: a third may err, as in Byzantine agreement."""
    return most_frequent(replies)[1] > 2 * len(replies) // 3


def read_ratings(reply: str, count: int) -> tuple[int, ...]:
    """The first ``count`` numbers of ``reply``, each held to 1 .. ``HIGHEST``; a missing one is ``NEUTRAL``."""
    numbers = [min(max(int(number), 1), HIGHEST) for number in re.findall(_RATING, reply)[:count]]
    return (*numbers, *[NEUTRAL] * (count - len(numbers)))


def read_ranking(reply: str, count: int) -> tuple[int, ...]:
    """Places ``0 .. count - 1``, best first: those that ``reply`` numbers (from 1 on), then the others in order."""
    named = [int(number) - 1 for number in re.findall(_NUMBER, reply)]
    return tuple(dict.fromkeys(place for place in [*named, *range(count)] if 0 <= place < count))


def importance(debate: Debate) -> dict[int, float]:
    """I_i of every debater, by place: what its replies contributed to the answer.

    The debaters of the last round that gave the answer share a contribution of 1; the message goes backward along the
    ratings, which sum to one for each rater, and a debater's score is the sum over rounds:

        I_{t,i} = sum_j w_{t,i,j} I_{t+1,j},    I_i = sum_t I_{t,i}

    So each round has 1 to give, and the scores sum to the number of rounds.

    Raises ``ValueError`` for a debate whose later rounds have no ratings.
    """
    last = debate.rounds[-1].replies
    winners = [place for place, reply in last.items() if same_answer(reply) == same_answer(debate.answer)]
    contribution = {place: 1 / len(winners) if place in winners else 0.0 for place in last}
    total = dict.fromkeys(debate.rounds[0].replies, 0.0) | contribution
    for earlier, later in zip(reversed(debate.rounds[:-1]), reversed(debate.rounds[1:]), strict=True):
        if later.ratings.keys() != later.replies.keys():
            raise ValueError("this debate has rounds without ratings; importance needs mas.init_args.rate: true")
        contribution = _backward(tuple(earlier.replies), later.ratings, contribution)
        for place, share in contribution.items():
            total[place] += share
    return total


def _backward(
    rated: Sequence[int], ratings: Mapping[int, Sequence[int]], contribution: Mapping[int, float]
) -> dict[int, float]:
    """I_{t,·} from I_{t+1,·}: every rater passes its contribution on in the proportions of its ratings."""
    shares = dict.fromkeys(rated, 0.0)
    for rater, given in ratings.items():
        for place, rating in zip(rated, given, strict=True):
            shares[place] += contribution[rater] * rating / sum(given)
    return shares
