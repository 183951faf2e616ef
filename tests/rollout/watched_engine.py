"""An engine in front of another: it lets answers come back in an order of its own and writes down what it was asked."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from rollout.engine import Completion, Engine, EngineError, Request
from rollout.replay_engine import ReplayEngine


def echo(request: Request) -> str:
    return f"answer {request.sampling.seed % 1000}"


@dataclass
class WatchedEngine:
    """Over a script by default. Each answer waits a random number of event-loop turns below ``delays``."""

    engine: Engine = field(default_factory=lambda: ReplayEngine(script=echo))
    delays: int = 1
    seed: int = 0
    fails: Callable[[Request], bool] = lambda request: False
    error: type[EngineError] = EngineError
    text_only: bool = False
    asked: list[Request] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    starts: int = 0
    closes: int = 0
    in_flight: int = 0
    most_in_flight: int = 0

    async def start(self) -> None:
        self.starts += 1
        await self.engine.start()

    async def generate(self, request: Request) -> Completion:
        self.asked.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for _ in range(random.Random(f"{self.seed} {request.sampling.seed}").randrange(self.delays)):
                await asyncio.sleep(0)
            if self.fails(request):
                raise self.error(f"{request.label}: the script says so")
            completion = await self.engine.generate(request)
        except asyncio.CancelledError:
            self.cancelled.append(request.label)
            raise
        finally:
            self.in_flight -= 1
        self.answered.append(request.label)
        return completion

    async def close(self) -> None:
        self.closes += 1
        await self.engine.close()


def says(answer: str) -> WatchedEngine:
    """The same answer to everything."""
    return WatchedEngine(ReplayEngine(script=lambda request: answer))
