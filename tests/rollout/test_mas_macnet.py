from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.memory import Agent
from rollout.mas.graphs import TOPOLOGIES, random_graph
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS, Message
from rollout.structure import Choices, Structure
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


@pytest.mark.parametrize("topology", TOPOLOGIES)
@given(seed=st.integers(0, 500), nodes=st.integers(2, 9))
@settings(deadline=None, max_examples=30)
def test_every_agent_speaks_once_after_those_it_reads(topology: str, seed: int, nodes: int) -> None:
    total = nodes + len(TOPOLOGIES[topology](nodes, seed))
    mas = MacNet(total, seed, topology)
    _, played = play(mas)
    place = {name: order for order, name in enumerate(played.names())}
    assert sorted(played.names()) == sorted(agent.name for agent in mas.agents("qa"))
    assert len(played.names()) == len(place) == total
    for up, down in mas.edges:
        assert place[f"actor_{up}"] < place[f"critic_{up}_{down}"] < place[f"actor_{down}"]


def test_a_star_hears_all_at_once_and_a_net_all_before() -> None:
    _, star = play(MacNet(agents_total=9, topology="star"))
    assert star.most_running == 4
    assert star.user_text("actor_4").count("Draft: ") == 4
    _, net = play(MacNet(agents_total=10, topology="net"))
    assert [net.user_text(f"actor_{node}").count("Draft: ") for node in range(4)] == [0, 1, 2, 3]


def test_given_edges_are_the_graph() -> None:
    """The published, outward star: the hub speaks first, and the last node collects. Numbers stand in any order."""
    edges = [(3, 1), (3, 2), (1, 0), (2, 0)]
    mas = MacNet(edges=edges)
    answer, played = play(mas)
    assert answer == "actor_0 says"
    assert played.names() == [
        "actor_3", "critic_3_1", "critic_3_2", "actor_1", "actor_2", "critic_1_0", "critic_2_0", "actor_0",
    ]  # fmt: skip
    assert [agent.name for agent in mas.agents("qa")][:4] == ["actor_0", "actor_1", "actor_2", "actor_3"]


@pytest.mark.parametrize("seed", range(20))
def test_the_graph_of_a_seed_is_what_it_was(seed: int) -> None:
    assert MacNet(agents_total=9, seed=seed).edges == random_graph(5, seed)


def test_only_the_sink_is_held_to_the_choices() -> None:
    structures = {}
    task = replace(TASK, choices=("Lima", "Cusco"))

    async def act(agent: Agent, messages: Sequence[Message], structure: Structure | None = None) -> str:
        structures[agent.name] = structure
        return "Lima"

    asyncio.run(MacNet().run(task, act))
    assert structures.pop("actor_2") == Choices(("Lima", "Cusco"))
    assert set(structures.values()) == {None}


@pytest.mark.parametrize("agents_total", [-1, 0, 1, 2, 4])
def test_a_number_that_no_graph_has_is_refused(agents_total: int) -> None:
    with pytest.raises(ValueError, match=f"agents_total is {agents_total}"):
        MacNet(agents_total=agents_total)


def test_an_unknown_topology_and_a_cycle_are_refused() -> None:
    with pytest.raises(ValueError, match=r"mas\.init_args\.topology is 'stra'.*did you mean 'star'"):
        MacNet(topology="stra")
    with pytest.raises(ValueError, match=r"mas\.init_args\.edges has the cycle"):
        MacNet(edges=[(0, 1), (1, 0)])
