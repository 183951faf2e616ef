"""The bank only grows, everybody sees its keys, and every use is on record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.shared_bank import Entry, SharedBank, Use, used_entries


def entry(number: int, team: int = 0) -> Entry:
    return Entry(key=f"key {number}", value=f"value {number}", team=team, step=number, time_s=float(number))


def filled(*teams: int) -> SharedBank:
    bank = SharedBank()
    for number, team in enumerate(teams):
        assert bank.append(entry(number, team)) == number
    return bank


def test_keys_stand_in_the_order_of_admission_and_values_come_when_selected() -> None:
    bank = filled(0, 1, 0)
    assert bank.keys() == ("key 0", "key 1", "key 2")
    assert bank.select([2, 0], team=1, step=4) == ("value 2", "value 0")
    assert bank.uses == (Use(2, 1, 4), Use(0, 1, 4))


def test_what_is_there_stays_as_it_is() -> None:
    bank = filled(0)
    before = bank.entries
    bank.append(entry(7))
    assert bank.entries[:1] == before
    assert len(before) == 1
    assert len(bank) == 2


@pytest.mark.parametrize("place", [-1, 2])
def test_a_key_that_is_not_there_cannot_be_selected(place: int) -> None:
    bank = filled(0, 0)
    with pytest.raises(IndexError, match=f"team 1 selected key {place}; the bank has the keys 0 to 1"):
        bank.select([0, place], team=1, step=0)
    assert bank.uses == ()  # nothing of the refused selection counts


def test_used_by_another_team() -> None:
    bank = filled(0, 0, 1)
    bank.select([0], team=0, step=3)  # its own
    bank.select([1], team=0, step=3)
    bank.select([1], team=2, step=1)
    assert used_entries(bank.entries, bank.uses, by_other_team=True) == {1}
    assert used_entries(bank.entries, bank.uses, by_other_team=False) == {0, 1}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_uses_by_others_are_among_all_uses(teams: list[int], data: st.DataObject) -> None:
    bank = filled(*teams)
    for place, team in data.draw(st.lists(st.tuples(st.integers(0, len(teams) - 1), st.integers(0, 3)))):
        bank.select([place], team, step=0)
    by_any = used_entries(bank.entries, bank.uses, by_other_team=False)
    assert used_entries(bank.entries, bank.uses, by_other_team=True) <= by_any
    assert by_any == {use.entry for use in bank.uses}
