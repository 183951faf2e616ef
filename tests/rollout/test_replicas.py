from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.replicas import Replicas, wait_s


def replicas(count: int = 3) -> Replicas:
    return Replicas([f"http://host:{8000 + n}" for n in range(count)])


def test_the_least_loaded_is_chosen_and_the_first_of_equals() -> None:
    pool = replicas()
    first, second, third = pool.all
    assert pool.choose() is first
    with first.busy():
        assert pool.choose() is second
        with second.busy(), third.busy(), third.busy():
            assert pool.choose() is first
    assert [replica.in_flight for replica in pool.all] == [0, 0, 0]


def test_one_that_was_not_tried_goes_before_a_less_loaded_one() -> None:
    pool = replicas(2)
    first, second = pool.all
    with second.busy():
        assert pool.choose() is first
        assert pool.choose(tried=[first]) is second
        assert pool.choose(tried=[first, second]) is first


def test_one_that_is_out_is_never_chosen_until_it_is_back() -> None:
    pool = replicas(2)
    first, second = pool.all
    first.note("refused")
    assert pool.choose() is second
    assert pool.choose(tried=[second]) is second
    second.note("refused")
    assert pool.choose() is None
    first.note("")
    assert pool.choose() is first


def test_a_request_that_fails_is_in_flight_no_more() -> None:
    (only,) = replicas(1).all
    with pytest.raises(ConnectionError), only.busy():
        raise ConnectionError
    assert only.in_flight == 0


def test_the_report_names_every_replica_and_its_last_error() -> None:
    pool = replicas(2)
    pool.all[1].note("ConnectError: refused")
    assert pool.report() == "http://host:8000: no error; http://host:8001: ConnectError: refused"


@given(count=st.integers(1, 5), requests=st.integers(0, 40), out=st.sets(st.integers(0, 4)))
def test_loads_of_live_replicas_never_differ_by_more_than_one(count: int, requests: int, out: set[int]) -> None:
    pool = replicas(count)
    for place in out & set(range(count)):
        pool.all[place].live = False
    live = [replica for replica in pool.all if replica.live]
    with ExitStack() as stack:
        for _ in range(requests if live else 0):
            chosen = pool.choose()
            assert chosen is not None
            stack.enter_context(chosen.busy())
        loads = [replica.in_flight for replica in live]
        assert sum(loads) == (requests if live else 0)
        assert not loads or max(loads) - min(loads) <= 1
    assert all(replica.in_flight == 0 for replica in pool.all)


def test_waits_double_up_to_half_a_minute() -> None:
    assert [wait_s(failed) for failed in range(9)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert wait_s(10**6) == 30


@pytest.mark.parametrize(
    ("urls", "message"),
    [
        ([], "urls: give at least one URL"),
        (["http://a:1", "http://a:1/"], "none of them twice"),
        (["http://a:1", "a:1"], r"urls\[1\] is 'a:1'; give http://host:port"),
        (["http://a:1/v1"], r"urls\[0\] is 'http://a:1/v1'; .*without /v1"),
        (["ftp://a:1"], r"urls\[0\]"),
        (["http://"], r"urls\[0\]"),
    ],
)
def test_urls_that_mean_nothing_are_refused_by_their_key(urls: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Replicas(urls)


def test_a_url_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match=r"urls\[0\] holds a user") as refused:
        Replicas(["http://me:hunter2@host:1"])
    assert "hunter2" not in str(refused.value)
