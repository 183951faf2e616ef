"""Loading: which rows become which split, and what a bad file is answered with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.records import Place
from data.short_answer import ShortAnswerQA, popqa_task, triviaqa_task
from data.task import Task


def triviaqa_row(number: int, **answer: object) -> dict[str, object]:
    gold = {"value": f"Gold {number}", "aliases": [f"gold {number}", "Au"], "normalized_aliases": ["au"]}
    return {
        "question": f"Question {number}?",
        "question_id": f"tc_{number}",
        "question_source": "http://example.org/",
        "answer": gold | answer,
    }


def popqa_row(number: int) -> dict[str, object]:
    answers = '["One", "the one", "Uno"]'
    return {"id": number, "question": f"Who is {number}?", "prop": "author", "possible_answers": answers}


def write_lines(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_raw(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_triviaqa_directory(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [triviaqa_row(number) for number in range(5002)])
    (tmp_path / "validation.json").write_text(json.dumps([triviaqa_row(9000), triviaqa_row(9001)]), encoding="utf-8")
    benchmark = ShortAnswerQA("triviaqa", path=tmp_path)

    train, test = benchmark.tasks("train"), benchmark.tasks("test")
    assert [task.id for task in train] == [f"tc_{number}" for number in range(5000)]
    assert [task.id for task in test] == ["tc_9000", "tc_9001"]
    assert test[0] == Task(id="tc_9000", question="Question 9000?", answers=("Gold 9000", "Au"), benchmark="triviaqa")
    with pytest.raises(ValueError, match=r"triviaqa has no split 'validation'; it has train, test"):
        benchmark.tasks("validation")


def test_triviaqa_single_file_is_cut_after_the_training_rows(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", [triviaqa_row(number) for number in range(5003)])
    benchmark = ShortAnswerQA("triviaqa", path=str(path))
    assert len(benchmark.tasks("train")) == 5000
    assert [task.id for task in benchmark.tasks("test")] == ["tc_5000", "tc_5001", "tc_5002"]


def test_popqa_file_is_cut_by_row(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "popqa.jsonl", [popqa_row(number) for number in range(7002)])
    benchmark = ShortAnswerQA("popqa", path=path)
    first_ids = {split: benchmark.tasks(split)[0].id for split in ("train", "validation", "test")}
    assert first_ids == {"train": "0", "validation": "6000", "test": "7000"}
    assert [len(benchmark.tasks(split)) for split in first_ids] == [6000, 1000, 2]
    task = benchmark.tasks("test")[0]
    assert task.answers == ("One", "Uno")
    assert task.metadata == {"relation": "author"}


def test_a_split_beyond_the_rows_is_an_error(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "popqa.jsonl", [popqa_row(0)])
    with pytest.raises(ValueError, match=r"split 'test' of popqa is empty: .*popqa\.jsonl has no rows for it"):
        ShortAnswerQA("popqa", path=path).tasks("test")


def test_a_repeated_upstream_id_keeps_its_row_under_another_id(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [triviaqa_row(1), triviaqa_row(2), triviaqa_row(1)])
    assert [task.id for task in ShortAnswerQA("triviaqa", path=tmp_path).tasks("train")] == ["tc_1", "tc_2", "tc_1#2"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "Q?", "question_id": "1"}', "line 2: field 'answer' is missing"),
        ('{"question": "Q?", "question_id": "1", "answer": "x"}', "line 2: field 'answer' must be an object"),
        (json.dumps(triviaqa_row(1, value=" ")), "line 2: field 'answer.value' must be a non-empty string"),
        (json.dumps(triviaqa_row(1, value=True)), "line 2: field 'answer.value' must be a non-empty string"),
        (json.dumps(triviaqa_row(1, aliases="x")), "line 2: field 'answer.aliases' must be a list of strings"),
        (json.dumps(triviaqa_row(1, aliases=[1])), "line 2: field 'answer.aliases' must be a list of strings"),
        (json.dumps({**triviaqa_row(1), "question": None}), "line 2: field 'question' must be a non-empty string"),
        ("[]", "line 2: must be a JSON object, got list"),
        ('{"question": ', "line 2: not valid JSON"),
    ],
)
def test_a_bad_line_names_file_line_and_field(tmp_path: Path, line: str, message: str) -> None:
    path = write_raw(tmp_path / "mine.jsonl", f"{json.dumps(triviaqa_row(0))}\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, {message}")):
        ShortAnswerQA("triviaqa", path=path).tasks("train")


@pytest.mark.parametrize("answers", ["[", '"One"', "[1]", "[]", 7])
def test_bad_possible_answers_name_the_field(tmp_path: Path, answers: object) -> None:
    path = write_lines(tmp_path / "popqa.jsonl", [{**popqa_row(0), "possible_answers": answers}])
    with pytest.raises(ValueError, match=r"popqa\.jsonl, line 1: field 'possible_answers'"):
        ShortAnswerQA("popqa", path=path).tasks("train")


def test_a_json_file_must_be_a_list(tmp_path: Path) -> None:
    path = write_raw(tmp_path / "mine.json", '{"rows": []}')
    with pytest.raises(ValueError, match=r"mine\.json: a \.json file must hold a list of objects, got dict"):
        ShortAnswerQA("triviaqa", path=path).tasks("train")


def test_line_separators_inside_a_string_do_not_break_a_line(tmp_path: Path) -> None:
    row = {**triviaqa_row(1), "question": "Which\u2028line?"}
    path = write_raw(tmp_path / "mine.jsonl", json.dumps(row, ensure_ascii=False) + "\r\n\r\n")
    assert [task.question for task in ShortAnswerQA("triviaqa", path=path).tasks("train")] == ["Which\u2028line?"]


def test_a_missing_path_says_how_to_provide_the_data(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"no data at .*directory with train\.jsonl \(or \.json.*source='sample'"
    ):
        ShortAnswerQA("triviaqa", path=tmp_path).tasks("train")


def test_an_unreachable_hub_says_how_else_to_provide_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", "/nonexistent")
    with pytest.raises(FileNotFoundError, match=r"could not load akariasai/PopQA .*`path`.*source='sample'"):
        ShortAnswerQA("popqa").tasks("test")


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"unknown source 'trivia'; there are sample, triviaqa, popqa, popqa_sample"):
        ShortAnswerQA("trivia")  # type: ignore[arg-type]
    for sample in ("sample", "popqa_sample"):
        with pytest.raises(ValueError, match="takes no path"):
            ShortAnswerQA(sample, path="elsewhere")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(['["One"]', "[", "{}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["value", "aliases"]), inner),
    max_leaves=5,
)
FIELDS = st.sampled_from(["id", "question_id", "question", "answer", "possible_answers", "prop", "relation"])


@given(st.booleans(), st.dictionaries(FIELDS, VALUES, max_size=4))
def test_any_record_is_a_task_or_a_named_error(popqa: bool, changes: dict[str, object]) -> None:
    good, parse = (popqa_row(1), popqa_task) if popqa else (triviaqa_row(1), triviaqa_task)
    said = "here: field "
    try:
        task = parse({**good, **changes}, Place("here"), "tiny")
        assert task.question.strip()
        assert task.answers
        assert all(0.0 <= score <= 1.0 for score in ShortAnswerQA().score(task, task.answers[0]).values())
    except ValueError as error:
        said = str(error)
    assert said.startswith("here: field ")


def test_scoring_uses_every_alias() -> None:
    gold = Task(id="1", question="?", answers=("United States", "USA"), benchmark="sample")
    assert ShortAnswerQA().score(gold, "<answer>the U.S.A.</answer>")["exact_match"] == 1.0


def test_metrics_are_the_keys_of_every_score() -> None:
    benchmark = ShortAnswerQA()
    assert tuple(benchmark.score(benchmark.tasks("test")[0], "Paris")) == benchmark.metrics
