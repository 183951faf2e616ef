from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.mas.graphs import (
    TOPOLOGIES,
    Edge,
    chain_graph,
    check_graph,
    graph_of,
    layered_graph,
    net_graph,
    random_graph,
    star_graph,
    tree_graph,
    waves,
)

EVERY = pytest.mark.parametrize("topology", TOPOLOGIES)

FAN_IN = ((0, 2), (1, 2))
CHAIN = ((0, 1), (1, 2))


# ------------------------------------------------------------------ the six shapes


def test_shapes_worked_by_hand() -> None:
    assert chain_graph(4) == ((0, 1), (1, 2), (2, 3))
    assert star_graph(4) == ((0, 3), (1, 3), (2, 3))
    assert tree_graph(7) == ((0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6))
    assert tree_graph(6) == ((0, 3), (1, 4), (2, 4), (3, 5), (4, 5))
    assert net_graph(4) == ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    # 5 inner nodes make floor(log2(5)) = 2 layers, 3 and 2 of them
    assert layered_graph(6) == ((0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4), (3, 5), (4, 5))
    assert layered_graph(3) == FAN_IN


@EVERY
@given(nodes=st.integers(2, 40), seed=st.integers(0, 500))
@settings(deadline=None)
def test_every_shape_runs_forward_to_one_sink(topology: str, nodes: int, seed: int) -> None:
    edges = TOPOLOGIES[topology](nodes, seed)
    assert all(0 <= up < down < nodes for up, down in edges)  # so it is acyclic
    assert {node for edge in edges for node in edge} == set(range(nodes))
    assert set(range(nodes)) - {up for up, _ in edges} == {nodes - 1}
    check_graph(edges)


@EVERY
@given(nodes=st.integers(2, 40), seed=st.integers(0, 500))
@settings(deadline=None)
def test_the_same_seed_is_the_same_graph(topology: str, nodes: int, seed: int) -> None:
    assert TOPOLOGIES[topology](nodes, seed) == TOPOLOGIES[topology](nodes, seed)


def test_only_random_graphs_read_the_seed() -> None:
    differ = {name for name, shape in TOPOLOGIES.items() if len({shape(8, seed) for seed in range(20)}) > 1}
    assert differ == {"random"}


def test_a_tree_has_at_most_two_children_and_logarithmic_depth() -> None:
    for nodes in range(2, 70):
        edges = tree_graph(nodes)
        assert all(sum(down == node for _, down in edges) <= 2 for node in range(nodes))
        assert len(waves(edges)) == nodes.bit_length()


def test_a_random_graph_leaves_the_global_generator_alone() -> None:
    random.seed(1)
    before = random.getstate()
    random_graph(9, 3)
    assert random.getstate() == before


# ------------------------------------------------------------------ how agents are counted


@pytest.mark.parametrize(
    ("topology", "counts"),
    [
        ("chain", [3, 5, 7, 9]),
        ("star", [3, 5, 7, 9]),
        ("tree", [3, 5, 7, 9]),
        ("random", [3, 5, 7, 9]),
        ("net", [3, 6, 10, 15]),
        ("layered", [3, 5, 7, 11, 14]),
    ],
)
def test_agents_are_nodes_and_edges(topology: str, counts: list[int]) -> None:
    possible = []
    for total in range(-1, counts[-1] + 1):
        try:
            edges = graph_of(topology, total, 0)
        except ValueError:
            continue
        possible.append(total)
        assert edges[-1][1] + 1 + len(edges) == total
    assert possible == counts


@pytest.mark.parametrize(
    ("topology", "total", "message"),
    [
        ("net", 5, r"^mas\.init_args\.agents_total is 5.* net graph.*the nearest numbers are 3, 6, 10, 15$"),
        ("random", 4, r"^mas\.init_args\.agents_total is 4.*the nearest numbers are 3, 5, 7, 9$"),
        ("chain", 100, r"the nearest numbers are 97, 99, 101, 103$"),
        ("net", 1000, r"the nearest numbers are 946, 990, 1035, 1081$"),
        ("star", -1, r"agents_total is -1"),
        ("rnadom", 5, r"^mas\.init_args\.topology is 'rnadom'.*did you mean 'random'\?$"),
        ("xyz", 5, r"there are chain, star, tree, net, layered, random$"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(topology: str, total: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        graph_of(topology, total, 0)


# ------------------------------------------------------------------ given edges


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], r"is \[\]; give each edge once"),
        ([(0, 1), (0, 1)], "give each edge once"),
        ([(0, 2)], "numbered from 0 on"),
        ([(-1, 0)], "numbered from 0 on"),
        ([(0, 0)], "has the cycle 0 -> 0"),
        ([(0, 1), (1, 2), (2, 0)], r"has the cycle \d -> \d -> \d -> \d"),
        ([(0, 1), (2, 3), (3, 2)], r"has the cycle (2 -> 3 -> 2|3 -> 2 -> 3)"),
        ([(0, 1), (2, 3)], r"no edge connects the nodes \[2, 3\] with node 0"),
        ([(0, 1), (0, 2)], r"the nodes \[1, 2\] all end the graph"),
    ],
)
def test_edges_that_are_no_graph_are_refused_with_the_key(edges: list[Edge], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^mas\.init_args\.edges.*{message}"):
        check_graph(edges)


EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9, unique=True)


@given(EDGES)
@settings(deadline=None, max_examples=300)
def test_a_graph_that_passes_reaches_its_only_sink_from_everywhere(edges: list[Edge]) -> None:
    try:
        check_graph(edges)
    except ValueError:
        return
    order = [node for wave in waves(edges) for node in wave]
    assert sorted(order) == list(range(len(order)))
    reached = {order[-1]}
    for node in reversed(order[:-1]):
        assert any(up == node and down in reached for up, down in edges)
        reached.add(node)


# ------------------------------------------------------------------ waves


def test_waves_worked_by_hand() -> None:
    assert waves(FAN_IN) == ((0, 1), (2,))
    assert waves(CHAIN) == ((0,), (1,), (2,))
    assert waves(((0, 1), (1, 4), (2, 4), (3, 4))) == ((0, 2, 3), (1,), (4,))
    assert waves(net_graph(4)) == ((0,), (1,), (2,), (3,))
    assert waves(layered_graph(6)) == ((0, 1, 2), (3, 4), (5,))
    assert waves(((2, 0), (1, 0), (2, 1))) == ((2,), (1,), (0,))


@EVERY
@given(nodes=st.integers(2, 30), seed=st.integers(0, 500))
@settings(deadline=None)
def test_waves_respect_the_order_and_make_nobody_wait_for_nothing(topology: str, nodes: int, seed: int) -> None:
    edges = TOPOLOGIES[topology](nodes, seed)
    groups = waves(edges)
    level = {node: place for place, group in enumerate(groups) for node in group}
    assert sorted(node for group in groups for node in group) == list(range(nodes))
    assert groups[-1] == (nodes - 1,)
    for node in range(nodes):
        assert level[node] == max((level[up] + 1 for up, down in edges if down == node), default=0)
