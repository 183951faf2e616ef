"""The bundled sample: enough of it, well formed, disjoint, and exactly what its builder makes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from data.sample import build
from data.scoring.short_answer import normalise_answer, normalise_question
from data.short_answer import ShortAnswerQA
from data.task import Task

FACTS = tuple(build.facts())
RELATIONS = sorted({fact.relation for fact in FACTS})


def tasks(split: str) -> tuple[Task, ...]:
    return tuple(ShortAnswerQA().tasks(split))


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_committed_files_are_what_the_builder_makes(split: str) -> None:
    assert (build.HERE / f"facts_{split}.jsonl").read_text(encoding="utf-8") == build.split_lines(split)


def test_the_sample_in_the_form_of_popqa_is_cut_where_its_splits_end() -> None:
    assert (build.HERE / "popqa.jsonl").read_text(encoding="utf-8") == build.popqa_lines()
    by_question = {str(build.record(fact)["question"]): build.popqa_split(fact) for fact in FACTS}
    benchmark = ShortAnswerQA("popqa_sample")
    for split in build.POPQA_SPLITS:
        assert {by_question[task.question] for task in benchmark.tasks(split)} == {split}
    assert benchmark.splits.left_out == ()
    assert benchmark.score(benchmark.tasks("test")[0], benchmark.tasks("test")[0].answers[0])["exact_match"] == 1.0


def test_there_is_enough_of_it() -> None:
    assert len(tasks("train")) >= 640
    assert len(tasks("test")) >= 200
    assert len(RELATIONS) >= 8


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_relation_has_items_on_both_sides_in_similar_shares(relation: str) -> None:
    splits = Counter(fact.split for fact in FACTS if fact.relation == relation)
    assert splits["train"] >= 10
    assert 0.08 <= splits["test"] / splits.total() <= 0.4


def test_no_question_is_asked_twice() -> None:
    questions = Counter(normalise_question(task.question) for split in ("train", "test") for task in tasks(split))
    assert [question for question, times in questions.items() if times > 1] == []


def test_an_entity_stays_in_one_split() -> None:
    splits = defaultdict(set)
    for fact in FACTS:
        splits[normalise_answer(fact.group)].add(fact.split)
    assert [group for group, where in splits.items() if len(where) > 1] == []


def test_no_fact_is_asked_the_other_way_round_in_the_other_split() -> None:
    pairs = {(normalise_answer(fact.subject), normalise_answer(fact.answers[0])): fact.split for fact in FACTS}
    reversed_pairs = [pair for pair, split in pairs.items() if pairs.get(pair[::-1], split) != split]
    assert reversed_pairs == []


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_item_is_well_formed(split: str) -> None:
    for task in tasks(split):
        assert re.fullmatch(r"[a-z_]+-[a-z0-9-]+", task.id), task
        assert task.question[0].isupper() or task.question[0] in '"', task
        assert task.question[-1] in "?.", task
        assert 1 <= len(task.answers[0].split()) <= 4, task
        assert all(normalise_answer(answer) for answer in task.answers), task
        assert task.metadata["relation"] in RELATIONS


def test_no_question_gives_its_answer_away() -> None:
    given_away = [
        task.id
        for split in ("train", "test")
        for task in tasks(split)
        if f" {normalise_answer(task.answers[0])} " in f" {normalise_answer(task.question)} "
    ]
    assert given_away == []


def test_relations_are_mixed_from_the_start() -> None:
    assert len({task.metadata["relation"] for task in tasks("train")[:64]}) >= 8
