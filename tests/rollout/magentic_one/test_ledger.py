from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.mas.magentic_one.ledger import (
    Ledger,
    Lengths,
    ledger_schema,
    read_ledger,
    read_selection,
    selection_schema,
    stalls_after,
)
from rollout.structure import grammar_fault
from rollout.validate_structure import validate_structure
from tests.rollout.magentic_one.scripted_team import ledger

SPEAKERS = ("web", "coder")


def of(loop: bool, progress: bool) -> Ledger:
    return Ledger(False, loop, progress, "go on", "web")


@pytest.mark.parametrize(
    ("stalls", "loop", "progress", "after"),
    [
        (0, False, True, 0),  # never below 0
        (2, False, True, 1),
        (0, True, True, 1),
        (0, False, False, 1),
        (1, True, False, 2),  # both at once count once
    ],
)
def test_the_stall_counter(stalls: int, loop: bool, progress: bool, after: int) -> None:
    assert stalls_after(stalls, of(loop, progress)) == after


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_the_counter_moves_by_one_and_stays_at_or_above_zero(ledgers: list[tuple[bool, bool]]) -> None:
    stalls = 0
    for loop, progress in ledgers:
        after = stalls_after(stalls, of(loop, progress))
        assert after >= 0
        assert after - stalls in (1, -1) or stalls == after == 0
        stalls = after


def test_a_ledger_is_read_under_the_published_names() -> None:
    reply = ledger("web", "look", done=True, loop=True, progress=False)
    assert read_ledger(reply) == Ledger(True, True, False, "look", "web")


def test_a_fence_around_a_ledger_is_tolerated() -> None:
    fenced = f"```json\n{ledger('web')}\n```"
    found = validate_structure(fenced, ledger_schema(SPEAKERS))
    assert isinstance(found, str)
    assert read_ledger(found).next_speaker == "web"


@pytest.mark.parametrize(
    ("field", "answer"),
    [
        ("next_speaker", "stranger"),
        ("is_in_loop", "false"),
        ("instruction_or_question", ""),
        ("instruction_or_question", "x" * 601),
    ],
)
def test_what_is_no_ledger(field: str, answer: object) -> None:
    fields: dict[str, dict[str, Any]] = json.loads(ledger("web"))
    fields[field]["answer"] = answer
    assert not isinstance(validate_structure(json.dumps(fields), ledger_schema(SPEAKERS)), str)
    del fields[field]
    assert not isinstance(validate_structure(json.dumps(fields), ledger_schema(SPEAKERS)), str)


def test_every_schema_can_constrain_decoding() -> None:
    assert grammar_fault(ledger_schema(SPEAKERS)) is None
    assert grammar_fault(selection_schema(4, 2)) is None


def test_a_selection_gives_places_from_zero_each_once() -> None:
    assert read_selection('{"reason": "", "wanted": [3, 1, 3]}') == (2, 0)
    assert read_selection('{"reason": "", "wanted": []}') == ()


@pytest.mark.parametrize("wanted", [[0], [4], [1, 2, 3], ["1"]])
def test_a_selection_is_of_what_was_offered_and_no_more_than_allowed(wanted: list[object]) -> None:
    reply = json.dumps({"reason": "", "wanted": wanted})
    assert not isinstance(validate_structure(reply, selection_schema(3, 2)), str)


def test_reasons_are_as_short_as_was_set() -> None:
    schema = selection_schema(3, 2, Lengths(reason=5))
    assert isinstance(validate_structure('{"reason": "12345", "wanted": []}', schema), str)
    assert not isinstance(validate_structure('{"reason": "123456", "wanted": []}', schema), str)
