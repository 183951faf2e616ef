"""A simulated team (SIMULATION) on the seam of :mod:`rollout.teams`: reads keys, takes what it lacks, looks further.

It looks for the facts of its task one after the other in an order of its own, in one source after the other. A claim
from a forum it believes half of the time, whether it read it there or in the bank; anything else that states a value it
takes for true. Keys cost time and attention: the more of them, the more often a wanted one is overlooked.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from data.task import Task
from rollout.gym.clock import SimulatedClock
from rollout.gym.tasks import Source, sources_of, topics_of
from rollout.gym.texts import Length, StepTexts, is_unsupported, stated_value, step_texts
from rollout.teams import Seat

UNKNOWN = "unknown"


@dataclass(frozen=True)
class GymTeams:
    """How simulated teams behave. All numbers are ours; times are simulated seconds.

    Attributes:
        failure_rate: chance that a tool call fails.
        trust: chance that a team believes a claim from a forum when it reads it.
        disguise: share of rumours that are worded like official entries.
        overlook: how much each key in the bank adds to the chance of overlooking a wanted one.
        overlook_most: the highest chance of overlooking.
        step_s: one step of an orchestrator and an agent.
        key_s: reading one key, before every step.
        value_s: reading one selected value.
        summary_s: writing a summary.
    """

    failure_rate: float = 0.2
    trust: float = 0.5
    disguise: float = 0.1
    overlook: float = 0.02
    overlook_most: float = 0.8
    step_s: float = 30.0
    key_s: float = 0.4
    value_s: float = 2.0
    summary_s: float = 1.5


class SimulatedTeam:
    """One team of one episode.

    Args:
        settings: its behaviour.
        clock: of the episode; the team leaves it when it is done.
        rng: everything that is left to chance.
        length: of the summaries, which only the simulator's summariser uses.
    """

    def __init__(self, settings: GymTeams, clock: SimulatedClock, rng: random.Random, length: Length) -> None:
        self.settings = settings
        self.clock = clock
        self.rng = rng
        self.length = length
        self.texts: list[StepTexts] = []
        self._known: dict[str, str] = {}
        self._seen_keys: set[int] = set()

    async def run(self, task: Task, seat: Seat) -> str:
        """Look until every fact has a value or no step is left."""
        topics = topics_of(task)
        plan = self._plan(task)
        while len(self._known) < len(topics) and not seat.exhausted:
            await self._read_bank(topics, seat)
            open_sources = [source for source in plan if source.topic not in self._known]
            if not open_sources:
                break
            source = open_sources[0]
            if await self._visit(source, seat):
                plan.remove(source)
        self.clock.leave()
        return "; ".join(self._known.get(topic, UNKNOWN) for topic in topics)

    def _plan(self, task: Task) -> list[Source]:
        """All sources, topic by topic; topics and the sources of each in the team's own order."""
        topics = list(topics_of(task))
        self.rng.shuffle(topics)
        sources = list(sources_of(task))
        self.rng.shuffle(sources)
        return sorted(sources, key=lambda source: topics.index(source.topic))

    async def _read_bank(self, topics: tuple[str, ...], seat: Seat) -> None:
        """Read every key, select those of facts that are wanted, believe their values."""
        keys = seat.keys()
        if not keys:
            return
        await self.clock.sleep(seat.team, self.settings.key_s * len(keys))
        seat.spend(sum(len(key.split()) for key in keys))
        missed = min(self.settings.overlook_most, self.settings.overlook * len(keys))
        for topic in topics:
            offers = [place for place, key in enumerate(keys) if topic in key and place not in self._seen_keys]
            if topic not in self._known and offers and self.rng.random() >= missed:
                await self._take(topic, offers[0], seat)

    async def _take(self, topic: str, place: int, seat: Seat) -> None:
        (value,) = seat.select([place])
        self._seen_keys.add(place)
        seat.spend(len(value.split()))
        await self.clock.sleep(seat.team, self.settings.value_s)
        stated = stated_value(topic, value)
        if stated is not None and self._believes(value):
            self._known[topic] = stated

    def _believes(self, text: str) -> bool:
        return not is_unsupported(text) or self.rng.random() < self.settings.trust

    async def _visit(self, source: Source, seat: Seat) -> bool:
        """One step. Whether the source was read: a failed call is tried again."""
        failed = self.rng.random() < self.settings.failure_rate
        disguised = source.kind == "rumour" and self.rng.random() < self.settings.disguise
        texts = step_texts(source, failed, disguised, self.length, self.rng)
        await self.clock.sleep(seat.team, self.settings.step_s)
        if texts.outcome in ("fact", "rumour") and self._believes(texts.output):
            self._known[source.topic] = source.value
        self.texts.append(texts)
        seat.spend(len(texts.instruction.split()) + len(texts.output.split()))
        await seat.admit(texts.instruction, texts.output, context="; ".join(self._known.values()))
        return not failed
