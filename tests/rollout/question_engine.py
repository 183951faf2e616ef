"""An engine that reads its prompt as text and answers by a function; replies come back in an order of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rollout.engine import Completion, EngineError, Request


@dataclass
class QuestionEngine:
    """``reply`` sees the decoded prompt and the request; ``None`` from it is a failure of the engine."""

    tokenizer: Any
    reply: Callable[[str, Request], str | None]
    text_only: bool = False
    asked: list[tuple[str, Request]] = field(default_factory=list)

    async def start(self) -> None: ...

    async def generate(self, request: Request) -> Completion:
        prompt = self.tokenizer.decode(request.prompt_ids)
        self.asked.append((prompt, request))
        for _ in range(request.sampling.seed % 5):
            await asyncio.sleep(0)
        text = self.reply(prompt, request)
        if text is None:
            raise EngineError(f"{request.label}: the script says so")
        return Completion(
            text=text,
            token_ids=(7, 2),
            logprobs=(-0.5, -0.5),
            finish_reason="stop",
            cached_tokens=None,
            wall_s=0.0,
            first_token_s=None,
            queue_s=None,
        )

    async def close(self) -> None: ...
