"""Figure 3 of the LTS paper: the runtime's cumulative distribution, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eval.lts_columns import markdown, runtime_title
from rollout.team_measures import runtime_cdf
from rollout.teams_episode import TeamsEpisode

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_COLOURS = ("#333333", "#D55E00", "#56B4E9", "#E69F00", "#009E73")
"""Okabe and Ito's, told apart with every common colour blindness."""

Runs = Mapping[str, Sequence[TeamsEpisode]]
"""Name of a curve to its episodes."""


def cdf_table(runs: Runs) -> str:
    """Seconds within which a share of the tasks is done."""
    title = runtime_title(_simulated(runs))
    head = ["variant", *(f"{100 * share:.0f} % of tasks" for share in SHARES)]
    rows = [[name, *(f"{_within(episodes, share):.0f}" for share in SHARES)] for name, episodes in runs.items()]
    return markdown(f"Figure 3: cumulative distribution of the {title}", head, rows)


def plot_cdf(runs: Runs, path: Path) -> Path:
    """One step curve a variant into ``path``; the suffix gives the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for colour, (name, episodes) in zip(_COLOURS, runs.items(), strict=False):
        cdf = runtime_cdf(episodes)
        seconds, shares = [0.0, *(s for s, _ in cdf)], [0.0, *(100 * share for _, share in cdf)]
        axes.step(seconds, shares, where="post", label=name, color=colour)
    axes.set(xlabel=runtime_title(_simulated(runs)), ylabel="tasks done (%)", ylim=(0, 102))
    axes.set_xlim(left=0)
    axes.legend(loc="lower right", frameon=False, fontsize=8)
    axes.grid(color="#E5E5E5", linewidth=0.6)
    figure.savefig(path, dpi=200)
    return path


def _within(episodes: Sequence[TeamsEpisode], share: float) -> float:
    return next(seconds for seconds, done in runtime_cdf(episodes) if done >= share - 1e-9)


def _simulated(runs: Runs) -> bool:
    return any(episode.simulated for episodes in runs.values() for episode in episodes)
