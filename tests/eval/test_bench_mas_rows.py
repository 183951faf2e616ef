from __future__ import annotations

import pytest

from eval.bench.mas_rows import SYSTEMS, Measured, load_systems, row, run_systems
from eval.bench.scaling import measure
from rollout.engine import EngineError, Request
from rollout.replay_engine import ReplayEngine
from tests.memory.parts import a_trajectory


def test_every_system_of_the_table_is_there_and_named_so() -> None:
    assert {name: mas.name for name, mas in load_systems(SYSTEMS).items()} == {name: name for name in SYSTEMS}


def test_all_systems_run_one_after_another_on_one_engine() -> None:
    """Over a script, a simulation: what is counted is checked, not how fast it is."""
    engine = ReplayEngine(script=lambda request: "def f(x): return x")
    measured = run_systems(engine, load_systems(SYSTEMS), 3, 64)
    assert [len(each.made) for each in measured.values()] == [3] * 4
    assert {trajectory.failure for each in measured.values() for trajectory in each.made} == {None}
    assert len(measured["autogen"].steps) == 3 * 2
    assert len(measured["macnet"].steps) == 3 * 5
    assert all(each.seconds > 0 for each in measured.values())


def test_a_system_that_fails_altogether_is_no_row() -> None:
    def refuses(request: Request) -> str:
        raise EngineError(f"{request.label}: too long")

    with pytest.raises(RuntimeError, match="all 3 episodes failed"):
        run_systems(ReplayEngine(script=refuses), load_systems(["autogen"]), 3, 64)


def test_a_row_compares_tokens_a_second() -> None:
    made = row("autogen", Measured((a_trajectory("x?"), a_trajectory("y?")), seconds=0.5), limit=10.0)
    assert (made.calls, made.failed, made.tokens) == (2, 0, 4)
    assert (made.concurrent, made.limit, made.of_limit) == (8.0, 10.0, 0.8)
    assert str(made) == "autogen       8.0 of     10.0 tokens/s = 0.800  2 calls, 0 episodes failed"


def test_the_runners_own_cost_is_below_a_millisecond_a_call() -> None:
    """Of processor time: what the bench measures by the clock depends on who else uses the machine."""
    costs = measure(episodes=(4, 32), calls=128, rounds=2)
    assert list(costs) == [4, 32]
    assert max(cost.cpu_ms for cost in costs.values()) < 1.0
