from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.mas.macnet import MacNet, random_graph, waves
from rollout.mas.mas import MAS
from tests.rollout.scripted import QUESTION, TASK, Script

FAN_IN = ((0, 2), (1, 2))
CHAIN = ((0, 1), (1, 2))


def macnet_of(*edges: tuple[int, int]) -> MacNet:
    """The MacNet whose random graph is ``edges``."""
    graphs = (MacNet(agents_total=2 * len(edges) + 1, seed=seed) for seed in range(1000))
    return next(mas for mas in graphs if mas.edges == edges)


def play(mas: MAS, **delay: int) -> tuple[str, Script]:
    played = Script(lambda agent: f" {agent.name} says \n", delay)
    return asyncio.run(mas.run(TASK, played.act)), played


def test_the_default_is_five_agents() -> None:
    mas = MacNet()
    assert mas.edges == FAN_IN
    names = [agent.name for agent in mas.agents("qa")]
    assert names == ["actor_0", "actor_1", "actor_2", "critic_0_2", "critic_1_2"]
    assert [agent.role for agent in mas.agents("qa")] == ["actor"] * 3 + ["critic"] * 2


def test_two_drafts_meet_in_the_sink() -> None:
    answer, played = play(macnet_of(*FAN_IN))
    assert answer == "actor_2 says"
    assert played.names() == ["actor_0", "actor_1", "critic_0_2", "critic_1_2", "actor_2"]
    assert played.most_running == 2
    assert "Draft: actor_1 says\n" in played.user_text("critic_1_2")
    notes = "Draft: actor_0 says\nAdvice: critic_0_2 says\nDraft: actor_1 says\nAdvice: critic_1_2 says\n"
    assert notes in played.user_text("actor_2")


def test_a_chain_refines_step_by_step() -> None:
    answer, played = play(macnet_of(*CHAIN))
    assert answer == "actor_2 says"
    assert played.names() == ["actor_0", "critic_0_1", "actor_1", "critic_1_2", "actor_2"]
    assert played.most_running == 1
    assert "actor_0" not in played.user_text("actor_2")
    assert "Draft: actor_1 says\nAdvice: critic_1_2 says\n" in played.user_text("actor_2")


def test_every_prompt_has_the_question_and_only_sources_start_from_it_alone() -> None:
    _, played = play(macnet_of(*FAN_IN))
    assert all(QUESTION in played.user_text(name) for name in played.names())
    assert all("says" not in played.user_text(source) for source in ("actor_0", "actor_1"))


@given(st.integers(0, 50), st.dictionaries(st.sampled_from(["actor_0", "actor_1", "critic_0_2"]), st.integers(1, 9)))
@settings(deadline=None)
def test_who_comes_back_first_changes_nothing(seed: int, delay: dict[str, int]) -> None:
    mas = MacNet(agents_total=9, seed=seed)
    answer, prompt = play(mas)
    delayed_answer, delayed = play(mas, **delay)
    assert (answer, prompt.names(), prompt.shown) == (delayed_answer, delayed.names(), delayed.shown)


@given(seed=st.integers(0, 500), half=st.integers(1, 12))
@settings(deadline=None)
def test_every_agent_speaks_once_after_those_it_reads(seed: int, half: int) -> None:
    mas = MacNet(agents_total=2 * half + 1, seed=seed)
    _, played = play(mas)
    place = {name: order for order, name in enumerate(played.names())}
    assert sorted(played.names()) == sorted(agent.name for agent in mas.agents("qa"))
    assert len(place) == 2 * half + 1
    for up, down in mas.edges:
        assert place[f"actor_{up}"] < place[f"critic_{up}_{down}"] < place[f"actor_{down}"]


@given(nodes=st.integers(1, 30), seed=st.integers(0, 500))
@settings(deadline=None)
def test_the_graph_has_one_sink_and_runs_forward(nodes: int, seed: int) -> None:
    edges = random_graph(nodes, seed)
    assert [up for up, _ in edges] == list(range(nodes - 1))
    assert all(up < down < nodes for up, down in edges)
    assert edges == random_graph(nodes, seed)


def test_the_graph_leaves_the_global_generator_alone() -> None:
    random.seed(1)
    before = random.getstate()
    MacNet(seed=3)
    assert random.getstate() == before


def test_waves_worked_by_hand() -> None:
    assert waves(3, FAN_IN) == ((0, 1), (2,))
    assert waves(3, CHAIN) == ((0,), (1,), (2,))
    assert waves(5, ((0, 1), (1, 4), (2, 4), (3, 4))) == ((0, 2, 3), (1,), (4,))


@pytest.mark.parametrize("agents_total", [-1, 0, 1, 2, 4])
def test_a_number_that_no_graph_has_is_refused(agents_total: int) -> None:
    with pytest.raises(ValueError, match=f"agents_total is {agents_total}"):
        MacNet(agents_total=agents_total)
