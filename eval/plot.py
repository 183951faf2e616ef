"""The figure of an evaluation: what each memory scores, beside what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eval.report import metric_title
from eval.rows import Row

LABELS = {
    "none": "no memory",
    "text": "retrieved text",
    "latentmem_untrained": "LatentMem, untrained",
    "latentmem_sft": "LatentMem, warm start",
    "latentmem": "LatentMem, LMPO",
}
"""What a memory is called in the figure; any other keeps its name."""

# Okabe and Ito's palette: told apart with every common colour blindness, and by lightness in print.
_SKY, _ORANGE, _GREEN = "#56B4E9", "#D55E00", "#009E73"
_LIGHT, _MIDDLE, _INK = "#CCCCCC", "#888888", "#333333"
_STYLE = {
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.edgecolor": _INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "ytick.left": False,
    "xtick.major.width": 0.6,
    "pdf.fonttype": 42,
}


def plot_results(rows: Sequence[Row], path: Path) -> Path:
    """Draw ``rows`` from top to bottom into ``path``; the suffix (``.png``, ``.pdf``, ``.svg``) gives the format.

    Raises:
        ValueError: no rows.
    """
    if not rows:
        raise ValueError(f"nothing to plot into {path}: there are no rows")
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(7.2, 1.35 + 0.42 * len(rows)), layout="constrained")
        FigureCanvasAgg(figure)
        score, cost = figure.subplots(1, 2, sharey=True, width_ratios=(1.7, 1))
        _draw_scores(score, rows)
        _draw_tokens(cost, rows)
        figure.savefig(path, dpi=200)
    return path


def _draw_scores(axes: Axes, rows: Sequence[Row]) -> None:
    places, headline = range(len(rows)), rows[0].headline
    means = [100 * row.scores[headline] for row in rows]
    intervals = [row.intervals[headline] for row in rows]
    axes.barh(places, means, height=0.55, color=_SKY, label=metric_title(headline))
    axes.errorbar(
        means, places, xerr=_whiskers(means, intervals),
        fmt="none", ecolor=_INK, elinewidth=1, capsize=2.5, label="95 % interval",
    )  # fmt: skip
    highest = max([*means, *(100 * high for _, high in intervals)])
    if len(rows[0].scores) > 1:  # the metric after the headline one; more would hide one another
        second = list(rows[0].scores)[1]
        marks = [100 * row.scores[second] for row in rows]
        axes.scatter(
            marks, places, marker="D", s=34, color=_ORANGE, edgecolors="white", zorder=3, label=metric_title(second)
        )
        highest = max(highest, *marks)
    axes.set(xlim=(0, min(100, highest * 1.08 + 1)), xlabel=f"score (%), {_questions(rows)}")
    axes.set_yticks(list(places), [LABELS.get(row.memory, row.memory) for row in rows])
    axes.invert_yaxis()
    _finish(axes)


def _draw_tokens(axes: Axes, rows: Sequence[Row]) -> None:
    parts = (
        ("prompt", _LIGHT, [row.prompt_tokens for row in rows]),
        ("completion", _MIDDLE, [row.completion_tokens for row in rows]),
        ("latent", _GREEN, [row.latent_tokens for row in rows]),
    )
    start = [0.0] * len(rows)
    for label, colour, widths in parts:
        axes.barh(range(len(rows)), widths, left=start, height=0.55, color=colour, label=label)
        start = [left + width for left, width in zip(start, widths, strict=True)]
    for place, row in enumerate(rows):
        axes.text(row.tokens, place, f" {row.tokens:.0f}", va="center", fontsize=8)
    axes.set(xlim=(0, max(start) * 1.14 + 1), xlabel="tokens per question")
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2, borderpad=0,
        handlelength=1.2, handletextpad=0.4, columnspacing=1.1, fontsize=8,
    )  # fmt: skip
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.grid(axis="x", color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)


def _whiskers(values: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Lengths below and above, never negative by a rounding of an interval that ends at its value."""
    below = [max(0.0, value - 100 * low) for value, (low, _) in zip(values, intervals, strict=True)]
    above = [max(0.0, 100 * high - value) for value, (_, high) in zip(values, intervals, strict=True)]
    return [below, above]


def _questions(rows: Sequence[Row]) -> str:
    counts = {row.n for row in rows}
    return f"{min(counts)} questions" if len(counts) == 1 else f"{min(counts)}–{max(counts)} questions"
