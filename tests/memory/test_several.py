"""One call's memory, put together of several."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from data.task import Task
from data.trajectory import Trajectory
from memory.memory import Agent, Memory, Recall
from memory.several import Several
from tests.memory.parts import a_task, a_trajectory

ANN = Agent("ann", "cook", "You cook.")


class Says:
    """The same recall for everyone, and a list of what came to it."""

    def __init__(self, recall: Recall) -> None:
        self.said = recall
        self.seen: list[str] = []

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None:
        self.seen += [f"{task.id} {agent.name}" for task in tasks for agent in agents]

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        return self.said

    def end_episode(self, trajectory: Trajectory) -> None:
        self.seen.append(trajectory.task.id)


def test_texts_are_joined_and_latents_concatenated_in_order() -> None:
    one = Says(Recall("first", torch.zeros(2, 3), ("a", "b")))
    two = Says(Recall("", torch.ones(1, 3), ("c",)))
    three = Says(Recall("third", None, ("d",)))
    memory: Memory = Several((one, two, three))
    found = memory.recall(a_task("Where?"), ANN, "")
    assert (found.text, found.entry_ids) == ("first\n\nthird", ("a", "b", "c", "d"))
    assert found.latents is not None
    assert found.latents.tolist() == [[0.0] * 3, [0.0] * 3, [1.0] * 3]
    assert Several((three,)).recall(a_task("Where?"), ANN, "").latents is None


def test_each_memory_prepares_and_takes_in_every_episode() -> None:
    parts = [Says(Recall()), Says(Recall())]
    memory = Several(parts)
    task, made = a_task("Where?", "t7"), a_trajectory("Where?")
    memory.prepare([task], [ANN])
    memory.end_episode(made)
    assert [part.seen for part in parts] == [["t7 ann", made.task.id]] * 2
