"""The gym's tasks (SIMULATION): a question that asks for several facts, and the documents in which they may be found.

    python -c "from rollout.gym.tasks import make_task, GymTasks; print(make_task(GymTasks(), 'train', 0))"

Each fact has its own few documents: one official source that states it, some rumours that state something else, the
rest without it. Facts, values and names are drawn from a seed; nothing is about the real world.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from data.task import Task
from rollout.seeds import call_seed

Kind = Literal["official", "rumour", "empty"]
Split = Literal["train", "test"]

PLACES = (
    "Marlow", "Tarn", "Ebbing", "Calder", "Orrin", "Wexby", "Lunde", "Stavel", "Pernick", "Hollin",
    "Brask", "Quill", "Rosmer", "Tyndall", "Vance", "Yarrow", "Kestrel", "Dunmore", "Fenwick", "Garrow",
)  # fmt: skip
THINGS = ("museum", "bridge", "harbour", "library", "observatory", "railway", "theatre", "market", "lighthouse", "mill")
ATTRIBUTES = (
    "opening year",
    "annual visitor count",
    "height in feet",
    "number of staff",
    "floor area",
    "annual budget",
)
LEVELS = (3, 4, 5)
"""Facts that a task of level 1, 2, 3 asks for."""


@dataclass(frozen=True)
class GymTasks:
    """How tasks are made. All numbers are ours.

    Attributes:
        sources: documents for each fact, the official one among them.
        rumour_rate: chance that a document other than the official one states a wrong value.
        seed: of all tasks.
    """

    sources: int = 4
    rumour_rate: float = 0.15
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sources < 1 or not 0 <= self.rumour_rate <= 1:
            raise ValueError(
                f"gym: sources is {self.sources} and rumour_rate {self.rumour_rate}; "
                "give at least 1 source and a rate from 0 to 1"
            )


@dataclass(frozen=True)
class Source:
    """One document. ``value`` is what it states about ``topic``, empty for one that states nothing."""

    topic: str
    name: str
    kind: Kind
    value: str


def make_task(settings: GymTasks, split: Split, index: int) -> Task:
    """Task ``index`` of ``split``: a pure function of its arguments. Its level goes round 1, 2, 3."""
    rng = random.Random(call_seed(settings.seed, 0 if split == "train" else 1, "gym", index, 0))
    level = index % len(LEVELS)
    places, things = rng.sample(PLACES, LEVELS[level]), rng.choices(THINGS, k=LEVELS[level])
    topics = [f"the {rng.choice(ATTRIBUTES)} of {place} {thing}" for place, thing in zip(places, things, strict=True)]
    values = [str(rng.randrange(100, 9999)) for _ in topics]
    sources = [
        source for topic, value in zip(topics, values, strict=True) for source in _sources(topic, value, settings, rng)
    ]
    return Task(
        id=f"gym-{split}-{index}",
        question=f"State, in this order: {'; '.join(topics)}. Separate the values by semicolons.",
        answers=("; ".join(values),),
        benchmark="gym",
        domain="web",
        metadata={
            "simulated": True,
            "level": level + 1,
            "topics": topics,
            "sources": [[source.topic, source.name, source.kind, source.value] for source in sources],
        },
    )


def topics_of(task: Task) -> tuple[str, ...]:
    """What ``task`` asks for, in order. Raises ``ValueError`` for a task that is not the gym's."""
    topics = task.metadata.get("topics")
    if task.benchmark != "gym" or not isinstance(topics, (list, tuple)):
        raise ValueError(f"task {task.id} is not a task of the gym: simulated teams can only play its own")
    return tuple(map(str, topics))


def sources_of(task: Task) -> tuple[Source, ...]:
    """The documents of ``task``."""
    rows = task.metadata["sources"]
    assert isinstance(rows, (list, tuple))
    return tuple(Source(*row) for row in rows)


def _sources(topic: str, value: str, settings: GymTasks, rng: random.Random) -> list[Source]:
    thing = topic.split(" of ", 1)[1]
    found = [Source(topic, f"the register entry of {thing}", "official", value)]
    for number in range(2, settings.sources + 1):
        if rng.random() < settings.rumour_rate:
            wrong = str(int(value) + rng.choice((-1, 1)) * rng.randrange(3, 90))
            found.append(Source(topic, f"forum thread {number} about {thing}", "rumour", wrong))
        else:
            found.append(Source(topic, f"web page {number} about {thing}", "empty", ""))
    return found
