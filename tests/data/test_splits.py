"""Which rows make a split, where they are looked for, and that no test question stays in training."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.leakage import bank_leaks, check_splits, overlap
from data.records import Place, Record, Row
from data.source import Hub
from data.splits import Part, Published, Splits, having, rows, share
from data.task import Task


def numbered(count: int) -> list[Row]:
    return [({"id": str(number)}, Place(f"row {number}")) for number in range(count)]


def ids(chosen: object) -> list[str]:
    return [str(record["id"]) for record, _ in chosen]  # type: ignore[attr-defined]


def task(identifier: str, question: str) -> Task:
    return Task(id=identifier, question=question, answers=("x",), benchmark="tiny")


def parse(record: Record, place: Place) -> Task:
    return task(place.text(record, "id"), place.text(record, "question"))


PUBLISHED = Published(
    "tiny",
    Hub("nobody/tiny", gated=True),
    layout={"train": Part("train", files=("a+b", "train")), "test": Part("test")},
    one_file={"train": Part("", rows(0, 2)), "test": Part("", rows(2))},
)


def write(path: Path, *questions: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps({"id": q, "question": q}) + "\n" for q in questions), encoding="utf-8")
    return path


def test_rows_and_fields() -> None:
    assert ids(rows(1, 3)(numbered(5))) == ["1", "2"]
    assert ids(rows(3)(numbered(5))) == ["3", "4"]
    assert ids(having("id", "4", "0")(numbered(5))) == ["0", "4"]


def test_shares_of_the_published_sizes() -> None:
    cut = [(0.0, 0.7), (0.7, 0.8), (0.8, 1.0)]
    assert [len(share(*bounds)(numbered(10_000))) for bounds in cut] == [7000, 1000, 2000]
    assert len(share(0.8, 1.0)(numbered(2290))) == 458


def test_the_order_of_shares_is_pinned() -> None:
    assert ids(share(0.0, 1.0)(numbered(6))) == ["1", "3", "2", "0", "5", "4"]
    assert ids(share(0.0, 1.0, seed=7)(numbered(6))) != ids(share(0.0, 1.0)(numbered(6)))


@given(st.integers(0, 60), st.integers(0, 2**32))
def test_shares_cut_everything_once(count: int, seed: int) -> None:
    parts = [share(first, last, seed)(numbered(count)) for first, last in ((0.0, 0.7), (0.7, 0.8), (0.8, 1.0))]
    assert sorted(map(int, [each for part in parts for each in ids(part)])) == list(range(count))


def test_a_directory_is_searched_by_name_and_shards_are_read_in_order(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", "one?")
    write(tmp_path / "train.jsonl", "not read?")
    write(tmp_path / "b.jsonl", "two?")
    assert [each.id for each in Splits(PUBLISHED, parse, "published", tmp_path).tasks("train")] == ["one?", "two?"]
    (tmp_path / "b.jsonl").unlink()
    assert [each.id for each in Splits(PUBLISHED, parse, "published", tmp_path).tasks("train")] == ["not read?"]


def test_parquet_shards_below_data(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "data").mkdir()
    for number in (1, 0):
        table = pyarrow.Table.from_pylist([{"id": f"q{number}", "question": f"{number}?"}])
        pyarrow.parquet.write_table(table, tmp_path / "data" / f"test-0000{number}-of-00002.parquet")
    assert [each.id for each in Splits(PUBLISHED, parse, "published", tmp_path).tasks("test")] == ["q0", "q1"]


def test_a_training_question_that_is_tested_is_left_out_and_said(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", "Who  wrote it?", "Kept?")
    write(tmp_path / "test.jsonl", "who wrote it", "Other?")
    splits = Splits(PUBLISHED, parse, "published", tmp_path)
    with pytest.warns(UserWarning, match=r"tiny: 1 training items ask a held-out question .*\(Who  wrote it\?\)"):
        train = splits.tasks("train")
    assert [each.id for each in train] == ["Kept?"]
    assert [each.id for each in splits.left_out] == ["Who  wrote it?"]
    assert overlap(train, splits.tasks("test")) == []


def test_one_file_is_cut(tmp_path: Path) -> None:
    splits = Splits(PUBLISHED, parse, "published", write(tmp_path / "all.jsonl", "1?", "2?", "3?"))
    assert [[each.id for each in splits.tasks(split)] for split in ("train", "test")] == [["1?", "2?"], ["3?"]]


def test_repeated_ids_become_distinct(tmp_path: Path) -> None:
    lines = '{"id": 1, "question": "a?"}\n{"id": 1, "question": "b?"}\n'
    (tmp_path / "test.jsonl").write_text(lines, encoding="utf-8")
    assert [each.id for each in Splits(PUBLISHED, parse, "published", tmp_path).tasks("test")] == ["1", "1#2"]


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tiny has no split 'dev'; it has train, test"):
        Splits(PUBLISHED, parse, "published", tmp_path).tasks("dev")
    with pytest.raises(ValueError, match=r"split 'test' of tiny is empty: .*all\.jsonl has no rows for it"):
        Splits(PUBLISHED, parse, "published", write(tmp_path / "all.jsonl", "1?")).tasks("test")
    with pytest.raises(ValueError, match="the sample is bundled and takes no path"):
        Splits(PUBLISHED, parse, "sample", tmp_path)
    with pytest.raises(ValueError, match="unknown source 'hub'; there are published, sample"):
        Splits(PUBLISHED, parse, "hub")  # type: ignore[arg-type]


def test_a_missing_source_names_the_three_ways(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        Splits(PUBLISHED, parse, "published", tmp_path).tasks("train")
    for way in ("a+b.jsonl or train.jsonl (or .json, .parquet, .csv, .tsv)", "the hub is asked", "source='sample'"):
        assert way in str(caught.value)


def test_a_gated_set_says_how_to_get_in(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", "/nonexistent")
    said = "could not load nobody/tiny (split 'test') from the hub"
    with pytest.raises(FileNotFoundError, match=re.escape(said)) as caught:
        Splits(PUBLISHED, parse, "published").tasks("test")
    for step in ("accept the terms at huggingface.co/datasets/nobody/tiny", "hf auth login", "`path`", "sample"):
        assert step in str(caught.value)


def test_overlapping_splits_are_errors() -> None:
    check_splits({"train": [task("1", "Who?")], "test": [task("1", "What?")]})
    with pytest.raises(ValueError, match="id '1' occurs twice in split 'train'"):
        check_splits({"train": [task("1", "Who?"), task("1", "What?")]})
    with pytest.raises(ValueError, match=r"'who\?' is in two splits: '1' of 'train', '2' of 'test'"):
        check_splits({"train": [task("1", "Who?")], "test": [task("2", "who?")]})


def test_a_bank_that_holds_the_test_item_is_reported() -> None:
    tasks = [task("1", "Who wrote it?"), task("2", "Who sang it?")]
    assert bank_leaks(["who  WROTE it", "something else"], tasks) == [tasks[0]]
    assert bank_leaks([], tasks) == []
