"""What an engine has done, counted where it answers: an account to hold a trace against."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.engine import Completion, Request


@dataclass
class Counters:
    """Sums over the requests that were answered. ``prompt_tokens`` are positions, latents included."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    retries: int = 0

    def count(self, request: Request, completion: Completion) -> None:
        """Take in one answer."""
        self.requests += 1
        self.prompt_tokens += prompt_positions(request, completion)
        self.completion_tokens += sampled_tokens(completion)
        self.cached_tokens += completion.cached_tokens or 0
        self.retries += completion.retries


def prompt_positions(request: Request, completion: Completion) -> int:
    """What was read for one call, latents and earlier attempts included."""
    return request.length if completion.prompt_tokens is None else completion.prompt_tokens


def sampled_tokens(completion: Completion) -> int:
    """What was sampled for one call, earlier attempts included."""
    return len(completion.token_ids) if completion.completion_tokens is None else completion.completion_tokens
