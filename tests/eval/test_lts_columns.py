"""What stands in the cells of LTS's tables, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from data.assistantbench import AssistantBench
from data.task import Task
from eval.lts_columns import (
    check_scored,
    costs,
    decimal,
    level_of,
    levels_of,
    markdown,
    percent,
    score_runtime,
    standard_error,
    utilisation,
)
from rollout.team_measures import Measures
from rollout.teams_episode import TeamsEpisode

REAL = Measures(
    episodes=2, score=0.304, score_first=0.25, runtime_s=891.6, simulated=False, saved=84.9, recall=None,
    cross_team_recall=69.04, steps=41.5, tokens=12345.6, decision_s=0.0125, decision_share=0.204, failed=0,
    failed_teams=3,
)  # fmt: skip


def test_units_and_rounding() -> None:
    assert score_runtime(REAL) == {"score %": "30.4", "runtime, s": "892"}
    assert utilisation(REAL) == {
        "memories saved %": "84.9",
        "memory recall %": "–",
        "cross-team recall %": "69.0",
    }
    assert costs(REAL) == {
        "R_first %": "25.0",
        "steps": "41.5",
        "tokens": "12346",
        "ms a decision": "12.5",
        "decisions' share of runtime %": "0.20",
        "failed teams": "3",
        "failed episodes": "0",
    }


def test_simulated_seconds_are_called_so_and_have_no_share_of_wall_clock() -> None:
    simulated = replace(REAL, simulated=True)
    assert list(score_runtime(simulated)) == ["score %", "runtime, simulated s"]
    assert costs(simulated)["decisions' share of runtime %"] == "–"
    assert costs(replace(REAL, decision_s=None))["ms a decision"] == "–"


def task_of(**metadata: object) -> Task:
    return Task("t", "?", ("1",), "gaia", metadata=metadata)


def test_levels_of_both_benchmarks_easy_first() -> None:
    assert level_of(task_of(level=2)) == "level 2"
    assert level_of(task_of(difficulty="Hard")) == "Hard"
    assert level_of(task_of(difficulty=None)) == ""
    mixed = [task_of(difficulty=name) for name in ("Hard", "Medium", "Easy", "Hard", "")]
    assert levels_of(mixed) == ["Easy", "Medium", "Hard"]
    assert levels_of([task_of(level=3), task_of(level=1)]) == ["level 1", "level 3"]
    assert levels_of([task_of()]) == []


def episode_of(score: float) -> TeamsEpisode:
    found = {"right": score}
    return TeamsEpisode(task_of(), 0, (), 0, "", found, found, (), (), (), 1.0, False, 1.0)


def test_standard_error_by_hand() -> None:
    # 1, 1, 0, 0: sample variance 1/3, over 4 tasks: sqrt(1/12).
    episodes = [episode_of(score) for score in (1.0, 1.0, 0.0, 0.0)]
    assert standard_error(episodes, "right") == pytest.approx(12**-0.5)
    assert standard_error(episodes[:1], "right") == 0.0


def test_hidden_answers_are_refused_before_anything_is_played() -> None:
    benchmark = AssistantBench(source="sample")
    tasks = list(benchmark.tasks("test"))
    check_scored(benchmark, tasks, "accuracy")
    hidden = [*tasks, replace(tasks[0], id="h7", answers=())]
    with pytest.raises(SystemExit, match=rf"1 of {len(hidden)} tasks have no 'accuracy', the first is h7"):
        check_scored(benchmark, hidden, "accuracy")
    check_scored(benchmark, hidden, "answered")
    with pytest.raises(SystemExit, match="there are no tasks"):
        check_scored(benchmark, [], "accuracy")


def test_a_table() -> None:
    assert markdown("T", ["a", "b"], [["1", "2"]]) == "## T\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert (percent(0.12345), decimal(None), decimal(1.25, 2)) == ("12.3", "–", "1.25")
