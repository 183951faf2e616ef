"""MacNet: a random directed acyclic graph whose nodes are actors and whose edges are critics.

An actor writes an answer; for each edge its critic reads that answer and instructs the actor downstream, who refines.
The last node is the only sink, and its answer is final. The paper counts edge agents in: five agents are three nodes
and two edges.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Sequence

from data.task import Task
from memory.memory import Agent
from rollout.mas.mas import Act, Message
from rollout.prompt import load_prompts
from rollout.structure import answer_structure

Edge = tuple[int, int]


def random_graph(nodes: int, seed: int) -> tuple[Edge, ...]:
    """One edge from every node but the last to a random later node, so that the last node is the single sink."""
    rng = random.Random(seed)
    return tuple((node, rng.randrange(node + 1, nodes)) for node in range(nodes - 1))


def waves(nodes: int, edges: Sequence[Edge]) -> tuple[tuple[int, ...], ...]:
    """Nodes grouped by the longest path that leads to them: within a group none waits for another."""
    depth = [0] * nodes
    for upstream, downstream in sorted(edges):
        depth[downstream] = max(depth[downstream], depth[upstream] + 1)
    return tuple(tuple(node for node in range(nodes) if depth[node] == level) for level in range(max(depth) + 1))


class MacNet:
    """``agents_total`` calls a task, one for every node and every edge.

    Args:
        agents_total: nodes plus edges, an odd number of at least 3 (paper: 5).
        seed: of the graph, which stays the same for all tasks.
    """

    name = "macnet"

    def __init__(self, agents_total: int = 5, seed: int = 0) -> None:
        if agents_total < 3 or agents_total % 2 == 0:
            raise ValueError(
                f"MacNet: agents_total is {agents_total}; n nodes have n - 1 edges, so give an odd number of at least 3"
            )
        self.nodes = (agents_total + 1) // 2
        self.edges = random_graph(self.nodes, seed)

    def agents(self, domain: str) -> tuple[Agent, ...]:
        """Actors in order of nodes, then critics in order of edges."""
        actors = [self._actor(domain, node) for node in range(self.nodes)]
        return (*actors, *(self._critic(domain, edge) for edge in self.edges))

    async def run(self, task: Task, act: Act) -> str:
        """The sink's answer. Every wave of actors, then of their critics, runs at once."""
        replies: dict[int, str] = {}
        advice: dict[Edge, str] = {}
        for wave in waves(self.nodes, self.edges):
            drafts = (self._draft(task, act, node, replies, advice) for node in wave)
            replies.update(zip(wave, map(str.strip, await asyncio.gather(*drafts)), strict=True))
            leaving = [edge for edge in self.edges if edge[0] in wave]
            tips = (act(self._critic(task.domain, edge), self._review(task, replies[edge[0]])) for edge in leaving)
            advice.update(zip(leaving, map(str.strip, await asyncio.gather(*tips)), strict=True))
        return replies[self.nodes - 1]

    def _draft(
        self, task: Task, act: Act, node: int, replies: dict[int, str], advice: dict[Edge, str]
    ) -> Awaitable[str]:
        structure = answer_structure(task) if node == self.nodes - 1 else None
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
        incoming = [edge for edge in self.edges if edge[1] == node]
        if not incoming:
            return actor.messages("answer", question=task.question)
        notes = [actor.fill("note", reply=replies[edge[0]], instruction=advice[edge]) for edge in incoming]
        return actor.messages("refine", question=task.question, notes="\n".join(notes))

    def _review(self, task: Task, reply: str) -> tuple[Message, Message]:
        critic = load_prompts(task.domain).role(self.name, "critic")
        return critic.messages("instruct", question=task.question, reply=reply)
