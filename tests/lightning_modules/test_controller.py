"""The controller's read-out, φ, and the admission built on both."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from data.task import Task
from lightning_modules.backbone import Backbone
from lightning_modules.controller import ControllerSettings
from lightning_modules.controller_admission import ControllerAdmission, decision_rng
from lightning_modules.phi import Phi, embedding_scale
from rollout.admission import Candidate
from tests.lightning_modules.controller_parts import adapted_backbone, new_controller, save_tiny_qwen3

TASK = Task("t", "What is the capital of Peru?", ("Lima",), "test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_qwen3(tmp_path_factory.mktemp("qwen3"))


@pytest.fixture(scope="module")
def backbone(folder: Path) -> Backbone:
    return adapted_backbone(folder)


def candidate(keys: tuple[str, ...] = (), output: str = "Lima.") -> Candidate:
    return Candidate(TASK.question, keys, 0, 0, "Look it up.", "Looked it up.", output)


def test_the_two_logits_are_those_of_the_vocabulary(backbone: Backbone) -> None:
    controller = new_controller(backbone)
    yes, no = (backbone.tokenizer.encode(word)[0] for word in ("YES", "NO"))
    states = torch.randn(4, 32)
    torch.testing.assert_close(controller.logits(backbone, states), backbone.logits(states)[:, [yes, no]])


def test_the_offset_moves_yes_alone(backbone: Backbone) -> None:
    controller = new_controller(backbone)
    states = torch.randn(2, 32)
    before = controller.logits(backbone, states)
    controller.offset.fill_(1.5)
    torch.testing.assert_close(controller.logits(backbone, states) - before, torch.tensor([[1.5, 0.0]] * 2))


def test_words_that_begin_alike_are_refused(backbone: Backbone) -> None:
    with pytest.raises(ValueError, match=r"'NO' and 'NO' begin with the same token"):
        new_controller(backbone, ControllerSettings(yes="NO"))


def test_an_initial_admission_that_is_no_chance_is_refused() -> None:
    with pytest.raises(ValueError, match=r"initial_admission is 1.0; give a chance between 0 and 1"):
        ControllerSettings(initial_admission=1.0)


def test_projections_keep_lengths(backbone: Backbone) -> None:
    controller = new_controller(backbone)
    vector = torch.randn(32)
    for projection in (controller.query, controller.memory, controller.step):
        assert float(projection(vector).norm()) == pytest.approx(float(vector.norm()), rel=1e-4)


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_phi_is_the_base_without_adapters(backbone: Backbone, folder: Path, pooling: str) -> None:
    bare = Phi(adapted_backbone(folder), pooling)  # type: ignore[arg-type]
    for weight in bare._backbone.adapter_parameters().values():
        weight.data.zero_()
    torch.testing.assert_close(Phi(backbone, pooling)(["Goethe wrote Faust."]), bare(["Goethe wrote Faust."]))  # type: ignore[arg-type]


def test_phi_refuses_to_embed_with_adapters_on(backbone: Backbone) -> None:
    phi = Phi(backbone)
    known = phi(["a"])
    with backbone.adapted():
        assert torch.equal(phi(["a"]), known)
        with pytest.raises(RuntimeError, match="the base without adapters"):
            phi(["b"])


def test_phi_poolings_by_hand(backbone: Backbone) -> None:
    ids = torch.tensor([backbone.tokenizer.encode("Faust?")])
    with torch.no_grad():
        states = backbone.hidden_states(backbone.embed(ids), torch.ones_like(ids), torch.arange(ids.shape[1])[None])[0]
    for pooling, state in (("last", states[0, -1]), ("mean", states[0].mean(dim=0))):
        expected = state / state.square().mean().sqrt() * embedding_scale(backbone)
        torch.testing.assert_close(Phi(backbone, pooling)(["Faust?"])[0], expected)  # type: ignore[arg-type]


def test_phi_does_not_depend_on_what_was_embedded_with_it(backbone: Backbone) -> None:
    texts = ["Paris.", "Who wrote Emma? Jane Austen.", ""]
    together = Phi(backbone)(texts)
    apart = torch.cat([Phi(backbone)([text]) for text in reversed(texts)]).flip(0)
    assert torch.equal(together, apart)


def test_phi_counts_what_it_cuts_and_embeds_a_text_once(backbone: Backbone) -> None:
    phi = Phi(backbone, max_tokens=4)
    text = "Answer questions about capitals and authors."
    assert torch.equal(*phi([text, text]))
    assert phi.truncated == 1
    assert torch.equal(phi([text]), Phi(backbone, max_tokens=4)([text + " And more."]))


def test_phi_shares_vectors_over_the_same_base(backbone: Backbone) -> None:
    first, second = Phi(backbone), Phi(backbone)
    known = first(["a"])
    second.share(first)
    assert torch.equal(second(["a"]), known)
    second(["b"])
    assert list(first._vectors) == ["a", "b"]


def test_phi_forgets_the_oldest(backbone: Backbone) -> None:
    phi = Phi(backbone, max_texts=2)
    phi(["a", "b", "c"])
    assert list(phi._vectors) == ["b", "c"]


def test_greedy_takes_the_larger_and_sampling_follows_the_chance(backbone: Backbone) -> None:
    controller, phi = new_controller(backbone), Phi(backbone)
    greedy = asyncio.run(
        ControllerAdmission(backbone, controller, phi, TASK, 0.0, random.Random(0)).decide(candidate())
    )
    assert greedy.probability is not None
    assert greedy.admit == (greedy.probability > 0.5)
    rng = random.Random(0)
    sampled = [
        asyncio.run(ControllerAdmission(backbone, controller, phi, TASK, 1.2, rng).decide(candidate()))
        for _ in range(300)
    ]
    odds = greedy.probability / (1 - greedy.probability)
    expected = odds ** (1 / 1.2) / (1 + odds ** (1 / 1.2))
    assert sampled[0].probability == pytest.approx(expected, abs=1e-4)
    assert sum(verdict.admit for verdict in sampled) / 300 == pytest.approx(expected, abs=0.1)


def test_a_decision_depends_on_keys_and_output(backbone: Backbone) -> None:
    controller, phi = new_controller(backbone), Phi(backbone)

    def chance(asked: Candidate) -> float:
        admission = ControllerAdmission(backbone, controller, phi, TASK, 0.0, random.Random(0))
        return float(asyncio.run(admission.decide(asked)).probability or 0)

    assert len({round(chance(each), 6) for each in (candidate(), candidate(("Paris.",)), candidate((), "Rome."))}) == 3


def test_the_time_of_a_decision_is_that_of_everything_it_embeds(backbone: Backbone) -> None:
    """The query's embedding too, in the first one: nothing that the controller does is left out of its share."""

    class Slow(Phi):
        def __call__(self, texts: Sequence[str]) -> torch.Tensor:
            time.sleep(0.02)
            return super().__call__(texts)

    admission = ControllerAdmission(backbone, new_controller(backbone), Slow(backbone), TASK, 0.0, random.Random(0))
    first, second = (asyncio.run(admission.decide(candidate(("a key",)))) for _ in range(2))
    assert first.wall_s >= 0.06  # query, step, keys
    assert second.wall_s >= 0.04  # step, keys


def test_the_stream_of_decisions_differs_by_epoch_and_member() -> None:
    draws = {decision_rng(0, epoch, TASK, member).random() for epoch in range(2) for member in range(3)}
    assert len(draws) == 6
    assert decision_rng(0, 1, TASK, 2).random() == decision_rng(0, 1, TASK, 2).random()


def test_only_the_first_layers_are_taken(folder: Path) -> None:
    full, cut = adapted_backbone(folder), adapted_backbone(folder, layers=1)
    assert len(cut.model.base_model.layers) == 1
    for name, weight in cut.model.base_model.layers[0].named_parameters():
        if "lora_" not in name:
            assert torch.equal(weight, full.model.base_model.layers[0].get_parameter(name)), name
