"""Credit on whole episodes: what was used, by whom, and what a group's returns make of it."""

from __future__ import annotations

import pytest
import torch

from data.task import Task
from lightning_modules.credit import decision_advantages, used_mask
from lightning_modules.reinforce import ReinforceSettings
from memory.shared_bank import Entry, Use
from rollout.teams_episode import AdmissionStep, TeamsEpisode

TASK = Task("t", "?", ("!",), "test")
PLAIN = ReinforceSettings(group_size=2, reward="right", beta=0.5, advantage_epsilon=0.0)


def episode(score: float, first: float, decisions: list[tuple[int, bool]], uses: list[tuple[int, int]]) -> TeamsEpisode:
    """Decisions as (team, admitted), uses as (entry, team)."""
    entries: list[Entry] = []
    steps = []
    for place, (team, admitted) in enumerate(decisions):
        entry = len(entries) if admitted else None
        if admitted:
            entries.append(Entry("k", "v", team, place, 0.0))
        steps.append(AdmissionStep(team, place, "u", "s", "o", len(entries), admitted, 0.5, entry, 0.0))
    return TeamsEpisode(
        task=TASK,
        member=0,
        results=(),
        first=0,
        answer="",
        score={"right": score},
        score_first={"right": first},
        entries=tuple(entries),
        uses=tuple(Use(entry, team, 0) for entry, team in uses),
        admissions=tuple(steps),
        runtime_s=1.0,
        simulated=True,
        wall_s=0.0,
    )


def test_u_counts_decisions_not_entries() -> None:
    # The second decision was rejected, so entry 1 is decision 2.
    played = episode(1.0, 1.0, [(0, True), (1, False), (1, True)], uses=[(1, 0), (0, 0)])
    assert used_mask(played, by_other_team=True).tolist() == [False, False, True]
    assert used_mask(played, by_other_team=False).tolist() == [True, False, True]


def test_advantages_of_a_group_by_hand() -> None:
    # Returns 1 + 1 = 2 and 0 + 1 = 1: mean 1.5, deviation 0.5, so A = +1 and -1; both have R > 0.
    good = episode(1.0, 1.0, [(0, True), (1, True)], uses=[(0, 1)])
    poor = episode(0.0, 1.0, [(0, True), (1, False), (0, True)], uses=[(1, 1)])
    first, second = decision_advantages([[good, poor]], PLAIN)
    torch.testing.assert_close(first, torch.tensor([1.5, 1.0]))
    torch.testing.assert_close(second, torch.tensor([-1.0, -1.0, -0.5]))


def test_each_task_is_a_group_of_its_own() -> None:
    same = [episode(1.0, 1.0, [(0, True)], []) for _ in range(2)]
    differ = [episode(score, 0.0, [(0, True)], []) for score in (1.0, 0.0)]
    values = [float(each) for each in decision_advantages([same, differ], PLAIN)]
    assert values == pytest.approx([0.0, 0.0, 1.0, -1.0])
