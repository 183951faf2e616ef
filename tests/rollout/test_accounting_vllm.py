"""Sums over a run's calls, against the metrics that vLLM keeps itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rollout.event_loop import EventLoopThread
from rollout.mas.macnet import MacNet
from rollout.runner import EpisodeRunner, RolloutSettings
from rollout.vllm_engine import VLLMEngine
from tests.rollout.parts import PHASE, TASKS, Facts, FixedMemory


def vllms_own(*names: str) -> dict[str, int]:
    from vllm.v1.metrics.reader import get_metrics_snapshot

    found = dict.fromkeys(names, 0)
    for metric in get_metrics_snapshot():
        name = metric.name.removeprefix("vllm:")
        if name in found:
            found[name] += int(metric.value)
    return found


@pytest.mark.slow
def test_sums_equal_vllms_own_metrics(vllm_engine: VLLMEngine, loop: EventLoopThread, smollm_path: str) -> None:
    tokenizer: Any = AutoTokenizer.from_pretrained(smollm_path)
    table = AutoModelForCausalLM.from_pretrained(smollm_path, dtype=torch.float32).get_input_embeddings()
    settings = RolloutSettings(max_tokens=8)
    runner = EpisodeRunner(vllm_engine, MacNet(), tokenizer, table, Facts(), settings, loop=loop)
    names = ("prompt_tokens", "generation_tokens", "request_success", "prefix_cache_hits")
    before = vllms_own(*names)
    latents = table(torch.tensor([5, 6])).detach()
    made = runner.run(TASKS, 2, PHASE, None) + runner.run(TASKS[:1], 1, PHASE, FixedMemory(latents=latents))
    after = vllms_own(*names)
    costs = [step.cost for trajectory in made for step in trajectory.steps]
    assert {name: after[name] - before[name] for name in names} == {
        "prompt_tokens": sum(cost.prompt_tokens + cost.latent_tokens for cost in costs),
        "generation_tokens": sum(cost.completion_tokens for cost in costs),
        "request_success": len(costs),
        "prefix_cache_hits": sum(cost.cached_tokens or 0 for cost in costs),
    }
    assert all(cost.first_token_s is not None and cost.queue_s is not None for cost in costs)
