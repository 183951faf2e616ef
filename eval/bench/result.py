"""The last line of every bench: one JSON object that a script can read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

Figure = float | str | bool | None
Figures = Figure | Sequence[Mapping[str, Figure]]
"""One figure, or rows of named ones."""


def result_line(bench: str, **figures: Figures) -> str:
    """``{"bench": bench, ...}`` with floats rounded to 4 significant digits; integers stay whole.

    Raises:
        ValueError: a figure that is not finite, which JSON cannot hold.
    """
    for name, value in _each(figures):
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"bench {bench}: {name} is {value}, which JSON cannot hold: report finite numbers")
    return json.dumps({"bench": bench, **{name: _rounded(value) for name, value in figures.items()}})


def print_result(bench: str, **figures: Figures) -> None:
    """Print :func:`result_line` now; call it last."""
    print(result_line(bench, **figures), flush=True)


def _each(figures: Mapping[str, Figures]) -> Iterator[tuple[str, Figure]]:
    for name, value in figures.items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            for place, row in enumerate(value):
                yield from ((f"{name}[{place}].{key}", figure) for key, figure in row.items())
        else:
            yield name, value


def _rounded(value: Figures) -> Figures:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [{key: _rounded_figure(figure) for key, figure in row.items()} for row in value]
    return _rounded_figure(value)


def _rounded_figure(value: Figure) -> Figure:
    return float(f"{value:.4g}") if isinstance(value, float) else value
