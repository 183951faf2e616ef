"""The seam of a learned topology: a MAS that draws its graph, reproducibly, whatever runs beside it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.task import Task
from memory.memory import Agent
from rollout.event_loop import EventLoopThread
from rollout.mas.graphs import Edge
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS, Act
from rollout.seeds import call_seed, episode_rng, episode_seed
from tests.rollout.parts import PHASE, TASKS, make_runner
from tests.rollout.watched_engine import WatchedEngine

POSSIBLE: tuple[Edge, ...] = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
LEARNT = 0.4
"""What a policy says of every edge; one that learns would say it by task and roles."""


def draw(chance: Callable[[], float]) -> tuple[Edge, ...]:
    """Edges by their probabilities; a node without one leads to the last."""
    edges = {edge for edge in POSSIBLE if chance() < LEARNT}
    return tuple(sorted(edges | {(node, 3) for node in range(3) if not any(up == node for up, _ in edges)}))


class Learned(MAS):
    """A graph of its own for every episode."""

    name = "learned"

    def agents(self, domain: str) -> tuple[Agent, ...]:
        return MacNet(edges=list(POSSIBLE)).agents(domain)

    async def run(self, task: Task, act: Act) -> str:
        return await MacNet(edges=list(draw(episode_rng().random))).run(task, act)


def test_every_episode_has_its_graph_whatever_runs_beside_it(loop: EventLoopThread) -> None:
    alone = make_runner(loop, WatchedEngine(), Learned(), max_concurrent=1).run(TASKS, 4, PHASE, None)
    for seed in range(3):
        engine = WatchedEngine(delays=30, seed=seed)
        together = make_runner(loop, engine, Learned(), max_concurrent=16).run(TASKS, 4, PHASE, None)
        assert [made.steps for made in together] == [made.steps for made in alone]
    assert len({tuple(step.agent for step in made.steps) for made in alone}) > 4


def test_a_trainer_finds_the_graph_again_from_what_the_trace_says(loop: EventLoopThread) -> None:
    for made in make_runner(loop, WatchedEngine(), Learned()).run(TASKS, 3, PHASE, None):
        seed = episode_seed(PHASE.run_seed, PHASE.step, made.task.id, made.member)
        edges = {f"critic_{up}_{down}" for up, down in draw(random.Random(seed).random)}
        assert {step.agent for step in made.steps if step.role == "critic"} == edges


def test_there_is_none_outside_of_an_episode() -> None:
    with pytest.raises(LookupError):
        episode_rng()


@given(st.integers(0, 99), st.integers(0, 99), st.text(max_size=4), st.integers(0, 9), st.integers(0, 9))
def test_the_seed_is_no_calls_seed(run_seed: int, step: int, task: str, member: int, call: int) -> None:
    seed = episode_seed(run_seed, step, task, member)
    assert 0 <= seed < 2**63
    assert seed != call_seed(run_seed, step, task, member, call)
    assert seed != episode_seed(run_seed, step, task, member + 1)
