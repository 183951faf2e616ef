"""An engine that answers from a function, in an order of its own, and writes down what it was asked."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from rollout.engine import Completion, EngineError, Request


def echo(request: Request) -> str:
    return f"answer {request.sampling.seed % 1000}"


@dataclass
class ScriptedEngine:
    """``delays`` shuffles the order of answers: each waits a random number of event-loop turns below it."""

    reply: Callable[[Request], str] = echo
    delays: int = 1
    seed: int = 0
    fails: Callable[[Request], bool] = lambda request: False
    asked: list[Request] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    starts: int = 0
    closes: int = 0
    text_only: bool = False
    in_flight: int = 0
    most_in_flight: int = 0

    async def start(self) -> None:
        self.starts += 1

    async def generate(self, request: Request) -> Completion:
        self.asked.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for _ in range(random.Random(f"{self.seed} {request.sampling.seed}").randrange(self.delays)):
                await asyncio.sleep(0)
            if self.fails(request):
                raise EngineError(f"{request.label}: the script says so")
        except asyncio.CancelledError:
            self.cancelled.append(request.label)
            raise
        finally:
            self.in_flight -= 1
        self.answered.append(request.label)
        return Completion(self.reply(request), (7, 2), (-0.25, -0.5), "stop", 3, 0.4, 0.2, 0.1)

    async def close(self) -> None:
        self.closes += 1
