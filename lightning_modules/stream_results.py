"""What a stream of tasks came to: a row an episode, and means over all of them, the last quarter, each type of task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from data.trajectory import Trajectory

Row = dict[str, Any]
"""``task``, ``type`` (of a world's task, else ``None``), ``failure``, ``score``: plain values, for a checkpoint."""


def row_of(trajectory: Trajectory) -> Row:
    """The row of one episode."""
    return {
        "task": trajectory.task.id,
        "type": trajectory.task.metadata.get("type"),
        "failure": trajectory.failure,
        "score": dict(trajectory.score),
    }


def mean_scores(rows: Sequence[Row]) -> dict[str, float]:
    """The mean of every metric over ``rows``."""
    names = sorted({name for row in rows for name in row["score"]})
    return {name: sum(row["score"].get(name, 0.0) for row in rows) / len(rows) for name in names}


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts and means; ``by_type`` has an entry for every type of task that there was."""
    types = sorted({row["type"] for row in rows if row["type"] is not None})
    of_type = {type_: [row for row in rows if row["type"] == type_] for type_ in types}
    return {
        "episodes": len(rows),
        "failed": sum(row["failure"] is not None for row in rows),
        "mean": mean_scores(rows),
        "last_quarter": mean_scores(rows[3 * len(rows) // 4 :]),
        "by_type": {type_: {"episodes": len(those), **mean_scores(those)} for type_, those in of_type.items()},
        "rows": list(rows),
    }
