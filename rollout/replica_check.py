"""What a replica must be before it may answer: the right model, embeddings on, log-probabilities as sampled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from rollout.completions_api import prompt_fields, sampling_fields
from rollout.engine import EngineError, Request, Sampling

if TYPE_CHECKING:
    import httpx

PROCESSED_AT_MOST = 0.75
"""Between 0.5, which a gap of log-probabilities keeps of itself from temperature 1 to 2, and 1, all of it."""

CHECK_TIMEOUT_S = 120.0
"""Of one question of the check (ours): a server that has just started is slow, one that hangs must not hold a start."""


async def check_replica(client: httpx.AsyncClient, url: str, names: frozenset[str], hidden_size: int) -> int:
    """``max_model_len`` of the replica at ``url``.

    Args:
        client: with headers and timeouts set.
        url: of the replica.
        names: of the model that it should serve, any of them.
        hidden_size: of that model.

    Raises:
        EngineError: another model, no prompt embeddings, log-probabilities before temperature, no vLLM at all.
        httpx.HTTPError: nobody answers.
    """
    card = await _model_card(client, url, names)
    probe = Request(url, Sampling(1.0, 1), prompt_embeds=_probe_embeds(hidden_size))
    at_1 = await _top_logprobs(client, url, probe)
    at_2 = await _top_logprobs(client, url, replace(probe, sampling=replace(probe.sampling, temperature=2.0)))
    if not are_processed(at_1, at_2):
        raise EngineError(
            "its log-probabilities are those before temperature, not those that tokens were sampled with; "
            "start it with --logprobs-mode processed_logprobs"
        )
    return int(card["max_model_len"])


def are_processed(at_1: Mapping[str, float], at_2: Mapping[str, float]) -> bool:
    """Whether log-probabilities of one prompt's next token at temperatures 1 and 2 are those after temperature.

    The gap between two tokens, a difference of logits over the temperature, is halved from 1 to 2.
    """
    common = sorted(at_1.keys() & at_2.keys(), key=lambda token: at_1[token])
    if len(common) < 2:
        return True
    low, high = common[0], common[-1]
    return at_2[high] - at_2[low] <= PROCESSED_AT_MOST * (at_1[high] - at_1[low])


async def _model_card(client: httpx.AsyncClient, url: str, names: frozenset[str]) -> Mapping[str, Any]:
    response = await client.get(f"{url}/v1/models", timeout=CHECK_TIMEOUT_S)
    answer = _answer(response)
    cards = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(cards, list) or not all({"id", "max_model_len"} <= card.keys() for card in cards):
        raise EngineError(f"{response.url.path} does not list models as vLLM does; is this a vLLM server?")
    for card in cards:
        if names & {card["id"], card.get("root")}:
            return dict(card)
    raise EngineError(f"it serves {', '.join(repr(card['id']) for card in cards)}, not {' or '.join(sorted(names))}")


async def _top_logprobs(client: httpx.AsyncClient, url: str, probe: Request) -> dict[str, float]:
    body = {
        **prompt_fields(probe),
        **sampling_fields(probe.sampling),
        "logprobs": 5,
        "return_tokens_as_token_ids": True,
    }
    response = await client.post(f"{url}/v1/completions", json=body, timeout=CHECK_TIMEOUT_S)
    if response.status_code == 400 and "enable-prompt-embeds" in response.text:
        raise EngineError("it does not take prompt embeddings; start it with --enable-prompt-embeds")
    return dict(_answer(response)["choices"][0]["logprobs"]["top_logprobs"][0])


def _probe_embeds(hidden_size: int) -> torch.Tensor:
    return 0.02 * torch.randn(1, hidden_size, generator=torch.Generator().manual_seed(0))


def _answer(response: httpx.Response) -> Any:
    if response.status_code != 200:
        raise EngineError(f"HTTP {response.status_code} from {response.url.path}: {response.text}")
    try:
        return response.json()
    except json.JSONDecodeError as error:
        raise EngineError(f"{response.url.path} does not answer in JSON; is this a vLLM server?") from error
