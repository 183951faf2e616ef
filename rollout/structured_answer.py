"""Ask again until an answer holds to its structure, a bounded number of times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from rollout.counters import prompt_positions, sampled_tokens
from rollout.engine import Completion, EngineError, Request
from rollout.seeds import retry_seed
from rollout.validate_structure import Mismatch, validate_structure

RETRY_TEMPERATURE = 1.0
"""Of the attempts after a greedy one, which would only say the same again (ours)."""


async def structured_answer(
    request: Request, answer: Callable[[Request], Awaitable[Completion]], attempts: int
) -> Completion:
    """``answer(request)``, held to ``request.structure`` if it has one.

    An attempt that fails is sampled again under a seed of its own. What the attempts cost is added up.

    Args:
        request: what is asked.
        answer: one attempt.
        attempts: at most; 1 where decoding is constrained, so that only a response cut short can fail.

    Raises:
        EngineError: no attempt held to the structure; or what ``answer`` raised.
    """
    if request.structure is None:
        return await answer(request)
    made: list[Completion] = []
    mismatch = Mismatch("nothing was asked")
    for attempt in range(attempts):
        made.append(await answer(_attempt(request, attempt)))
        found = validate_structure(made[-1].text, request.structure)
        if isinstance(found, str):
            return _with_all_costs(request, made, found)
        mismatch = found
    raise EngineError(
        f"{request.label}: the answer does not hold to its structure after {len(made)} attempt(s), the last one "
        f"finished by {made[-1].finish_reason!r}: {mismatch.reason}"
    )


def _attempt(request: Request, attempt: int) -> Request:
    if attempt == 0:
        return request
    sampling = request.sampling
    temperature = sampling.temperature or RETRY_TEMPERATURE
    again = replace(sampling, temperature=temperature, seed=retry_seed(sampling.seed, attempt))
    return replace(request, sampling=again)


def _with_all_costs(request: Request, made: Sequence[Completion], text: str) -> Completion:
    last = replace(made[-1], text=text)
    if len(made) == 1:
        return last
    return replace(
        last,
        wall_s=sum(each.wall_s for each in made),
        retries=len(made) - 1 + sum(each.retries for each in made),
        prompt_tokens=sum(prompt_positions(request, each) for each in made),
        completion_tokens=sum(map(sampled_tokens, made)),
    )
