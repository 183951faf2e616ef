"""The runtime's distribution as a table, by hand, and as a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from matplotlib.image import imread

from eval.lts_cdf import cdf_table, plot_cdf
from rollout.teams_episode import TeamsEpisode
from tests.eval.test_lts_columns import episode_of


def runs(simulated: bool = False) -> dict[str, list[TeamsEpisode]]:
    def lasting(*seconds: float) -> list[TeamsEpisode]:
        return [replace(episode_of(1.0), runtime_s=each, simulated=simulated) for each in seconds]

    return {"none": lasting(40, 10, 30, 20), "LTS": lasting(5, 5, 5, 50)}


def test_seconds_within_which_a_share_is_done() -> None:
    lines = cdf_table(runs()).splitlines()
    assert lines[0] == "## Figure 3: cumulative distribution of the runtime, s"
    # Of 10, 20, 30, 40 s: 10 % and 25 % of four tasks is one task, 50 % two, 75 % three, 90 % and 100 % all.
    assert lines[4] == "| none | 10 | 10 | 20 | 30 | 40 | 40 |"
    assert lines[5] == "| LTS | 5 | 5 | 5 | 5 | 50 | 50 |"
    assert "simulated s" in cdf_table(runs(simulated=True))


def test_the_picture_has_both_curves(tmp_path: Path) -> None:
    image = imread(plot_cdf(runs(), tmp_path / "plots" / "cdf.png"))
    orange = (abs(image[..., 0] - 0.835) < 0.05) & (image[..., 2] < 0.1)
    assert orange.sum() > 100
    assert (image[..., :3].max(axis=-1) < 0.3).sum() > 100
