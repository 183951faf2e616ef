from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from rollout.engine import Sampling
from rollout.seeded_sampler import SeededSampler

IDS = torch.zeros(1, 0, dtype=torch.long)
LOGITS = torch.tensor([2.0, 0.5, -1.0, 1.0, 0.0, -3.0])


def draw(logits: torch.Tensor, *samplings: Sampling) -> tuple[list[int], torch.Tensor]:
    """The token each row takes at one step, and its log-probability ``[rows, 1]``."""
    sampler = SeededSampler(samplings)
    scores = sampler(IDS, logits.expand(len(samplings), -1))
    return scores.argmax(-1).tolist(), sampler.logprobs()


def test_tokens_come_as_often_as_softmax_says() -> None:
    """Pearson's χ² over 5,000 draws; with these fixed seeds the outcome never changes."""
    for temperature in (1.0, 0.6, 2.5):
        drawn, _ = draw(LOGITS, *(Sampling(temperature, seed=seed) for seed in range(5_000)))
        counts = torch.bincount(torch.tensor(drawn), minlength=len(LOGITS))
        expected = 5_000 * torch.softmax(LOGITS.double() / temperature, dim=-1)
        assert chisquare(counts.numpy(), expected.numpy()).pvalue > 0.01


def test_consecutive_steps_of_one_seed_are_fresh_draws() -> None:
    sampler = SeededSampler([Sampling(seed=11)])
    drawn = [int(sampler(IDS, LOGITS[None]).argmax(-1)) for _ in range(4_000)]
    pairs = torch.bincount(torch.tensor(drawn[:-1:2]) * 6 + torch.tensor(drawn[1::2]), minlength=36)
    p = torch.softmax(LOGITS.double(), dim=-1)
    assert chisquare(pairs.numpy(), (2_000 * torch.outer(p, p)).flatten().numpy()).pvalue > 0.01


@given(
    logits=st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=8),
    temperature=st.sampled_from([0.0, 0.01, 0.5, 1.0, 3.0]),
    seed=st.integers(0, 2**63 - 1),
)
@settings(deadline=None)
def test_log_probabilities_are_those_of_the_scaled_softmax(logits: list[float], temperature: float, seed: int) -> None:
    values = torch.tensor(logits)
    (token,), logprobs = draw(values, Sampling(temperature, seed=seed))
    expected = torch.log_softmax(values / (temperature or 1.0), dim=-1)
    assert torch.allclose(logprobs, expected[token].view(1, 1), atol=1e-6)
    if temperature == 0:
        assert values[token] == values.max()


def test_a_row_draws_the_same_whatever_stands_beside_it() -> None:
    mine, others = Sampling(seed=5), [Sampling(seed=seed) for seed in range(50)]
    alone, _ = draw(LOGITS, mine)
    beside, _ = draw(LOGITS, *others[:20], mine, Sampling(0.0), *others[20:])
    assert beside[20] == alone[0]
    assert len(set(beside)) > 1


def test_greedy_and_sampled_rows_keep_their_own_temperature() -> None:
    drawn, logprobs = draw(LOGITS, Sampling(0.0), Sampling(0.5, seed=1))
    assert drawn[0] == 0
    assert torch.allclose(logprobs[0, 0], torch.log_softmax(LOGITS, -1)[0])
    assert torch.allclose(logprobs[1, 0], torch.log_softmax(LOGITS * 2, -1)[drawn[1]])


def test_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    draw(LOGITS, Sampling(seed=1))
    assert torch.equal(torch.get_rng_state(), before)


def test_half_precision_logits_are_scored_in_fp32() -> None:
    _, logprobs = draw(LOGITS.bfloat16(), Sampling(0.0))
    assert logprobs.dtype == torch.float32
