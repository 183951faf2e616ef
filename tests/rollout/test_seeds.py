from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.seeds import call_seed

NUMBER = st.integers(0, 10_000)
CALL = st.tuples(NUMBER, NUMBER, st.text(max_size=8), NUMBER, NUMBER)


def test_it_never_changes() -> None:
    assert call_seed(0, 0, "t0", 0, 0) == 7901716812836245589


@given(CALL)
@settings(deadline=None)
def test_it_is_what_a_generator_takes(call: tuple[int, int, str, int, int]) -> None:
    assert 0 <= call_seed(*call) < 2**63
    assert call_seed(*call) == call_seed(*call)


@given(CALL, CALL)
@settings(deadline=None)
def test_different_calls_have_different_seeds(
    one: tuple[int, int, str, int, int], two: tuple[int, int, str, int, int]
) -> None:
    assert (call_seed(*one) == call_seed(*two)) == (one == two)


def test_neighbours_in_a_run_never_share_a_seed() -> None:
    seeds = {
        call_seed(seed, step, f"t{task}", member, call)
        for seed in range(2)
        for step in range(10)
        for task in range(12)
        for member in range(8)
        for call in range(5)
    }
    assert len(seeds) == 2 * 10 * 12 * 8 * 5
    assert call_seed(0, 0, "t1", 2, 0) != call_seed(0, 0, "t12", 0, 0)


def test_it_does_not_depend_on_the_process() -> None:
    code = "from rollout.seeds import call_seed; print(call_seed(7, 3, 'tâche', 1, 4))"
    root = Path(__file__).resolve().parents[2]
    for hash_seed in ("1", "2"):
        printed = subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(printed.stdout) == call_seed(7, 3, "tâche", 1, 4)
