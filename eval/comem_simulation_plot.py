"""The figure of the simulation: six small multiples over the stream, one line a memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

PANELS = (
    ("reward", "reward"),
    ("misleading", "injected insights that mislead"),
    ("precision", "pool precision"),
    ("pool", "entries in the pool"),
    ("largest_private", "largest private store"),
    ("action_similarity", "similarity of agents' actions"),
)

# Okabe and Ito's palette, and a dash for each line so that print without colour tells them apart too.
STYLES: Mapping[str, tuple[str, str]] = {
    "CoMem": ("#0072B2", "-"),
    "private only": ("#E69F00", "--"),
    "collective only": ("#009E73", "-."),
    "flat shared": ("#D55E00", "-"),
    "no memory": ("#888888", ":"),
}
_STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6}


def plot_simulation(runs: Mapping[str, Sequence[Mapping[str, float]]], path: Path, window: int) -> Path:
    """Means over ``window`` episodes into ``path``."""
    with rc_context(_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(10, 5.6), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(f"Simulation with scripted agents (means over {window} episodes); no model, no benchmark")
        panels = figure.subplots(2, 3, sharex=True).flatten()
        for axes, (key, title) in zip(panels, PANELS, strict=True):
            _draw(axes, runs, key, title, window)
        for axes in panels[3:]:
            axes.set_xlabel("episode")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        figure.savefig(path, dpi=150)
    return path


def _draw(axes: Axes, runs: Mapping[str, Sequence[Mapping[str, float]]], key: str, title: str, window: int) -> None:
    for name, rows in runs.items():
        places, values = moving_means(rows, key, window)
        if places:
            colour, dash = STYLES[name]
            axes.plot(places, values, dash, color=colour, label=name, linewidth=1.4)
    axes.set_title(title, fontsize=9)
    if key == "pool":
        axes.set_yscale("symlog", linthresh=10)
    else:
        axes.set_ylim(bottom=0)
    axes.grid(color="#E5E5E5", linewidth=0.6)


def moving_means(rows: Sequence[Mapping[str, float]], key: str, window: int) -> tuple[list[int], list[float]]:
    """The mean of ``key`` over the last ``window`` rows, at every tenth of a window where there is any."""
    places, values = [], []
    for end in range(window, len(rows) + 1, max(1, window // 10)):
        found = [row[key] for row in rows[end - window : end] if key in row]
        if found:
            places.append(end - 1)
            values.append(sum(found) / len(found))
    return places, values
