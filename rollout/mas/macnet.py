"""MacNet: a directed acyclic graph whose nodes are actors and whose edges are critics.

An actor writes an answer; for each edge its critic reads that answer and instructs the actor downstream, who refines.
The sink's answer is final. LatentMem's paper takes random graphs and counts edge agents in: its five agents are three
nodes and two edges (App. B.3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from data.task import Task
from memory.memory import Agent
from rollout.mas.graphs import Edge, check_graph, graph_of, waves
from rollout.mas.mas import MAS, Act, Message
from rollout.prompt import check_roles, load_prompts
from rollout.structure import answer_structure


class MacNet(MAS):
    """``agents_total`` calls a task, one for every node and every edge.

    How many agents n nodes make: 2n - 1 for ``chain``, ``star``, ``tree`` and ``random`` (3, 5, 7, ...), n + n(n - 1)/2
    for ``net`` (3, 6, 10, ...), and 3, 5, 7, 11, 14, ... for ``layered``.

    Args:
        agents_total: nodes plus edges (paper: 5).
        seed: of a random graph, which stays the same for all tasks.
        topology: ``chain``, ``star``, ``tree``, ``net``, ``layered`` or ``random`` (paper).
        edges: the graph itself, as pairs [from, to], in place of the three above.

    Raises:
        ValueError: an unknown topology, a number of agents that it cannot have, edges with a cycle, in parts or with
            several ends.
    """

    name = "macnet"

    def __init__(
        self,
        agents_total: int = 5,
        seed: int = 0,
        topology: str = "random",
        edges: list[tuple[int, int]] | None = None,
    ) -> None:
        check_roles(self.name, ("actor", "critic"))
        if edges is not None:
            check_graph(edges)
        self.edges = graph_of(topology, agents_total, seed) if edges is None else tuple(edges)
        self.waves = waves(self.edges)
        self.sink = self.waves[-1][-1]
        self._incoming: dict[int, list[Edge]] = {node: [] for wave in self.waves for node in wave}
        for edge in self.edges:
            self._incoming[edge[1]].append(edge)

    @property
    def nodes(self) -> int:
        """Number of actors."""
        return len(self._incoming)

    def agents(self, domain: str) -> tuple[Agent, ...]:
        """Actors in order of nodes, then critics in order of edges."""
        actors = [self._actor(domain, node) for node in range(self.nodes)]
        return (*actors, *(self._critic(domain, edge) for edge in self.edges))

    async def run(self, task: Task, act: Act) -> str:
        """The sink's answer. Every wave of actors, then of their critics, runs at once."""
        replies: dict[int, str] = {}
        advice: dict[Edge, str] = {}
        for wave in self.waves:
            drafts = (self._draft(task, act, node, replies, advice) for node in wave)
            replies.update(zip(wave, map(str.strip, await asyncio.gather(*drafts)), strict=True))
            leaving = [edge for edge in self.edges if edge[0] in wave]
            tips = (act(self._critic(task.domain, edge), self._review(task, replies[edge[0]])) for edge in leaving)
            advice.update(zip(leaving, map(str.strip, await asyncio.gather(*tips)), strict=True))
        return replies[self.sink]

    def _draft(
        self, task: Task, act: Act, node: int, replies: dict[int, str], advice: dict[Edge, str]
    ) -> Awaitable[str]:
        structure = answer_structure(task) if node == self.sink else None
        return act(self._actor(task.domain, node), self._brief(task, node, replies, advice), structure)

    def _actor(self, domain: str, node: int) -> Agent:
        return load_prompts(domain).agent(self.name, "actor", f"actor_{node}")

    def _critic(self, domain: str, edge: Edge) -> Agent:
        return load_prompts(domain).agent(self.name, "critic", f"critic_{edge[0]}_{edge[1]}")

    def _brief(
        self, task: Task, node: int, replies: dict[int, str], advice: dict[Edge, str]
    ) -> tuple[Message, Message]:
        """What an actor reads: the question alone at a source, else also each upstream answer with its instruction."""
        actor = load_prompts(task.domain).role(self.name, "actor")
        incoming = self._incoming[node]
        if not incoming:
            return actor.messages("answer", question=task.question)
        notes = [actor.fill("note", reply=replies[edge[0]], instruction=advice[edge]) for edge in incoming]
        return actor.messages("refine", question=task.question, notes="\n".join(notes))

    def _review(self, task: Task, reply: str) -> tuple[Message, Message]:
        critic = load_prompts(task.domain).role(self.name, "critic")
        return critic.messages("instruct", question=task.question, reply=reply)
