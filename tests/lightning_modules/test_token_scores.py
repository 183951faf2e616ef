"""Scoring against a frozen prompt's cache equals scoring full sequences, in values and in gradients."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eval.bench.straightforward import full_sequence_logprobs
from lightning_modules.backbone import Backbone
from lightning_modules.latent_gradient import LatentGradient, latent_gradient
from lightning_modules.token_scores import AgentCall, TokenScores, common_length, micro_batches, score_calls
from tests.lightning_modules.parts import relative_difference, tiny_backbone


@pytest.fixture(scope="module")
def backbone(tiny_model_dir: Path) -> Backbone:
    return tiny_backbone(tiny_model_dir)


def some_latents(backbone: Backbone, rows: int = 3) -> torch.Tensor:
    return torch.randn(rows, 4, backbone.hidden_size, generator=torch.Generator().manual_seed(5)) * 0.3


def some_calls(
    count: int, suffix: bool = True, shared: bool = False, seed: int = 0, head: tuple[int, ...] = ()
) -> list[AgentCall]:
    """Ragged calls, all prefixes beginning with ``head``; with ``shared`` every three of them have one prefix."""
    rng = random.Random(seed)

    def ids(low: int, high: int) -> tuple[int, ...]:
        return tuple(rng.randrange(3, 350) for _ in range(rng.randint(low, high)))

    prefixes = [head + ids(1, 40) for _ in range(count)]
    return [
        AgentCall(prefixes[place // 3 if shared else place], ids(1, 6) if suffix else (), ids(1, 9), place % 3)
        for place in range(count)
    ]


@pytest.mark.parametrize("suffix", [True, False], ids=["before_generation_prompt", "after_generation_prompt"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared-prefixes", "distinct-prefixes"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_equal_to_full_sequences(backbone: Backbone, suffix: bool, shared: bool, temperature: float) -> None:
    calls = some_calls(7, suffix, shared)
    ours, plain = some_latents(backbone).requires_grad_(), some_latents(backbone).requires_grad_()

    scores = score_calls(backbone, calls, ours, temperature)
    rows = plain[[call.latent_row for call in calls]]
    expected = torch.cat(
        [
            full_sequence_logprobs(backbone, [call], row[None], temperature)[0]
            for call, row in zip(calls, rows, strict=True)
        ]
    )
    torch.testing.assert_close(scores.logprobs, expected, rtol=1e-5, atol=1e-5)

    weights = torch.linspace(-1, 1, len(expected))
    (scores.logprobs * weights).sum().backward()
    (expected * weights).sum().backward()
    assert ours.grad is not None
    assert plain.grad is not None
    assert relative_difference(ours.grad, plain.grad) < 1e-5


@pytest.mark.parametrize("bare", [False, True], ids=["rests", "one-rest-is-empty"])
def test_a_shared_beginning_of_distinct_prefixes_is_exact(backbone: Backbone, bare: bool) -> None:
    head = tuple(range(40, 60))
    calls = some_calls(5, head=head)
    if bare:
        calls[2] = replace(calls[2], prefix_ids=head)
    latents = some_latents(backbone)
    scores = score_calls(backbone, calls, latents, 1.0)
    rows = latents[[call.latent_row for call in calls]]
    expected = torch.cat(full_sequence_logprobs(backbone, calls, rows, 1.0))
    torch.testing.assert_close(scores.logprobs, expected, rtol=1e-5, atol=1e-5)


def test_what_prefixes_share_is_computed_once(backbone: Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    original = backbone.hidden_states

    def spy(embeds: torch.Tensor, *rest: Any, **named: Any) -> Any:
        seen.append(tuple(embeds.shape[:2]))
        return original(embeds, *rest, **named)

    monkeypatch.setattr(backbone, "hidden_states", spy)
    head = tuple(range(40, 60))
    calls = [AgentCall((*head, 70 + place % 2), (5,), (8, 9), 0) for place in range(6)]
    score_calls(backbone, calls, some_latents(backbone), 1.0)
    # The 20 shared words once, the last word of two prefixes, then 4 latents, 1 word and 1 sampled token of each call.
    assert seen == [(1, 20), (2, 1), (6, 6)]


@given(st.lists(st.lists(st.integers(0, 2), max_size=6).map(tuple), min_size=1, max_size=5))
def test_common_length(rows: list[tuple[int, ...]]) -> None:
    shared = common_length(rows)
    assert len({row[:shared] for row in rows}) == 1
    assert any(len(row) == shared for row in rows) or len({row[: shared + 1] for row in rows}) > 1


def test_a_response_of_one_token_without_a_suffix_is_predicted_by_the_last_latent(backbone: Backbone) -> None:
    call = AgentCall((5, 6, 7), (), (8,), 0)
    latents = some_latents(backbone, 1)
    words = backbone.embed(torch.tensor(call.prefix_ids))
    out = backbone.model(inputs_embeds=torch.cat([words, latents[0]])[None]).logits[0, -1]
    expected = torch.log_softmax(out, dim=-1)[8]
    torch.testing.assert_close(score_calls(backbone, [call], latents, 1.0).logprobs[0], expected, rtol=1e-5, atol=1e-5)


def test_entropy_is_that_of_the_tempered_distribution(backbone: Backbone) -> None:
    scores = score_calls(backbone, [AgentCall((5, 6), (7,), (8, 9), 0)], some_latents(backbone, 1), temperature=1e6)
    uniform = torch.log(torch.tensor(float(backbone.model.config.vocab_size)))
    torch.testing.assert_close(scores.entropy, uniform.expand(2), rtol=1e-4, atol=1e-4)
    assert not scores.entropy.requires_grad


def test_the_frozen_model_gets_no_gradient(backbone: Backbone) -> None:
    latents = some_latents(backbone).requires_grad_()
    score_calls(backbone, some_calls(3), latents, 1.0).logprobs.sum().backward()
    assert all(weight.grad is None for weight in backbone.parameters())


def gradient_of(backbone: Backbone, calls: list[AgentCall], micro_batch: int) -> LatentGradient:
    return latent_gradient(
        backbone,
        calls,
        some_latents(backbone),
        lambda _, logprobs: (logprobs * logprobs.detach()).sum(),
        1.0,
        micro_batch,
    )


@pytest.mark.parametrize("micro_batch", [2, 3, 4, 8])
def test_gradient_does_not_depend_on_the_micro_batch(backbone: Backbone, micro_batch: int) -> None:
    calls = some_calls(8, shared=True)
    one, other = gradient_of(backbone, calls, 1), gradient_of(backbone, calls, micro_batch)
    assert relative_difference(one.gradient, other.gradient) < 1e-5
    assert one.loss == pytest.approx(other.loss, rel=1e-5)
    for left, right in zip(one.logprobs + one.entropy, other.logprobs + other.entropy, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-5)


def test_gradient_does_not_depend_on_the_order(backbone: Backbone) -> None:
    calls = some_calls(8)
    order = [3, 7, 0, 2, 6, 1, 5, 4]
    one, other = gradient_of(backbone, calls, 4), gradient_of(backbone, [calls[row] for row in order], 3)
    assert relative_difference(one.gradient, other.gradient) < 1e-5
    for place, row in enumerate(order):
        torch.testing.assert_close(one.logprobs[row], other.logprobs[place], rtol=1e-5, atol=1e-5)


def test_the_loss_is_told_which_call_it_scores(backbone: Backbone) -> None:
    calls = some_calls(6)
    seen: dict[int, int] = {}

    def loss(row: int, logprobs: torch.Tensor) -> torch.Tensor:
        seen[row] = len(logprobs)
        return logprobs.sum() * (row == 4)

    result = latent_gradient(backbone, calls, some_latents(backbone), loss, 1.0, 2)
    assert seen == {row: len(call.output_ids) for row, call in enumerate(calls)}
    touched = result.gradient.abs().sum(dim=(1, 2)) > 0
    assert touched.tolist() == [row == calls[4].latent_row for row in range(3)]


def test_equal_calls_are_scored_once_and_count_as_often_as_they_are(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = some_calls(4)
    once = gradient_of(backbone, calls, 4)
    scored: list[int] = []

    def counting(backbone: Backbone, batch: Sequence[AgentCall], *rest: Any) -> TokenScores:
        scored.append(len(batch))
        return score_calls(backbone, batch, *rest)

    monkeypatch.setattr("lightning_modules.latent_gradient.score_calls", counting)
    thrice = gradient_of(backbone, calls * 3, 4)
    assert scored == [4]
    assert relative_difference(3 * once.gradient, thrice.gradient) < 1e-5
    assert thrice.loss == pytest.approx(3 * once.loss, rel=1e-5)
    assert len(thrice.logprobs) == len(thrice.entropy) == 12


def test_micro_batches_keep_shared_prefixes_together_and_every_call_once() -> None:
    calls = some_calls(9, shared=True)
    mixed = [calls[row] for row in (0, 3, 6, 1, 4, 7, 2, 5, 8)]
    batches = list(micro_batches(mixed, 3))
    assert sorted(row for rows in batches for row in rows) == list(range(9))
    assert all(len({mixed[row].prefix_ids for row in rows}) == 1 for rows in batches)
