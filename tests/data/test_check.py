"""The report on a data set, and how it ends at a malformed record."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from data.check import check, main


def write(path: Path, *rows: Mapping[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_counts_coverage_and_examples_of_a_sample() -> None:
    report = list(check("assistantbench", "sample"))
    assert report[0] == "train: 4 items of 4 records"
    assert "  answer: 4 of 4" in report
    assert "  explanation: 0 of 4" not in report
    assert sum(line.startswith("  sample-") for line in report) == 6
    assert "test: 4 items of 4 records" in report


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("triviaqa", ["train: 786 items", "test: 260 items"]),
        ("popqa", ["train: 105 items", "validation: 22 items", "test: 62 items"]),
        ("strategyqa", ["train: 19 items", "test: 5 items"]),
        ("kodcode", ["train: 7 items", "validation: 1 items", "test: 2 items"]),
        ("bigcodebench", ["test: 6 items"]),
        ("gaia", ["validation: 8 items", "level1: 3 items", "level2: 3 items", "level3: 2 items"]),
        ("assistantbench", ["train: 4 items", "test: 4 items"]),
    ],
)
def test_every_benchmark_has_a_sample_that_is_read_offline(name: str, splits: list[str]) -> None:
    report = list(check(name, "sample"))
    assert [line.partition(" of ")[0] for line in report if line[0] != " " and " items of " in line] == splits


def test_what_is_left_out_and_what_is_not_there_is_said(tmp_path: Path) -> None:
    row = {"question_id": "1", "question": "Who?", "answer": {"value": "x", "aliases": []}}
    write(tmp_path / "train.jsonl", row, {**row, "question": "What?", "note": ""})
    assert list(check("triviaqa", str(tmp_path)))[-1] == "not there: test"
    write(tmp_path / "validation.jsonl", row)
    report = list(check("triviaqa", str(tmp_path)))
    assert report[0] == "train: 1 items of 2 records; the papers have 5000"
    assert report[-1] == "left out of train, since a held-out split asks them too: 1"


def test_hidden_answers_are_shown_as_such(tmp_path: Path) -> None:
    write(tmp_path / "test.jsonl", {"id": "a", "task": "Which " + "long " * 60, "answer": None})
    report = list(check("assistantbench", str(tmp_path)))
    assert report[-2].endswith("… => (hidden)")


def test_the_files_that_come_with_gaia_are_looked_for(tmp_path: Path) -> None:
    assert "  attached files: 5 of 5 are there" in list(check("gaia", "sample"))
    row = {"task_id": "1", "Question": "How many?", "Level": "1", "Final answer": "3", "file_name": "a.csv"}
    write(tmp_path / "metadata.jsonl", row, {**row, "task_id": "2", "file_name": ""})
    assert "  attached files: 0 of 1 are there; a.csv is not" in list(check("gaia", str(tmp_path)))


def test_a_malformed_record_ends_it(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", {"qid": "1", "question": "So?", "answer": True}, {"qid": "2", "question": "So?"})
    with pytest.raises(SystemExit, match=r"strategyqa: .*q\.jsonl, line 2: field 'answer' is missing"):
        main(["strategyqa", str(path)])
    with pytest.raises(SystemExit, match=r"strategyqa: no data at .*hub.*sample"):
        main(["strategyqa", str(tmp_path / "nowhere")])


def test_it_is_a_program_with_a_status(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", {"question": "So?"})
    command = [sys.executable, "-m", "data.check", "strategyqa", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "q.jsonl, line 1: field 'id' is missing" in done.stderr
