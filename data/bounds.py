"""Values of a config, held to where they mean something; the complaint begins with the path of the key."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def check_at_least(least: float, where: str, /, **numbers: float) -> None:
    """Raises ``ValueError`` for the first of ``numbers`` that is below ``least`` or not a number.

    Args:
        least: what each of them must be at least.
        where: path of the section that they are keys of, such as ``engine.init_args``.
        numbers: by key.
    """
    for name, value in numbers.items():
        if not value >= least:
            raise ValueError(f"{where}.{name} is {value}; it must be at least {least:g}")


def check_share(where: str, /, **numbers: float) -> None:
    """Raises ``ValueError`` for the first of ``numbers`` that is no share of a whole: above 0, and 1 at most."""
    for name, value in numbers.items():
        if not 0 < value <= 1:
            raise ValueError(f"{where}.{name} is {value}; it must be above 0 and at most 1")


def check_metric(key: str, metric: str, benchmark: str, metrics: Sequence[str]) -> None:
    """Raises ``ValueError`` with the nearest name when ``benchmark`` does not score ``metric``."""
    if metric not in metrics:
        close = difflib.get_close_matches(metric, metrics, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(metrics)}"
        raise ValueError(f"{key} is {metric!r}, which is no score of benchmark {benchmark!r}; {hint}")
