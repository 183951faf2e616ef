"""MacNet's graphs as pure functions from a number of nodes to edges, and the rules that every graph obeys.

A graph is its edges ``(upstream, downstream)`` over the nodes ``0 .. nodes - 1``. It is acyclic, connected, and has one
sink, whose answer is final. The built ones run forward, so that their sink is the last node.

The names are those of MacNet (Qian et al., 2024). Ours: star and tree run towards the last node. The published ones run
away from the first; their several ends then need one more node that collects them, and with so few agents as
LatentMem's five nothing but a chain would be left. Such a graph can be given edge by edge.
"""

from __future__ import annotations

import difflib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise, product

Edge = tuple[int, int]


def chain_graph(nodes: int, seed: int = 0) -> tuple[Edge, ...]:
    """Every node to the next one."""
    return tuple(pairwise(range(nodes)))


def star_graph(nodes: int, seed: int = 0) -> tuple[Edge, ...]:
    """Every node to the last one."""
    return tuple((node, nodes - 1) for node in range(nodes - 1))


def tree_graph(nodes: int, seed: int = 0) -> tuple[Edge, ...]:
    """A balanced binary tree, the leaves first and the root last: a heap read backwards."""
    return tuple((node, nodes - 1 - (nodes - 2 - node) // 2) for node in range(nodes - 1))


def net_graph(nodes: int, seed: int = 0) -> tuple[Edge, ...]:
    """Every node to every later one, the complete graph (the paper's mesh)."""
    return tuple(combinations(range(nodes), 2))


def layered_graph(nodes: int, seed: int = 0) -> tuple[Edge, ...]:
    """Every node to all of the next layer.

    All nodes but the last are cut into ``floor(log2(nodes - 1))`` equal layers, what is left over in the first one, as
    published; the last node is a layer of its own (ours).
    """
    inner = nodes - 1
    count = max(1, int(math.log2(inner))) if inner else 0
    sizes = [inner // count + (inner % count if layer == 0 else 0) for layer in range(count)]
    starts = [sum(sizes[:layer]) for layer in range(count)]
    layers = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    return tuple(edge for left, right in pairwise([*layers, range(inner, nodes)]) for edge in product(left, right))


def random_graph(nodes: int, seed: int = 0) -> tuple[Edge, ...]:
    """Every node but the last to one random later node, so that the last node is the single sink.

    Ours: the published one draws the number of edges too, and need not be connected.
    """
    rng = random.Random(seed)
    return tuple((node, rng.randrange(node + 1, nodes)) for node in range(nodes - 1))


TOPOLOGIES: Mapping[str, Callable[[int, int], tuple[Edge, ...]]] = {
    "chain": chain_graph,
    "star": star_graph,
    "tree": tree_graph,
    "net": net_graph,
    "layered": layered_graph,
    "random": random_graph,
}


def graph_of(topology: str, agents_total: int, seed: int) -> tuple[Edge, ...]:
    """The smallest graph of that name whose nodes and edges are ``agents_total`` together.

    Raises ``ValueError`` that names the config key for an unknown topology and for a number that it cannot have.
    """
    if topology not in TOPOLOGIES:
        close = difflib.get_close_matches(topology, TOPOLOGIES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(TOPOLOGIES)}"
        raise ValueError(f"mas.init_args.topology is {topology!r}, which is none; {hint}")
    sizes = []
    for nodes in range(2, max(agents_total, 6)):
        edges = TOPOLOGIES[topology](nodes, seed)
        sizes.append(nodes + len(edges))
        if sizes[-1] == agents_total:
            return edges
        if len(sizes) >= 4 and sizes[-1] > 2 * agents_total:
            break
    near = sorted(set(sizes), key=lambda size: (abs(size - agents_total), size))[:4]
    raise ValueError(
        f"mas.init_args.agents_total is {agents_total}, but nodes and edges of a {topology} graph are never that many "
        f"together; the nearest numbers are {', '.join(map(str, sorted(near)))}"
    )


def check_graph(edges: Sequence[Edge], key: str = "mas.init_args.edges") -> None:
    """Refuse what is no graph of a MAS.

    Raises ``ValueError`` that begins with the config key ``key``: no edge, an edge given twice, a number left out, a
    cycle, parts without a connection, several sinks.
    """
    used = {node for edge in edges for node in edge}
    if not edges or used != set(range(len(used))) or len(set(edges)) != len(edges):
        raise ValueError(f"{key} is {list(edges)}; give each edge once as [from, to], the nodes numbered from 0 on")
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for upstream, downstream in edges:
        sorter.add(downstream, upstream)
    try:
        sorter.prepare()
    except CycleError as error:
        raise ValueError(f"{key} has the cycle {' -> '.join(map(str, error.args[1]))}; take one edge out") from error
    apart = sorted(used - _component(edges))
    if apart:
        raise ValueError(f"{key}: no edge connects the nodes {apart} with node 0; add one")
    sinks = sorted(used - {upstream for upstream, _ in edges})
    if len(sinks) > 1:
        raise ValueError(f"{key}: the nodes {sinks} all end the graph; add edges from them to one node that answers")


def waves(edges: Sequence[Edge]) -> tuple[tuple[int, ...], ...]:
    """Nodes grouped by the longest path that leads to them: within a group none waits for another."""
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for upstream, downstream in edges:
        sorter.add(downstream, upstream)
    sorter.prepare()
    groups = []
    while sorter.is_active():
        groups.append(tuple(sorted(sorter.get_ready())))
        sorter.done(*groups[-1])
    return tuple(groups)


def _component(edges: Sequence[Edge]) -> set[int]:
    """The nodes that are connected with node 0, whichever way the edges run."""
    neighbours: dict[int, set[int]] = {}
    for one, other in edges:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    seen, ahead = {0}, [0]
    while ahead:
        new = neighbours.get(ahead.pop(), set()) - seen
        seen |= new
        ahead += new
    return seen
