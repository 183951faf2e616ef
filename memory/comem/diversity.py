"""The online hierarchical clustering filter of the collective stream (section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from memory.encoder import Vectors


def clusters(vectors: Vectors, cut: float) -> list[int]:
    """The cluster number of each of ``[n, dim]`` unit vectors: agglomerative, average linkage on cosine distance.

    Two clusters merge while their mean distance is at most ``cut``.
    """
    if len(vectors) < 2:
        return [1] * len(vectors)
    distances = np.clip(1 - vectors @ vectors.T, 0, 2)[np.triu_indices(len(vectors), 1)]
    labels: list[int] = fcluster(linkage(distances, "average"), cut, "distance").tolist()
    return labels


def representatives(vectors: Vectors, similarities: Sequence[float], cut: float, k: int) -> list[int]:
    """Rows of at most ``k`` entries, each its cluster's most similar to the query, most similar first.

    Args:
        vectors: ``[n, dim]`` unit vectors of the candidates.
        similarities: of each candidate to the query.
        cut: see :func:`clusters`.
        k: most representatives.
    """
    order = sorted(range(len(vectors)), key=lambda row: -similarities[row])
    best: dict[int, int] = {}
    labels = clusters(vectors, cut)
    for row in order:
        best.setdefault(labels[row], row)
    return list(best.values())[:k]
