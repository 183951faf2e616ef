"""The dispatcher, the result line, the interleaved timing and the peak memory of a fresh process."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.bench.__main__ import listing, main, unknown
from eval.bench.catalogue import FOLDER, find_benches
from eval.bench.peak_memory import measure_peak
from eval.bench.result import print_result, result_line
from eval.bench.timing import compare

BENCHES = {"lmpo_step": "The update against a plain one.", "rollout": "Concurrent episodes."}
MIB = 1024 * 1024


def test_a_module_with_main_is_a_bench_and_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "fast.py").write_text('"""How fast.\n\nMore."""\nraise SystemExit\ndef main(argv): ...\n')
    (tmp_path / "helper.py").write_text('"""No bench."""\n')
    (tmp_path / "__main__.py").write_text("def main(argv): ...\n")
    assert find_benches(tmp_path) == {"fast": "How fast."}


def test_every_bench_of_ours_says_what_it_measures() -> None:
    assert all(find_benches().values())
    for name in find_benches():
        module = ast.parse((FOLDER / f"{name}.py").read_text())
        (function,) = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
        assert [argument.arg for argument in function.args.args] == ["argv"]


def test_without_a_name_the_benches_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: python -m eval.bench NAME")


def test_a_wrong_name_is_an_error_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no_such_bench"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no benchmark 'no_such_bench'" in captured.err


def test_the_nearest_name_is_offered() -> None:
    assert unknown("lmpo_setp", BENCHES) == "no benchmark 'lmpo_setp'; did you mean 'lmpo_step'?"
    assert unknown("zzz", BENCHES) == "no benchmark 'zzz'"
    assert listing(BENCHES).splitlines()[1] == "  rollout    Concurrent episodes."


def test_a_name_runs_its_module_with_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text("seen = []\ndef main(argv): seen.extend(argv)\n")
    monkeypatch.setattr("eval.bench.__main__.find_benches", lambda: find_benches(tmp_path))
    monkeypatch.setattr("eval.bench.__path__", [str(tmp_path)])
    assert main(["echo", "--repeats", "3"]) == 0
    from eval.bench import echo  # type: ignore[attr-defined]

    assert echo.seen == ["--repeats", "3"]


def test_result_is_one_json_line_with_4_significant_digits(capsys: pytest.CaptureFixture[str]) -> None:
    print_result("lmpo_step", speedup=6.123456, grad_rel_diff=1.23456e-7, tokens=123456, device="cpu", exact=True)
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert json.loads(line) == {
        "bench": "lmpo_step",
        "speedup": 6.123,
        "grad_rel_diff": 1.235e-7,
        "tokens": 123456,
        "device": "cpu",
        "exact": True,
    }


def test_a_figure_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="bench rollout: of_limit is inf"):
        result_line("rollout", of_limit=float("inf"))


def test_rows_stand_in_the_same_line_and_are_checked_too() -> None:
    line = result_line("rollout", of_limit=0.91237, rows=[{"mas": "autogen", "of_limit": 0.91237, "calls": 64}])
    assert json.loads(line)["rows"] == [{"mas": "autogen", "of_limit": 0.9124, "calls": 64}]
    with pytest.raises(ValueError, match=r"bench rollout: rows\[0\].of_limit is nan"):
        result_line("rollout", rows=[{"of_limit": float("nan")}])


def test_compare_alternates_and_takes_ratios_of_pairs() -> None:
    now, order = [0.0], ""
    durations = {"a": iter([9.0, 4.0, 6.0, 10.0]), "b": iter([9.0, 2.0, 2.0, 2.0])}

    def work(name: str) -> Callable[[], None]:
        def run() -> None:
            nonlocal order
            order += name
            now[0] += next(durations[name])

        return run

    ratios = compare(work("a"), work("b"), repeats=3, warmup=1, clock=lambda: now[0])
    assert order == "abababab"
    assert ratios.first_s == (4.0, 6.0, 10.0)
    assert ratios.each == (2.0, 3.0, 5.0)
    assert (ratios.median, ratios.minimum, ratios.of_fastest) == (3.0, 2.0, 2.0)


def test_compare_needs_a_repeat() -> None:
    with pytest.raises(ValueError, match="at least 1 repeat"):
        compare(int, int, repeats=0)


def prepare_filling(kept_mib: int, work_mib: int) -> Callable[[], object]:
    """Holds some memory, drops twice as much again, and hands out work that fills some more."""
    kept = bytearray(b"x") * (kept_mib * MIB)
    bytearray(b"x") * (2 * kept_mib * MIB)
    return lambda: (len(kept), len(bytearray(b"x") * (work_mib * MIB)))


def prepare_failing() -> Callable[[], object]:
    raise LookupError("no such model")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads /proc")
def test_peak_counts_the_work_only_whatever_this_process_holds() -> None:
    ballast = bytearray(b"x") * (300 * MIB)
    peak = measure_peak(prepare_filling, 40, 64)
    del ballast
    assert peak.growth_mib == pytest.approx(64, abs=4)
    assert 40 < peak.before_mib < 250


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads /proc")
def test_what_fails_in_the_other_process_fails_here() -> None:
    with pytest.raises(LookupError, match="no such model"):
        measure_peak(prepare_failing)
