"""Memory pollution as two figures: noise accumulation and behavioural homogenisation (sections 1 and 3.1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from memory.comem.baseline import is_below
from memory.comem.entry import Entry
from memory.encoder import Vectors


def noise(injected: Sequence[Entry], baseline: float) -> float | None:
    """The share of injected entries whose mean reward R̄_m is below the baseline R̄; ``None`` when none was."""
    means = [entry.mean_reward for entry in injected if entry.mean_reward is not None]
    return sum(is_below(mean, baseline) for mean in means) / len(means) if means else None


def memory_similarity(injected: Mapping[str, Vectors]) -> float | None:
    """How alike what two agents were given is: the mean cosine over all pairs of one's and the other's entries,
    averaged over pairs of agents. ``None`` with fewer than two agents that were given any.

    Args:
        injected: ``[n_i, dim]`` unit vectors of the entries that each agent read.
    """
    means = [vectors.mean(axis=0) for vectors in injected.values() if len(vectors)]
    return _mean([float(left @ right) for left, right in combinations(means, 2)])


def action_similarity(actions: Mapping[str, Sequence[str]]) -> float | None:
    """How alike two agents act: 1 − the Jensen–Shannon divergence (base 2) of their action frequencies, averaged over
    pairs of agents. 1 is what the paper's H(π_i ∥ π_j) → 0 comes to. ``None`` with fewer than two agents that acted.

    The divergence is the symmetric, always finite form of the paper's (ours).
    """
    counts = [Counter(taken) for taken in actions.values() if taken]
    return _mean([1 - _divergence(left, right) for left, right in combinations(counts, 2)])


def _divergence(left: Counter[str], right: Counter[str]) -> float:
    total = 0.0
    for action in left | right:
        p, q = left[action] / left.total(), right[action] / right.total()
        middle = (p + q) / 2
        total += sum(0.5 * share * math.log2(share / middle) for share in (p, q) if share > 0)
    return total


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
