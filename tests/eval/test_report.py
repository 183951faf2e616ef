"""What the files say, and that they hold all of it or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval.report import (
    comparison_line,
    console_table,
    markdown,
    row_to_dict,
    write_answers,
    write_results,
    write_text,
)
from eval.rows import MEMORIES, Outcome, Row, compare_memories, rows_from_outcomes

SETTINGS = {
    "command": "python eval.py --run runs/quickstart",
    "seed": 7,
    "items": ("a", "b"),
    "engine": {"name": "vllm"},
}


def answers(exact: list[int]) -> list[Outcome]:
    return [
        Outcome(
            f"t{index}",
            "Orléans" if value else "",
            {"exact_match": value, "token_f1": value, "lax_match": 1.0},
            "Where?",
            ("Orléans",),
            100,
            20,
            4,
        )
        for index, value in enumerate(exact)
    ]


OUTCOMES = {"none": answers([0] * 10 + [1] * 2), "latentmem": answers([1] * 10 + [0] * 2)}
METRICS = ("exact_match", "token_f1", "lax_match")
ROWS = rows_from_outcomes(OUTCOMES, {"none": 6.0, "latentmem": 12.0}, METRICS)
COMPARISONS = compare_memories(OUTCOMES, METRICS)


def test_results_json_holds_what_a_reader_relies_on(tmp_path: Path) -> None:
    results = json.loads(write_results(tmp_path / "run", ROWS, COMPARISONS, SETTINGS).read_text())
    row = results["rows"][1]
    assert row["memory"] == "latentmem"
    assert row["exact_match"] == pytest.approx(10 / 12)
    assert row["exact_match_ci"] == pytest.approx([0.552, 0.953], abs=1e-3)
    assert (row["tokens"], row["latent_tokens"], row["seconds"], row["n"]) == (124, 4, 1.0, 12)
    assert {"token_f1", "token_f1_ci", "lax_match", "prompt_tokens", "completion_tokens", "seconds_total"} <= row.keys()
    test = results["paired_tests"][0]
    assert (test["first"], test["second"], test["metric"]) == ("none", "latentmem", "exact_match")
    assert (test["better"], test["worse"], test["n"]) == (10, 2, 12)
    assert test["difference"] == pytest.approx(8 / 12)
    assert test["p_value"] == pytest.approx(158 / 4096)
    assert len(test["difference_ci"]) == 2
    assert results["settings"] == {**SETTINGS, "items": ["a", "b"]}


def test_results_md_has_table_tests_and_command(tmp_path: Path) -> None:
    write_results(tmp_path, ROWS, COMPARISONS, SETTINGS)
    text = (tmp_path / "results.md").read_text()
    assert "| latentmem | 12 | 83.3 [55.2, 95.3] |" in text
    assert "latentmem against none, exact match: +66.7 points [" in text
    assert "p = 0.0386 (exact McNemar; 10 better, 2 worse of 12)" in text
    assert "python eval.py --run runs/quickstart" in text


def test_markdown_is_one_well_formed_table() -> None:
    lines = [line for line in markdown(ROWS, [], {}).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(ROWS)
    assert len({len(line) for line in lines}) == 1
    assert len({line.count("|") for line in lines}) == 1
    assert set(lines[1]) == set("|-:")


def test_results_md_says_what_was_evaluated() -> None:
    names = {"benchmark": "bigcodebench", "split": "test", "mas": "camel"}
    assert markdown(ROWS, [], names).startswith("# Results: bigcodebench, test, camel\n")


def test_markdown_without_tests_or_command_has_no_empty_chapters() -> None:
    assert markdown(ROWS, [], {}).count("#") == 1


def test_console_table_is_plain_aligned_and_narrow() -> None:
    scores = dict(zip(METRICS, (0.4, 0.5, 0.6), strict=True))
    intervals = {metric: (value - 0.1, value + 0.1) for metric, value in scores.items()}
    rows = [Row(memory, 150, scores, intervals, 1486, 1400, 70, 16, 0.25, 37) for memory in MEMORIES]
    lines = console_table(rows).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 80
    assert console_table(rows).isascii()
    assert [line.split()[0] for line in lines[2:]] == list(MEMORIES)
    assert lines[2].split()[1:] == ["40.0", "[30.0,", "50.0]", "50.0", "60.0", "1486", "0.25"]


def test_another_benchmark_has_its_own_columns() -> None:
    row = Row("none", 40, {"passed": 0.25}, {"passed": (0.14, 0.4)}, 900, 800, 100, 0, 1.5, 60)
    assert console_table([row]).splitlines()[0].split() == ["memory", "passed", "%", "tokens/q", "s/q"]
    assert "| none   | 40 | 25.0 [14.0, 40.0] |" in markdown([row], [], {})
    assert row_to_dict(row)["passed_ci"] == (0.14, 0.4)


def test_comparison_line_keeps_a_tiny_p_readable() -> None:
    many = compare_memories({"none": answers([0] * 60), "latentmem": answers([1] * 60)}, METRICS)
    assert "p = 1.7e-18" in comparison_line(many[0])


def test_answers_stand_side_by_side(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in write_answers(tmp_path, OUTCOMES).read_text("utf-8").splitlines()]
    assert len(lines) == 12
    assert lines[0] == {
        "task_id": "t0",
        "question": "Where?",
        "accepted": ["Orléans"],
        "by_memory": {
            "none": {"answer": "", "exact_match": 0, "token_f1": 0, "lax_match": 1.0},
            "latentmem": {"answer": "Orléans", "exact_match": 1, "token_f1": 1, "lax_match": 1.0},
        },
    }


def test_an_answer_that_broke_off_says_why(tmp_path: Path) -> None:
    lost = Outcome("a", "", {"passed": 0.0}, failure="engine: the prompt is too long")
    (line,) = write_answers(tmp_path, {"none": [lost]}).read_text("utf-8").splitlines()
    assert json.loads(line)["by_memory"]["none"]["failure"] == "engine: the prompt is too long"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": {"path": Path("x")}}, "results.settings.engine.path is a .*Path, not a JSON value"),
        ({"rates": [0.1, float("nan")]}, r"results.settings.rates\[1\] is nan"),
    ],
)
def test_a_setting_that_json_cannot_hold_is_named(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        write_results(tmp_path, ROWS, COMPARISONS, settings)
    assert not list(tmp_path.iterdir())


def test_a_rewrite_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "results.md"
    write_text(path, "old and longer")
    write_text(path, "new")
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]
