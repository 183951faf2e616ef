"""Each benchmark: its records, its splits, its bundled sample, and the real items where they are at hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.assistantbench import AssistantBench, assistantbench_task
from data.bigcodebench import BigCodeBench, bigcodebench_program, bigcodebench_task
from data.check import BENCHMARKS, Loaded
from data.gaia import GAIA, gaia_task
from data.kodcode import KodCode, kodcode_task
from data.leakage import check_splits
from data.records import Place, Record
from data.strategyqa import StrategyQA, strategyqa_task
from data.task import Task

HERE = Place("rows.jsonl, line 1")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="real items are not part of the project")

STRATEGYQA = {"qid": "a1", "question": "Is it so?", "answer": True}
KODCODE = {
    "question_id": "A_1_I",
    "question": "Add.",
    "solution": "def add(a, b): return a + b",
    "test": "def test_a(): assert add(1, 1) == 2",
}
PIPELINE = {
    "instruction": "Add.",
    "response": "def add(a, b): ...",
    "test_code": "def test_a(): ...",
    "metadata": {"prompt_id": "7"},
}
BIGCODEBENCH = {
    "task_id": "BigCodeBench/0",
    "complete_prompt": 'import os\ndef f():\n    """Doc."""\n',
    "instruct_prompt": "Write f.",
    "code_prompt": "import os\ndef f():\n",
    "canonical_solution": "    return 1\n",
    "test": "import unittest\nclass TestCases(unittest.TestCase): ...",
    "entry_point": "f",
}
GAIA_ROW = {"task_id": "g", "Question": "How many?", "Level": "2", "Final answer": "3", "file_name": "a.csv"}
ASSISTANTBENCH = {"id": "x", "set": "dev", "task": "Which?", "answer": "One\nTwo", "difficulty": "Hard"}


def sample(name: str) -> Loaded:
    return BENCHMARKS[name]("sample", None)


def test_strategyqa_record() -> None:
    assert strategyqa_task(STRATEGYQA, HERE) == Task("a1", "Is it so?", ("yes",), "strategyqa")
    assert strategyqa_task({"id": 3, "question": "Q?", "answer": "False"}, HERE).answers == ("no",)


def test_kodcode_records() -> None:
    task = kodcode_task(KODCODE, HERE)
    assert (task.id, task.domain, task.answers) == ("A_1_I", "code", (KODCODE["solution"],))
    assert task.metadata == {"tests": KODCODE["test"]}
    assert (kodcode_task(PIPELINE, HERE).id, kodcode_task(PIPELINE, HERE).question) == ("7", "Add.")


def test_kodcode_declares_the_functions_that_a_question_leaves_to_guess() -> None:
    info = [{"function_declaration": "def add(a, b):", "function_name": "add"}]
    assert kodcode_task({**KODCODE, "test_info": info}, HERE).question == "Add.\n\nDeclare:\ndef add(a, b):"
    as_cell = {**KODCODE, "test_info": json.dumps(info)}  # CSV and TSV
    assert kodcode_task(as_cell, HERE).question == "Add.\n\nDeclare:\ndef add(a, b):"
    assert kodcode_task({**KODCODE, "test_info": ""}, HERE).question == "Add."
    known = {**KODCODE, "question": "Write `def add(a, b):`.", "test_info": info}
    assert kodcode_task(known, HERE).question == known["question"]


def test_bigcodebench_record_in_both_variants() -> None:
    instruct = bigcodebench_task(BIGCODEBENCH, HERE, "instruct")
    complete = bigcodebench_task(BIGCODEBENCH, HERE, "complete")
    assert (instruct.question, complete.question) == ("Write f.", BIGCODEBENCH["complete_prompt"])
    assert instruct.answers == complete.answers == ("import os\ndef f():\n    return 1\n",)


def test_bigcodebench_programs() -> None:
    begin = str(BIGCODEBENCH["code_prompt"])
    assert (
        bigcodebench_program("def f():\n    return 1\n", "f", begin) == f"{begin}\n    pass\ndef f():\n    return 1\n"
    )
    prefix = str(BIGCODEBENCH["complete_prompt"])
    assert bigcodebench_program("    return 1\n", "f", begin, prefix) == f"{prefix}    return 1\n"


def test_gaia_records() -> None:
    task = gaia_task(GAIA_ROW, HERE)
    assert (task.answers, task.domain) == (("3",), "web")
    assert task.metadata == {"level": 2, "file_name": "a.csv", "folder": "2023/validation"}
    assert gaia_task({**GAIA_ROW, "Final answer": "?", "file_name": None}, HERE).answers == ()


@pytest.mark.parametrize(
    ("parse", "record", "field"),
    [
        (strategyqa_task, {**STRATEGYQA, "answer": "maybe"}, "answer"),
        (strategyqa_task, {"question": "Q?", "answer": True}, "id"),
        (kodcode_task, {**KODCODE, "test": "def ("}, "test"),
        (kodcode_task, {**KODCODE, "solution": None}, "solution"),
        (kodcode_task, {**PIPELINE, "metadata": "x"}, "metadata"),
        (kodcode_task, {**KODCODE, "test_info": ["def add(a, b):"]}, "test_info"),
        (bigcodebench_task, {**BIGCODEBENCH, "entry_point": ""}, "entry_point"),
        (bigcodebench_task, {**BIGCODEBENCH, "test": "1 +"}, "test"),
        (gaia_task, {**GAIA_ROW, "Level": "4"}, "Level"),
        (gaia_task, {**GAIA_ROW, "file_name": "../secret"}, "file_name"),
        (gaia_task, {"task_id": "g"}, "Final answer"),
        (assistantbench_task, {**ASSISTANTBENCH, "task": 3.5e400}, "task"),
        (assistantbench_task, {"id": "x"}, "task"),
    ],
)
def test_a_bad_record_names_place_and_field(parse: object, record: Record, field: str) -> None:
    with pytest.raises(ValueError, match=rf"rows\.jsonl, line 1: field '{field}"):
        parse(record, HERE)  # type: ignore[operator]


FIELDS = sorted({*STRATEGYQA, *KODCODE, *PIPELINE, *BIGCODEBENCH, *GAIA_ROW, *ASSISTANTBENCH, "test_info"})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["1", "true", "?", "def ("]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=2),
    max_leaves=5,
)
GOOD = (STRATEGYQA, KODCODE, PIPELINE, BIGCODEBENCH, GAIA_ROW, ASSISTANTBENCH)
PARSERS = (strategyqa_task, kodcode_task, kodcode_task, bigcodebench_task, gaia_task, assistantbench_task)


@given(st.integers(0, 5), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
def test_any_record_is_a_task_or_a_named_error(which: int, changes: dict[str, object]) -> None:
    said = "rows.jsonl, line 1: field "
    try:
        task = PARSERS[which]({**GOOD[which], **changes}, HERE)
        assert task.question.strip()
        json.dumps(dict(task.metadata))
    except ValueError as error:
        said = str(error)
    assert said.startswith("rows.jsonl, line 1: field ")


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("strategyqa", {"train": 19, "test": 5}),
        ("kodcode", {"train": 7, "validation": 1, "test": 2}),
        ("bigcodebench", {"test": 6}),
        ("gaia", {"validation": 8, "level1": 3, "level2": 3, "level3": 2, "test": None}),
        ("assistantbench", {"train": 4, "test": 4}),
    ],
)
def test_the_bundled_samples(name: str, sizes: dict[str, int | None]) -> None:
    benchmark = sample(name)
    assert list(benchmark.splits.layout) == list(sizes)
    there = {split: size for split, size in sizes.items() if size}
    tasks = {split: benchmark.tasks(split) for split in there}
    assert {split: len(found) for split, found in tasks.items()} == there
    check_splits({split: found for split, found in tasks.items() if not split.startswith("level")})
    assert benchmark.splits.left_out == ()


@pytest.mark.parametrize("name", ["strategyqa", "gaia", "assistantbench"])
def test_a_reference_answer_is_right(name: str) -> None:
    benchmark = sample(name)
    metric = benchmark.metrics[0]
    for split in benchmark.splits.layout:
        if (name, split) != ("gaia", "test"):
            for task in benchmark.tasks(split):
                assert benchmark.score(task, f"So <answer>{task.answers[0]}</answer>")[metric] == 1.0, task
                assert benchmark.score(task, "<answer>nothing</answer>")[metric] == 0.0, task


def test_sample_files_of_gaia_are_there() -> None:
    benchmark = GAIA("sample")
    files = [benchmark.attachment(task) for task in benchmark.tasks("validation")]
    assert Counter(file.suffix for file in files if file) == {".csv": 2, ".txt": 3}
    assert all(file.is_file() for file in files if file)


def test_a_missing_attachment_says_where_it_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "metadata.jsonl").write_text(json.dumps(GAIA_ROW), encoding="utf-8")
    benchmark = GAIA(path=tmp_path)
    (task,) = benchmark.tasks("validation")
    with pytest.raises(FileNotFoundError, match=r"task g of gaia: a\.csv is not in"):
        benchmark.attachment(task)
    (tmp_path / "2023" / "validation").mkdir(parents=True)
    (tmp_path / "2023" / "validation" / "a.csv").touch()
    assert benchmark.attachment(task) == tmp_path / "2023" / "validation" / "a.csv"


def test_hidden_answers_score_only_whether_there_is_one(tmp_path: Path) -> None:
    rows = [{**GAIA_ROW, "Level": 0, "task_id": "0-0-0-0-0", "Final answer": "?"}, {**GAIA_ROW, "Final answer": "?"}]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    benchmark = GAIA(path=tmp_path)
    (task,) = benchmark.tasks("test")
    assert benchmark.score(task, "3") == {"answered": 1.0}
    hidden = assistantbench_task({**ASSISTANTBENCH, "answer": None}, HERE)
    assert AssistantBench("sample").score(hidden, "") == {"answered": 0.0}


def test_unknown_variant() -> None:
    with pytest.raises(ValueError, match="unknown variant 'hard'; there are complete, instruct"):
        BigCodeBench("hard")  # type: ignore[arg-type]


@needs_shared
def test_real_strategyqa_items_load_and_score_as_the_boolean_says() -> None:
    benchmark = StrategyQA(path=SHARED / "strategyqa")
    tasks = [*benchmark.tasks("train"), *benchmark.tasks("test")]
    assert (len(tasks) + len(benchmark.splits.left_out), len(benchmark.tasks("test"))) == (500, 100)
    lines = (SHARED / "strategyqa" / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    gold = {str(row["id"]): row["answer"] for row in map(json.loads, lines)}
    for task in tasks:
        word, other = ("yes", "no") if gold[task.id] else ("no", "yes")
        assert benchmark.score(task, f"First {other}, then {word}.")["exact_match"] == 1.0
        assert benchmark.score(task, f"<answer>{other}</answer>")["exact_match"] == 0.0
        assert benchmark.score(task, "It depends.")["exact_match"] == 0.0


@needs_shared
def test_real_kodcode_items_load() -> None:
    benchmark = KodCode(path=SHARED / "kodcode" / "algorithm_verified.json")
    tasks = [task for split in benchmark.splits.layout for task in benchmark.tasks(split)]
    assert len({task.id for task in tasks}) == 15
