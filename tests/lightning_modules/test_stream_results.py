"""A stream's results, worked by hand."""

from __future__ import annotations

from dataclasses import replace

from lightning_modules.stream_results import mean_scores, row_of, summary
from tests.memory.parts import a_trajectory


def a_row(task: str, success: float, type_: str | None = None, failure: str | None = None) -> dict[str, object]:
    return {"task": task, "type": type_, "failure": failure, "score": {"success": success}}


def test_a_row_is_plain_and_has_the_type_of_a_worlds_task() -> None:
    plain = a_trajectory("Where?")
    assert row_of(plain) == {"task": plain.task.id, "type": None, "failure": None, "score": dict(plain.score)}
    household = replace(plain, task=replace(plain.task, metadata={"type": "heat"}), failure="step limit: no")
    assert (row_of(household)["type"], row_of(household)["failure"]) == ("heat", "step limit: no")


def test_means_are_over_everything_the_last_quarter_and_each_type() -> None:
    rows = [a_row("a", 1.0, "heat"), a_row("b", 0.0, "cool"), a_row("c", 0.0, "heat"), a_row("d", 1.0, "cool", "x")]
    found = summary([*rows, *rows])
    assert (found["episodes"], found["failed"]) == (8, 2)
    assert found["mean"] == {"success": 0.5}
    assert found["last_quarter"] == mean_scores(rows[2:]) == {"success": 0.5}
    assert summary([*rows, a_row("e", 1.0, "cool")])["by_type"] == {
        "cool": {"episodes": 3, "success": 2 / 3},
        "heat": {"episodes": 2, "success": 0.5},
    }


def test_nothing_is_no_mean_and_tasks_without_a_type_have_none() -> None:
    assert summary([])["mean"] == {}
    assert summary([a_row("a", 1.0)])["by_type"] == {}
