"""Oracles: agents whose success depends on what is injected in a known way, and what must then become of each entry."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.comem.lifecycle import ORDER, Step, count_uses, curate, end_episode, prune_unused, sediment_insights
from tests.memory.comem.parts import Scripted, a_memory, an_entry

ASK = "open the door"


@pytest.mark.parametrize("n_min", [1, 3, 5])
def test_a_good_insight_is_promoted_at_its_n_min_th_use(n_min: int) -> None:
    play = Scripted(a_memory(n_min=n_min))
    play.play(ASK, 0.0, ann=["use the key"])
    for _ in range(n_min + 2):
        play.play(ASK, 1.0)
    assert play.kinds("promoted") == [(n_min, "m0-ann-0")]
    assert [entry.id for entry in play.memory.collective.entries()] == ["m0-ann-0c"]
    assert len(play.memory.private_store("ann")) == 0


def test_with_enough_uses_it_waits_for_its_mean_to_reach_the_baseline() -> None:
    play = Scripted(a_memory(n_min=2, baseline="window", baseline_window=4))
    play.play(ASK, 1.0, ann=["use the key"])
    rewards = [0.0, 0.0, 1.0, 0.0]
    # Uses 1 2 3 4: R̄_m is 0, 0, 1/3, 1/4, and R̄ over four episodes 1/2, 1/3, 1/2, 1/4.
    for reward in rewards:
        play.play(ASK, reward)
    assert play.kinds("promoted") == [(4, "m0-ann-0")]


FRACTIONS = st.sampled_from([Fraction(n, d) for d in (1, 2, 3, 10) for n in range(d + 1)])


@settings(deadline=None, max_examples=60)
@given(st.lists(FRACTIONS, min_size=2, max_size=12), st.integers(1, 6))
def test_promotion_comes_exactly_when_both_conditions_hold_first(rewards: list[Fraction], n_min: int) -> None:
    play = Scripted(a_memory(n_min=n_min))
    play.play(ASK, float(rewards[0]), ann=["use the key"])
    for reward in rewards[1:]:
        play.play(ASK, float(reward))
    # Exact arithmetic: after the n-th use R̄_m is the mean of the last n rewards, R̄ that of all.
    holds = [n for n in range(n_min, len(rewards)) if sum(rewards[1 : n + 1]) * (n + 1) >= sum(rewards[: n + 1]) * n]
    assert play.kinds("promoted") == [(n, "m0-ann-0") for n in holds[:1]]


def test_an_entry_below_the_baseline_is_never_promoted() -> None:
    play = Scripted(a_memory())
    play.play(ASK, 1.0, ann=["kick it"])
    for reward in (0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0):  # R̄_m = s/n stays below R̄ = (s + 1)/(n + 1)
        play.play(ASK, reward)
    assert play.kinds("promoted") == []
    (entry,) = play.memory.private_store("ann").entries()
    assert (entry.n_use, entry.n_succ, entry.promoted) == (7, 5, False)


@pytest.mark.parametrize("k_max", [0, 2, 5])
def test_noise_dies_after_k_max_plus_one_misses(k_max: int) -> None:
    play = Scripted(a_memory(k_max=k_max, n_min=99, max_insights=4))
    play.play(ASK, 1.0, ann=["open the door slowly", "open the door quickly", "open the door twice", "bananas"])
    for _ in range(k_max + 3):
        play.play(ASK, 1.0)
    assert play.kinds("pruned") == [(k_max + 1, "m0-ann-3")]
    assert len(play.memory.private_store("ann")) == 3


def test_a_use_gives_a_full_new_life() -> None:
    play = Scripted(a_memory(k_max=2, n_min=99, max_insights=4))
    play.play(ASK, 1.0, ann=["open the door slowly", "open the door quickly", "open the door twice", "bananas"])
    for question in (ASK, ASK, "bananas", ASK, ASK, ASK):
        play.play(question, 1.0)
    assert (6, "m0-ann-3") in play.kinds("pruned")
    assert [episode for episode, entry in play.kinds("pruned") if entry == "m0-ann-3"] == [6]


def test_a_collective_entry_that_stops_working_is_forgotten_after_the_predicted_updates() -> None:
    play = Scripted(a_memory(n_min=1))
    play.play(ASK, 0.0, ann=["use the key"])
    play.play(ASK, 1.0)  # promoted with S = 50
    play.play(ASK, 1.0, judge=8.0)  # U = 0.9, S = 70
    (entry,) = play.memory.collective.entries()
    assert entry.score == pytest.approx(70)
    for _ in range(4):
        play.play(ASK, 0.0, judge=0.0)  # S = 35, 17.5 (low), 8.75 (low again)
    assert play.kinds("forgotten") == [(5, "m0-ann-0c")]
    assert len(play.memory.collective) == 0
    scores = [event.values["score"] for event in play.events if event.kind == "scored"]
    assert scores == pytest.approx([70, 35, 17.5, 8.75])


def test_a_judge_that_likes_it_keeps_an_entry_alive_through_failures() -> None:
    play = Scripted(a_memory(n_min=1))
    play.play(ASK, 0.0, ann=["use the key"])
    play.play(ASK, 1.0)
    for _ in range(20):
        play.play(ASK, 0.0, judge=7.0)  # S tends to 100 · (0.5 · 0 + 0.5 · 0.7) = 35
    assert play.kinds("forgotten") == []
    assert play.memory.collective.entries()[0].score == pytest.approx(35, abs=0.1)


def test_the_adaptive_threshold_forgets_the_pools_worst() -> None:
    def left(quantile: float | None) -> int:
        memory = a_memory(k=1, forgetting_quantile=quantile, forgetting_updates=1)
        pool = [
            an_entry(name, content=name, score=80.0 if name != "worst" else 45.0) for name in ("x", "y", "z", "worst")
        ]
        memory.collective.exchange((), pool, memory.encode)
        Scripted(memory).play("worst", 0.4)  # S = 42.5: above 30, below the median of the pool
        return len(memory.collective)

    assert left(None) == 4
    assert left(0.5) == 3


def test_ablations_differ_as_they_should() -> None:
    def run(steps: tuple[Step, ...] = ORDER, **values: Any) -> tuple[int, int, set[str]]:
        play = Scripted(a_memory(n_min=2, **values), steps=steps)
        for question in range(6):
            seen = play.play(ASK, 1.0, ann=[f"ann {question}"], bob=[f"bob {question}"]).injected["bob"]
        private = sum(len(store) for store in play.memory.private.values())
        return private, len(play.memory.collective), {each.split("-")[1] for each in seen}

    private, collective, read = run()
    assert private > 0
    assert collective > 0
    assert read == {"ann", "bob"}  # ann's through the pool
    private, collective, read = run((count_uses, prune_unused, sediment_insights))
    assert (collective, read) == (0, {"bob"})
    private, collective, read = run((count_uses, curate, sediment_insights), distil_into="collective")
    assert (private, read) == (0, {"ann", "bob"})
    assert collective == 12


def test_other_agents_read_an_insight_only_once_it_is_promoted() -> None:
    play = Scripted(a_memory(n_min=2))
    play.play(ASK, 0.5, ann=["use the key"])
    read = [play.play(ASK, 0.5).injected["bob"] for _ in range(3)]
    assert read == [(), (), ("m0-ann-0c",)]


def test_a_new_insight_is_not_a_miss_of_its_own_episode() -> None:
    play = Scripted(a_memory(k_max=0))
    play.play(ASK, 1.0, ann=["use the key"])
    assert play.kinds("pruned") == []


@settings(deadline=None, max_examples=20)
@given(st.permutations(list(ORDER)), st.integers(0, 1000))
def test_the_order_is_fixed_whatever_the_order_given(order: list[Step], seed: int) -> None:
    def run(steps: tuple[Step, ...]) -> dict[str, object]:
        play, draw = Scripted(a_memory(n_min=1, k_max=1), steps=steps), random.Random(seed)
        for place in range(8):
            play.play(
                f"topic {draw.randrange(3)}", float(draw.randrange(2)), judge=5.0, ann=[f"topic {place % 3} {place}"]
            )
        return {"events": play.events, "left": play.memory.collective.entries()}

    assert run(tuple(order)) == run(ORDER)


def test_every_change_has_its_event() -> None:
    memory = a_memory(n_min=1)
    play = Scripted(memory)
    play.play(ASK, 1.0, ann=["use the key"])
    episode = replace(play.play(ASK, 1.0), index=2)
    kinds = [event.kind for event in end_episode(memory, replace(episode, injected={"bob": ("m0-ann-0c",)}))]
    assert kinds == ["episode", "used", "scored"]
    assert [event.kind for event in play.events] == ["episode", "born", "episode", "used", "promoted"]


def test_a_gold_gate_writes_from_success_alone() -> None:
    play = Scripted(a_memory(write_gate="gold"))
    play.play(ASK, 0.9, ann=["use the key"])
    assert len(play.memory.private_store("ann")) == 0
    play.play(ASK, 1.0, ann=["use the key"])
    assert len(play.memory.private_store("ann")) == 1
    with pytest.raises(ValueError, match=r"settings\.write_gate is 'self_judged'.*give gold or none"):
        a_memory(write_gate="self_judged")
