"""One forward for all decisions equals one forward each; so do the decisions of a growing cache."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_modules.backbone import Backbone
from lightning_modules.controller import Controller, DecisionCache
from lightning_modules.packed_decisions import block_mask, position_ids, score_packed, score_separately
from tests.lightning_modules.controller_parts import (
    adapted_backbone,
    new_controller,
    random_episode,
    save_tiny_qwen3,
)

TOLERANCE = 1e-3
"""Of YES and NO logits in fp32."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Backbone, Controller]:
    backbone = adapted_backbone(save_tiny_qwen3(tmp_path_factory.mktemp("qwen3")))
    return backbone, new_controller(backbone)


def test_mask_by_hand() -> None:
    # Query, two keys; decision 0 saw one key, decision 1 both; one place of padding.
    got = block_mask(2, (1, 2), 10)
    expected = [
        "1.........",
        "11........",
        "111.......",
        "11.1......",
        "11.11.....",
        "11.111....",
        "111...1...",
        "111...11..",
        "111...111.",
        ".........1",
    ]
    assert ["".join("1" if each else "." for each in row) for row in got.tolist()] == expected


def test_positions_by_hand() -> None:
    assert position_ids(2, (1, 2), 10).tolist() == [0, 1, 2, 2, 3, 4, 3, 4, 5, 0]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 6), st.data())
def test_packed_equals_separate(parts: tuple[Backbone, Controller], keys: int, data: st.DataObject) -> None:
    backbone, controller = parts
    seen = tuple(data.draw(st.lists(st.integers(0, keys), min_size=1, max_size=5)))
    episode = random_episode(keys, seen, seed=keys)
    with torch.no_grad(), backbone.adapted():
        packed = score_packed(backbone, controller, [episode])
        separate = score_separately(backbone, controller, episode)
    torch.testing.assert_close(packed, separate, atol=TOLERANCE, rtol=0)


def test_episodes_of_different_length_do_not_touch_each_other(parts: tuple[Backbone, Controller]) -> None:
    backbone, controller = parts
    episodes = [random_episode(4, (0, 2, 4), 1), random_episode(0, (0,), 2), random_episode(7, (3, 7, 7, 1), 3)]
    with torch.no_grad(), backbone.adapted():
        together = score_packed(backbone, controller, episodes)
        alone = torch.cat([score_packed(backbone, controller, [episode]) for episode in episodes])
    torch.testing.assert_close(together, alone, atol=TOLERANCE, rtol=0)


def test_packed_and_separate_have_the_same_gradient(parts: tuple[Backbone, Controller]) -> None:
    backbone, controller = parts
    episode = random_episode(3, (0, 1, 3), 5)
    weights = [*controller.parameters(), *backbone.adapter_parameters().values()]
    with backbone.adapted():
        packed = score_packed(backbone, controller, [episode])
        separate = score_separately(backbone, controller, episode)
        grads = [torch.autograd.grad(scores.diff(dim=-1).sum(), weights) for scores in (packed, separate)]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    assert all(float(grad.norm()) > 0 for grad in grads[0])


def test_a_decision_sees_its_own_keys_only(parts: tuple[Backbone, Controller]) -> None:
    backbone, controller = parts
    episode = random_episode(2, (1, 2), 4)
    changed = random_episode(2, (1, 2), 4)
    changed.keys[1] += 1.0  # the key that the first decision did not see
    with torch.no_grad(), backbone.adapted():
        before, after = (score_packed(backbone, controller, [each]) for each in (episode, changed))
    torch.testing.assert_close(before[0], after[0])
    assert not torch.allclose(before[1], after[1], atol=1e-3)


def test_cached_decisions_equal_separate_ones(parts: tuple[Backbone, Controller]) -> None:
    backbone, controller = parts
    episode = random_episode(6, (0, 0, 1, 4, 4, 6), 6)
    cache = DecisionCache(backbone, controller, episode.query)
    found = [cache.logits(episode.keys[:seen], step) for seen, step in zip(episode.seen, episode.steps, strict=True)]
    with torch.no_grad(), backbone.adapted():
        separate = score_separately(backbone, controller, episode)
    torch.testing.assert_close(torch.stack(found), separate, atol=TOLERANCE, rtol=0)


def test_the_cache_holds_the_prefix_and_nothing_of_the_steps(parts: tuple[Backbone, Controller]) -> None:
    backbone, controller = parts
    episode = random_episode(5, (5,), 7)
    cache = DecisionCache(backbone, controller, episode.query)
    for seen in (0, 2, 2, 5):
        cache.logits(episode.keys[:seen], episode.steps[0])
        assert cache.cached == 1 + seen
