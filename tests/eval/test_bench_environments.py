"""The environments' bench: it plays to the end, and a plan that does not win is no figure."""

from __future__ import annotations

import json

import pytest

from data.environment import Observation
from data.task import Score
from eval.bench import environments
from eval.bench.environments import Timing, pddl_timing, timing


class Door:
    """A world of one action, ``open``, with a count of what was called."""

    def __init__(self) -> None:
        self.opened = self.closed = 0

    def reset(self) -> Observation:
        return Observation("A door.", ("open",))

    def step(self, action: str) -> Observation:
        self.opened += action == "open"
        return Observation("", done=True)

    def score(self) -> Score:
        return {"success": float(self.opened > 0)}

    def close(self) -> None:
        self.closed += 1


def test_every_step_is_timed_and_every_game_closed() -> None:
    door = Door()
    result = timing([(door, ["look", "open"]), (door, ["open"])])
    assert (door.opened, door.closed) == (2, 2)
    assert result.steps_s > 0
    assert result.reset_s >= 0


def test_a_plan_that_does_not_win_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="a plan of 1 steps does not win its game"):
        timing([(Door(), ["look"])])


def test_pddl_games_are_timed() -> None:
    assert pddl_timing("gripper", games=1, repeats=2, list_actions=False).steps_s > 300


def test_the_last_line_has_the_agreed_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environments, "alfworld_timing", lambda games: Timing(0.25, 0.0075, 100.0))
    monkeypatch.setattr(environments, "pddl_timing", lambda *_: Timing(0.0, 0.001, 1000.0))
    environments.main([])
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {
        "bench": "environments",
        "gripper_steps_s": 1000.0,
        "blockworld_steps_s": 1000.0,
        "barman_steps_s": 1000.0,
        "tyreworld_steps_s": 1000.0,
        "alfworld_reset_s": 0.25,
        "alfworld_step_ms": 7.5,
    }
