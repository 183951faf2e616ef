"""A scripted stand-in for ``vllm serve``: real HTTP, the answers that vLLM 0.32 gives, no model behind it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.rollout.loopback_server import HANG_UP, Asked, Reply

LOGITS = {"token_id:7": 3.0, "token_id:8": 1.0, "token_id:9": 0.0}


@dataclass
class ScriptedReplica:
    """``down`` hangs up on everybody; ``fail_with`` answers completions only; ``delay_s`` is of completions."""

    name: str = "a"
    model: str = "tiny"
    hidden_size: int = 32
    embeds: bool = True
    processed: bool = True
    max_model_len: int = 64
    delay_s: float = 0.0
    down: bool = False
    fail_with: Reply | None = None
    finish_reason: str = "stop"
    answered: list[Any] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Reply:
        if self.down:
            return HANG_UP
        if asked.path == "/health":
            return Reply()
        if asked.path == "/v1/models":
            card = {"id": "served", "root": self.model, "max_model_len": self.max_model_len}
            return Reply(body={"object": "list", "data": [card]})
        if "prompt_embeds" in asked.body and not self.embeds:
            return Reply(400, {"error": {"message": "You must set `--enable-prompt-embeds` to input `prompt_embeds`."}})
        probe = asked.body["logprobs"] == 5
        if self.fail_with is not None and not probe:
            return self.fail_with
        return self.probe(asked.body) if probe else self.complete(asked.body)

    def probe(self, body: Mapping[str, Any]) -> Reply:
        assert read_embeds(body["prompt_embeds"]).shape == (1, self.hidden_size)
        scale = body["temperature"] if self.processed else 1.0
        scores = torch.tensor(list(LOGITS.values())) / scale
        top = dict(zip(LOGITS, torch.log_softmax(scores, 0).tolist(), strict=True))
        return Reply(body={"choices": [{"logprobs": {"top_logprobs": [top]}}]})

    def complete(self, body: Mapping[str, Any]) -> Reply:
        self.answered.append(body)
        ids = body.get("prompt") or [read_embeds(body["prompt_embeds"]).shape[0]]
        answer = {
            "choices": [
                {
                    "text": f"{self.name}{sum(ids)}",
                    "token_ids": [sum(ids), 2],
                    "logprobs": {"token_logprobs": [-0.5, -0.25]},
                    "finish_reason": self.finish_reason,
                }
            ],
            "usage": {"prompt_tokens": len(ids), "prompt_tokens_details": {"cached_tokens": 16}},
            "metrics": {"time_to_first_token_ms": 250.0, "queue_time_ms": 125.0},
        }
        return Reply(body=answer, delay_s=self.delay_s)


def read_embeds(text: str) -> torch.Tensor:
    return torch.load(io.BytesIO(base64.b64decode(text, validate=True)), weights_only=True)
