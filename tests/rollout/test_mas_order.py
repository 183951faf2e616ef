"""The order of calls depends on the task and on what was replied, never on which call came back first."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.mas.autogen import AutoGen
from rollout.mas.camel import CAMEL
from rollout.mas.dylan import DyLAN
from rollout.mas.graphs import TOPOLOGIES
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS
from tests.rollout.scripted import TASK
from tests.rollout.transcript import Call, Reply, play

SIZES = {"net": 15, "layered": 14}
SYSTEMS: dict[str, MAS] = {
    "autogen": AutoGen(),
    "camel": CAMEL(turns=3),
    "dylan": DyLAN(rounds=4, keep=3),
    "dylan_without_ratings": DyLAN(rate=False),
    **{f"macnet_{name}": MacNet(SIZES.get(name, 11), seed=4, topology=name) for name in TOPOLOGIES},
}


def repliers(seed: int, words: int) -> Reply:
    """A reply that depends on what was read and by whom, so that a change anywhere changes all that follows."""

    def reply(number: int, call: Call) -> str:
        read = "".join(message.content for message in call.messages)
        digest = hashlib.sha256(f"{seed} {call.agent.name} {read}".encode()).hexdigest()
        return f"{int(digest, 16) % words} TASK_DONE" if digest[-1] == "0" else f"{int(digest, 16) % words}"

    return reply


@pytest.mark.parametrize("system", SYSTEMS)
@given(reply_seed=st.integers(0, 999), words=st.sampled_from([2, 3, 1000]), order=st.integers(0, 999))
@settings(deadline=None, max_examples=25)
def test_who_comes_back_first_changes_nothing(system: str, reply_seed: int, words: int, order: int) -> None:
    mas, reply = SYSTEMS[system], repliers(reply_seed, words)
    task = replace(TASK, choices=("1", "2"))
    answer, prompt = play(mas, task, reply)
    shuffled_answer, shuffled = play(mas, task, reply, seed=order)
    assert (shuffled_answer, shuffled.said()) == (answer, prompt.said())


@pytest.mark.parametrize("system", SYSTEMS)
def test_calls_that_wait_for_nothing_run_together(system: str) -> None:
    mas = SYSTEMS[system]
    _, played = play(mas, TASK, repliers(1, 1000))
    widest = {"autogen": 1, "camel": 1, "dylan": 8, "dylan_without_ratings": 4}
    if isinstance(mas, MacNet):
        leaving = [sum(up in wave for up, _ in mas.edges) for wave in mas.waves]
        widest[system] = max(*map(len, mas.waves), *leaving)
    assert played.most_running == widest[system]


def test_episodes_of_one_mas_share_nothing() -> None:
    """What an earlier episode did leaves no mark on a later one."""
    for mas in SYSTEMS.values():
        one, other = (play(mas, replace(TASK, question=question), repliers(3, 3)) for question in ("One?", "Two?"))
        again = play(mas, replace(TASK, question="One?"), repliers(3, 3))
        assert again[0] == one[0]
        assert again[1].said() == one[1].said()
        assert other[1].said() != one[1].said()
