"""Every rule of section 3, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.comem.baseline import Baseline, baseline_from_dict, baseline_to_dict
from memory.comem.curation import moving_average, score_entries, utility
from memory.comem.entry import Entry, entry_from_dict, entry_to_dict
from memory.comem.episode import Episode, episode_of
from memory.comem.event import Event, event_from_dict, event_to_dict
from memory.comem.forgetting import forget, forgetting_threshold
from memory.comem.promotion import earns_promotion, promote
from memory.comem.pruning import prune
from memory.comem.sedimentation import sediment
from memory.comem.settings import BaselineKind, CoMemSettings
from memory.comem.usage import count_usage
from tests.memory.comem.parts import an_entry, an_episode, reading
from tests.memory.parts import a_trajectory

REWARDS = st.floats(0, 1)


# ---------------------------------------------------------------------- usage counters and R̄_m


def test_a_use_counts_once_an_episode_with_its_outcome() -> None:
    episode = Episode(4, 0.5, injected={"ann": ("a", "b"), "bob": ("b",)})
    (a, b, c), events = count_usage([an_entry("a"), an_entry("b"), an_entry("c")], episode)
    assert [(e.n_use, e.n_succ, e.reward_sum) for e in (a, b, c)] == [(1, 0, 0.5), (1, 0, 0.5), (0, 0, 0.0)]
    assert [(event.entry_id, event.why) for event in events] == [("a", "read by ann"), ("b", "read by ann, bob")]


def test_only_a_full_reward_is_a_success() -> None:
    (entry,), _ = count_usage([an_entry("a", n_use=2, n_succ=1, reward_sum=1.5)], reading(4, 1.0, "a"))
    assert (entry.n_use, entry.n_succ) == (3, 2)
    assert entry.mean_reward == pytest.approx(2.5 / 3)
    assert an_entry().mean_reward is None


def test_the_record_of_a_trajectory_has_each_agents_entries_once() -> None:
    plain = a_trajectory("Where?", "Paris it is")
    step = plain.steps[0]
    steps = (step, replace(step, entry_ids=("e1", "e0")), replace(step, agent="proxy", entry_ids=(), output=" "))
    episode = episode_of(7, replace(plain, steps=steps), "exact_match")
    assert episode.injected == {"assistant": ("e0", "e1"), "proxy": ()}
    assert episode.actions == {"assistant": ("paris", "paris"), "proxy": ()}
    assert (episode.index, episode.reward, episode.success, episode.used) == (7, 1.0, True, frozenset({"e0", "e1"}))


def test_a_reward_that_is_not_there_or_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="CoMem's reward is 'progress', but sample scores exact_match"):
        episode_of(0, a_trajectory("Where?"), "progress")
    with pytest.raises(ValueError, match=r"the reward is -1; CoMem's R_norm is in \[0, 1\]"):
        Episode(0, -1)


# ---------------------------------------------------------------------- R̄


def test_the_baseline_in_its_three_readings() -> None:
    rewards = (1.0, 0.0, 0.5)
    found = {}
    kinds: tuple[BaselineKind, ...] = ("mean", "ema", "window")
    for kind in kinds:
        baseline = Baseline(kind, rate=0.5, window=2)
        for reward in rewards:
            baseline = baseline.after(reward)
        found[kind] = baseline.value
    assert found == {"mean": pytest.approx(0.5), "ema": pytest.approx(0.5), "window": pytest.approx(0.25)}


@given(st.lists(REWARDS, min_size=1, max_size=30), st.integers(1, 10))
def test_mean_and_window_are_what_they_say(rewards: list[float], window: int) -> None:
    mean, moving = Baseline("mean"), Baseline("window", window=window)
    for reward in rewards:
        mean, moving = mean.after(reward), moving.after(reward)
    assert mean.value == pytest.approx(sum(rewards) / len(rewards), abs=1e-9)
    assert moving.value == pytest.approx(sum(rewards[-window:]) / len(rewards[-window:]), abs=1e-9)
    assert baseline_from_dict(baseline_to_dict(moving)) == moving


# ---------------------------------------------------------------------- promotion


@pytest.mark.parametrize(
    ("n_use", "reward_sum", "earned"),
    [(3, 1.5, True), (3, 1.49, False), (2, 2.0, False), (4, 2.0, True), (0, 0.0, False)],
)
def test_promotion_needs_uses_and_a_mean_at_the_baseline(n_use: int, reward_sum: float, earned: bool) -> None:
    assert earns_promotion(an_entry(n_use=n_use, reward_sum=reward_sum), baseline=0.5, n_min=3) is earned


def test_a_promoted_entry_leaves_a_copy_with_its_history() -> None:
    proven = an_entry("a", n_use=3, n_succ=2, reward_sum=2.0, k_miss=1, score=61.0)
    other = an_entry("b")
    outcome = promote([proven, other], an_episode(9), baseline=0.5, n_min=3)
    assert outcome.kept == (other,)
    (copy,) = outcome.admitted
    assert copy == replace(proven, id="ac", parent_id="a", promoted=True, k_miss=0)
    assert outcome.events[0].why == "3 uses with mean reward 0.667, the baseline is 0.500; now ac"


# ---------------------------------------------------------------------- private pruning


def test_misses_add_up_a_use_clears_them_and_one_too_many_is_the_end() -> None:
    entries = [an_entry("used", k_miss=5), an_entry("last", k_miss=4), an_entry("gone", k_miss=5)]
    kept, events = prune(entries, reading(9, 1.0, "used"), k_max=5)
    assert [(entry.id, entry.k_miss) for entry in kept] == [("used", 0), ("last", 5)]
    assert [(event.kind, event.entry_id) for event in events] == [("pruned", "gone")]
    assert events[0].why == "not injected for 6 episodes running, more than K_max = 5"


def test_promoted_and_newborn_entries_are_left_alone() -> None:
    entries = [an_entry("p", promoted=True, k_miss=5), an_entry("n", created_episode=9, k_miss=0)]
    kept, events = prune(entries, an_episode(9), k_max=0)
    assert (list(kept), events) == (entries, ())


@given(st.integers(0, 8))
def test_an_entry_that_is_never_used_lives_k_max_episodes_after_its_birth(k_max: int) -> None:
    entries, alive = (an_entry(created_episode=0),), 0
    for index in range(1, 20):
        entries, _ = prune(entries, an_episode(index), k_max)  # type: ignore[assignment]
        alive += len(entries)
    assert alive == k_max


# ---------------------------------------------------------------------- utility, score, forgetting


def test_utility_mixes_reward_and_mean_judgement() -> None:
    assert utility(1.0, (6.0, 8.0), w=0.5, l_max=10) == pytest.approx(0.5 + 0.5 * 0.7)
    assert utility(0.0, (10.0,), w=0.25, l_max=10) == pytest.approx(0.75)
    assert utility(0.4, (), w=0.5, l_max=10) == 0.4


def test_the_score_is_a_moving_average_capped_at_s_max() -> None:
    assert moving_average(50.0, 0.85, alpha=0.5, s_max=100) == pytest.approx(67.5)
    assert moving_average(100.0, 1.0, alpha=0.5, s_max=100) == 100.0
    assert moving_average(50.0, 0.2, alpha=0.3, s_max=100) == pytest.approx(41.0)


@given(REWARDS, st.lists(st.floats(0, 10), max_size=4), REWARDS, st.floats(0, 1), st.floats(0, 100))
def test_utility_and_score_stay_in_their_ranges(
    reward: float, judgements: list[float], w: float, alpha: float, score: float
) -> None:
    u = utility(reward, judgements, w, 10)
    assert -1e-9 <= u <= 1 + 1e-9
    assert -1e-9 <= moving_average(score, u, alpha, 100) <= 100


def test_only_what_was_retrieved_is_scored() -> None:
    episode = replace(reading(3, 1.0, "a"), judgements={"a": (4.0,)})
    (a, b), events = score_entries([an_entry("a"), an_entry("b")], episode, CoMemSettings())
    assert a.score == pytest.approx(0.5 * 50 + 0.5 * 70)
    assert b.score == 50.0
    assert [event.why for event in events] == ["S 50.0 -> 60.0 by U 0.70: reward 1.00, 1 judgements"]


def test_two_low_updates_running_end_an_entry_and_a_good_one_between_saves_it() -> None:
    def ends(scores: list[float]) -> int | None:
        entries: tuple[Entry, ...] = (an_entry("a"),)
        for update, score in enumerate(scores):
            scored = replace(entries[0], score=score)
            entries, _ = forget([scored], reading(update, 0.0, "a"), threshold=30, updates=2)
            if not entries:
                return update
        return None

    assert ends([29, 29, 29]) == 1
    assert ends([29, 31, 29, 30, 29]) is None
    assert ends([30, 29.9, 10]) == 2


def test_a_low_entry_that_was_not_retrieved_is_not_forgotten() -> None:
    entries = (an_entry("a", score=1.0, low_count=1),)
    assert forget(entries, reading(5, 0.0, "b"), 30, 2) == (entries, ())


def test_the_adaptive_threshold_is_never_below_the_papers() -> None:
    assert forgetting_threshold([10, 20, 90], 30, None) == 30
    assert forgetting_threshold([40, 50, 60], 30, 0.5) == 50
    assert forgetting_threshold([1, 2, 3], 30, 0.5) == 30
    assert forgetting_threshold([], 30, 0.5) == 30


# ---------------------------------------------------------------------- sedimentation


def test_insights_become_entries_of_the_agent_that_wrote_them() -> None:
    episode = an_episode(
        6, 0.0, insights={"ann": ("Look  in\ndrawers.", " ", "look in drawers.", "Open it."), "bob": ("No",)}
    )
    entries, events = sediment((), episode, "ann", s_0=50, max_insights=4)
    assert [(entry.id, entry.content, entry.agent_name) for entry in entries] == [
        ("m6-ann-0", "Look in drawers.", "ann"),
        ("m6-ann-1", "Open it.", "ann"),
    ]
    assert {(entry.score, entry.n_use, entry.k_miss, entry.promoted) for entry in entries} == {(50, 0, 0, False)}
    assert [event.content for event in events] == ["Look in drawers.", "Open it."]


def test_only_the_first_insights_are_taken_and_nothing_twice() -> None:
    episode = an_episode(6, insights={"ann": ("one", "two", "three", "four")})
    held = an_entry("old", content="TWO")
    entries, _ = sediment((held,), episode, "ann", s_0=50, max_insights=3)
    assert [entry.content for entry in entries] == ["TWO", "one", "three"]
    assert sediment((held,), episode, "bob", 50, 3) == ((held,), ())


# ---------------------------------------------------------------------- plain values


def test_entries_and_events_survive_as_plain_values() -> None:
    entry = an_entry("a", n_use=2, reward_sum=0.3, parent_id="b")
    assert entry_from_dict(entry_to_dict(entry)) == entry
    event = Event(3, "scored", "a", "ann", "because", {"score": 1.5})
    assert event_from_dict(event_to_dict(event)) == event
    assert event_to_dict(Event(3, "episode")) == {"episode": 3, "kind": "episode"}


@pytest.mark.parametrize(
    ("values", "message"),
    [({"k": 0}, "settings.k is 0"), ({"alpha": 1.5}, "settings.alpha is 1.5"), ({"k_max": -1}, "k_max -1")],
)
def test_settings_that_mean_nothing_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CoMemSettings(**values)  # type: ignore[arg-type]


def test_defaults_are_the_papers() -> None:
    s = CoMemSettings()
    assert (s.k, s.k_max, s.n_min, s.w, s.alpha, s.s_max, s.forgetting_threshold) == (3, 5, 3, 0.5, 0.5, 100, 30)
