"""The last line of every bench: one JSON object that a script can read."""

from __future__ import annotations

import json
import math


def result_line(bench: str, **figures: float | str | bool | None) -> str:
    """``{"bench": bench, ...}`` with floats rounded to 4 significant digits; integers stay whole.

    Raises:
        ValueError: a figure that is not finite, which JSON cannot hold.
    """
    bad = [name for name, value in figures.items() if isinstance(value, float) and not math.isfinite(value)]
    if bad:
        raise ValueError(f"bench {bench}: {bad[0]} is {figures[bad[0]]}, which JSON cannot hold: report finite numbers")
    return json.dumps({"bench": bench, **{name: _rounded(value) for name, value in figures.items()}})


def print_result(bench: str, **figures: float | str | bool | None) -> None:
    """Print :func:`result_line` now; call it last."""
    print(result_line(bench, **figures), flush=True)


def _rounded(value: float | str | bool | None) -> float | str | bool | None:
    return float(f"{value:.4g}") if isinstance(value, float) else value
