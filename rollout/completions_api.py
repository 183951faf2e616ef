"""vLLM's ``/v1/completions``: a request as its JSON body, its JSON answer as a completion. Pure functions."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from typing import Any

import torch

from rollout.engine import Completion, Request, Sampling
from rollout.structure import Choices, Structure

NEUTRAL = {
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Said in every request: a server otherwise takes what the checkpoint's ``generation_config.json`` advises."""


def completion_body(request: Request) -> bytes:
    """The body that samples just as :class:`rollout.engine.Sampling` says. Slow for long prompt embeddings."""
    body = {
        **prompt_fields(request),
        **sampling_fields(request.sampling),
        "logprobs": 0,  # of the sampled token only
        "return_token_ids": True,
        **({} if request.structure is None else {"structured_outputs": structure_fields(request.structure)}),
    }
    return json.dumps(body).encode()


def prompt_fields(request: Request) -> dict[str, object]:
    """Token ids, or ``torch.save`` of the embeddings in base64."""
    if request.prompt_embeds is None:
        return {"prompt": list(request.prompt_ids or ())}
    buffer = io.BytesIO()
    torch.save(request.prompt_embeds.detach().cpu().clone(), buffer)  # a view would take all it is a view of along
    return {"prompt_embeds": base64.b64encode(buffer.getvalue()).decode("ascii")}


def sampling_fields(sampling: Sampling) -> dict[str, object]:
    """Temperature, limit and, unless greedy, the seed."""
    seed = {"seed": sampling.seed} if sampling.temperature > 0 else {}
    return {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens, **seed, **NEUTRAL}


def structure_fields(structure: Structure) -> dict[str, Any]:
    """The arguments of vLLM's ``StructuredOutputsParams``."""
    if isinstance(structure, Choices):
        return {"choice": list(structure.options)}
    return {"json": dict(structure.schema)}


def completion_of(answer: Mapping[str, Any], wall_s: float, retries: int) -> Completion:
    """The first choice of a completions answer.

    Cached tokens and times are there when the server was started with ``--enable-prompt-tokens-details`` and
    ``--enable-per-request-metrics``.
    """
    choice, metrics = answer["choices"][0], answer.get("metrics") or {}
    details = answer["usage"].get("prompt_tokens_details") or {}
    return Completion(
        text=choice["text"],
        token_ids=tuple(choice["token_ids"]),
        logprobs=tuple(choice["logprobs"]["token_logprobs"]),
        finish_reason=str(choice["finish_reason"]),
        cached_tokens=details.get("cached_tokens"),
        wall_s=wall_s,
        first_token_s=_seconds(metrics.get("time_to_first_token_ms")),
        queue_s=_seconds(metrics.get("queue_time_ms")),
        retries=retries,
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
