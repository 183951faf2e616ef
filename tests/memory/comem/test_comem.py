"""Two streams, isolation of private stores, and a memory that survives a checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.comem.comem import OWN, TEAM, CoMem, recall_of
from memory.comem.diversity import clusters, representatives
from memory.comem.store import EntryStore
from memory.encoder import Vectors
from memory.memory import Agent, Memory
from tests.memory.comem.parts import ANN, BOB, Scripted, a_memory, an_entry
from tests.memory.parts import BagOfWords, a_task, a_trajectory


def unit(rows: list[list[float]]) -> Vectors:
    matrix = np.asarray(rows, dtype=np.float32)
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), dtype=np.float32)


def filled(private: dict[str, list[str]], pool: list[str], **values: int | float) -> CoMem:
    memory = a_memory(**values)
    for agent, contents in private.items():
        entries = [an_entry(f"{agent}{n}", agent, content=text) for n, text in enumerate(contents)]
        memory.private_store(agent).exchange((), entries, memory.encode)
    shared = [an_entry(f"c{n}", content=text, promoted=True) for n, text in enumerate(pool)]
    memory.collective.exchange((), shared, memory.encode)
    return memory


# ---------------------------------------------------------------------- retrieval


def test_both_streams_reach_the_prompt_own_first() -> None:
    memory = filled({"ann": ["red door", "blue sky"], "bob": ["red door bell"]}, ["red door key"], k=1)
    task = a_task("red door")
    memory.prepare([task], [ANN, BOB])
    recall = memory.recall(task, ANN, "")
    assert recall.text == f"{OWN}\n- red door\n{TEAM}\n- red door key"
    assert recall.entry_ids == ("ann0", "c0")
    assert memory.recall(task, BOB, "").entry_ids == ("bob0", "c0")


def test_an_empty_memory_adds_nothing_to_the_prompt() -> None:
    memory = a_memory()
    memory.prepare([a_task("red door")], [ANN])
    assert memory.recall(a_task("red door"), ANN, "") == recall_of((), ())
    assert recall_of((), ()).text == ""


def test_k_bounds_each_stream() -> None:
    words = ["one", "two", "three", "four", "five"]
    memory = filled({"ann": words}, [word * 2 for word in words], k=2)
    memory.prepare([a_task("one two three")], [ANN])
    ids = memory.recall(a_task("one two three"), ANN, "").entry_ids
    assert [each[:-1] for each in ids] == ["ann", "ann", "c", "c"]


def test_all_tasks_are_embedded_in_one_call() -> None:
    memory = filled({"ann": ["red"]}, ["blue"])
    assert isinstance(memory.encoder, BagOfWords)
    memory.encoder.calls.clear()
    tasks = [a_task("red door", "t0"), a_task("blue sky", "t1")]
    memory.prepare(tasks, [ANN, BOB])
    assert memory.encoder.calls == [("red door", "blue sky")]


def test_what_was_not_prepared_is_an_error() -> None:
    memory: Memory = a_memory()
    memory.prepare([a_task("red")], [ANN])
    with pytest.raises(LookupError, match="agent 'bob' was not prepared"):
        memory.recall(a_task("red"), BOB, "")


# ---------------------------------------------------------------------- clustering filter


def test_one_representative_a_cluster_the_most_similar_to_the_query() -> None:
    vectors = unit([[1, 0.1, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0.1], [0, 0, 1]])
    assert clusters(vectors, 0.3)[0] == clusters(vectors, 0.3)[1]
    assert representatives(vectors, [0.8, 0.9, 0.5, 0.6, 0.1], cut=0.3, k=3) == [1, 3, 4]
    assert representatives(vectors, [0.8, 0.9, 0.5, 0.6, 0.1], cut=0.3, k=2) == [1, 3]
    assert representatives(vectors, [0.8, 0.9, 0.5, 0.6, 0.1], cut=0.0, k=3) == [1, 0, 3]


def test_average_linkage_merges_while_the_mean_distance_is_within_the_cut() -> None:
    # Cosine distances: 0-1 and 1-2 about 0.19, 0-2 about 0.69. Average of {0, 1} and 2: 0.44.
    angles = np.deg2rad([0, 36, 72])
    vectors = unit([[float(np.cos(a)), float(np.sin(a))] for a in angles])
    assert len(set(clusters(vectors, 0.3))) == 2
    assert len(set(clusters(vectors, 0.45))) == 1
    assert clusters(vectors[:1], 0.3) == [1]
    assert representatives(vectors[:0], [], 0.3, 3) == []


@settings(deadline=None)
@given(st.integers(1, 14), st.integers(0, 50), st.floats(0, 1), st.integers(1, 5))
def test_representatives_are_of_different_clusters(count: int, seed: int, cut: float, k: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = unit(rng.normal(size=(count, 3)).tolist())
    rows = representatives(vectors, rng.random(count).tolist(), cut, k)
    labels = clusters(vectors, cut)
    assert len({labels[row] for row in rows}) == len(rows) == min(k, len(set(labels)))


def test_near_copies_in_the_pool_take_one_place() -> None:
    memory = filled({}, ["open the red door slowly", "open the red door", "open the red door now", "eat soup"], k=2)
    memory.prepare([a_task("open the red door")], [ANN])
    assert memory.recall(a_task("open the red door"), ANN, "").entry_ids == ("c1", "c3")


# ---------------------------------------------------------------------- isolation


AGENTS = tuple(Agent(name, "same role", "same profile") for name in ("ann", "bob", "cat"))
EPISODES = st.lists(
    st.tuples(st.sampled_from(["red", "blue", "red blue"]), st.sampled_from([0.0, 0.5, 1.0]), st.booleans()),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=40)
@given(EPISODES, st.integers(1, 4), st.integers(0, 4), st.integers(1, 5))
def test_nobody_ever_reads_another_agents_private_entry(
    episodes: list[tuple[str, float, bool]], n_min: int, k_max: int, k: int
) -> None:
    memory = a_memory(n_min=n_min, k_max=k_max, k=k)
    play = Scripted(memory, AGENTS)
    for question, reward, same in episodes:
        number = memory.episodes
        texts = {a.name: [f"{question} same {number}" if same else f"{question} {a.name} {number}"] for a in AGENTS}
        play.play(question, reward, judge=10 * reward, **texts)
        task = a_task("red blue", "probe")
        memory.prepare([task], AGENTS)
        pool = {entry.id for entry in memory.collective.entries()}
        for agent in AGENTS:
            recall = memory.recall(task, agent, "")
            own = {entry.id for entry in memory.private_store(agent.name).entries()}
            assert set(recall.entry_ids) <= own | pool
            assert {entry.agent_name for entry in memory.private_store(agent.name).entries()} <= {agent.name}
            others = [e for a in AGENTS if a != agent for e in memory.private_store(a.name).entries()]
            known = {
                entry.content for entry in (*memory.private_store(agent.name).entries(), *memory.collective.entries())
            }
            lines = {line.removeprefix("- ") for line in recall.text.splitlines()}
            assert not {entry.content for entry in others if entry.content not in known} & lines


def test_a_private_store_refuses_another_agents_entry() -> None:
    store = EntryStore("ann")
    with pytest.raises(ValueError, match="private store of 'ann' was given an entry of 'bob'"):
        store.exchange((), [an_entry(agent="bob")], BagOfWords().encode)  # type: ignore[arg-type]
    assert len(store) == 0


# ---------------------------------------------------------------------- stores


def test_an_exchange_changes_removes_and_adds() -> None:
    memory = filled({"ann": ["one", "two", "three"]}, [])
    store = memory.private_store("ann")
    one, two, _ = store.entries()
    changed = an_entry("ann0", content="one", n_use=4)
    assert isinstance(memory.encoder, BagOfWords)
    memory.encoder.calls.clear()
    store.exchange((one, two), (changed, an_entry("new", content="four")), memory.encode)
    assert [entry.id for entry in store.entries()] == ["ann0", "ann2", "new"]
    assert store.get(["ann0"])[0].n_use == 4
    assert memory.encoder.calls == [("four",)]  # nothing known is encoded again
    (hits,) = store.search(memory.encoder.encode(["four"]), 5)
    assert hits[0][0].id == "new"
    assert len(hits) == 3


# ---------------------------------------------------------------------- state


def played(memory: CoMem, first: int, last: int) -> Scripted:
    play = Scripted(memory)
    for place in range(first, last):
        play.play(f"topic {place % 3}", float(place % 2), judge=6.0, ann=[f"topic {place}"], bob=[f"bob {place % 4}"])
    return play


def test_a_memory_that_was_saved_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole, half = a_memory(n_min=2), a_memory(n_min=2)
    expected = [event for event in played(whole, 0, 20).events if event.episode >= 9]
    played(half, 0, 9)
    torch.save(half.state_dict(), tmp_path / "memory.pt")
    resumed = a_memory(n_min=2)
    resumed.load_state_dict(torch.load(tmp_path / "memory.pt", weights_only=True))
    assert played(resumed, 9, 20).events == expected
    assert [store.entries() for store in resumed.stores()] == [store.entries() for store in whole.stores()]
    assert resumed.baseline == whole.baseline


def test_vectors_of_another_encoder_are_refused() -> None:
    other = CoMem(BagOfWords("other"))
    with pytest.raises(ValueError, match="encoder is 'bag-of-words', this run's is 'other'"):
        other.load_state_dict(a_memory().state_dict())


def test_finished_episodes_are_numbered_in_the_order_they_came() -> None:
    memory = a_memory()
    for question in ("a", "b"):
        memory.end_episode(a_trajectory(question))
    assert [(t.task.question, episode.index) for t, episode in memory.open_episodes()] == [("a", 0), ("b", 1)]
    assert memory.open_episodes() == []
    memory.end_episode(a_trajectory("c"))
    assert memory.open_episodes()[0][1].index == 2
