"""The composer: what it reads, what it gives, and where its gradient goes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from lightning_modules.backbone import Backbone, LoraSettings
from lightning_modules.composer import Composer, ComposerSettings, ComposerText, composer_text
from tests.lightning_modules.parts import tiny_backbone
from tests.memory.parts import a_trajectory

TEXTS = [
    composer_text("You answer.", []),
    composer_text("You check what a colleague says, word for word.", [a_trajectory("Who wrote Faust?", "Goethe")]),
    composer_text("You answer.", [a_trajectory("What is the capital of Italy?", "Rome")], use_role=False),
]


@pytest.fixture
def backbone(tiny_model_dir: Path) -> Backbone:
    return tiny_backbone(tiny_model_dir)


def composer_of(backbone: Backbone, **settings: object) -> Composer:
    torch.manual_seed(2)
    return Composer(backbone, ComposerSettings(latents=3, **settings))  # type: ignore[arg-type]


def latents_of(backbone: Backbone, composer: Composer, texts: list[ComposerText]) -> torch.Tensor:
    with backbone.adapted():
        latents: torch.Tensor = composer(backbone, texts)
    return latents


def token_ids(backbone: Backbone, text: str) -> list[int]:
    ids: list[int] = backbone.tokenizer.encode(text, add_special_tokens=False)
    return ids


def test_shape_is_texts_by_latents_by_width(backbone: Backbone) -> None:
    assert latents_of(backbone, composer_of(backbone), TEXTS).shape == (3, 3, backbone.hidden_size)


@pytest.mark.parametrize("micro_batch", [1, 2, 8])
def test_latents_do_not_depend_on_the_company(backbone: Backbone, micro_batch: int) -> None:
    composer = composer_of(backbone, micro_batch=micro_batch)
    together = latents_of(backbone, composer, TEXTS)
    for row, text in enumerate(TEXTS):
        torch.testing.assert_close(together[row], latents_of(backbone, composer, [text])[0], rtol=1e-5, atol=1e-5)


def test_roles_that_share_experience_read_it_as_if_alone(backbone: Backbone) -> None:
    past = [a_trajectory("Who wrote Faust?", "Goethe")]
    roles = [composer_text(profile, past) for profile in ("You answer.", "You check what others say.", "You end.")]
    composer = composer_of(backbone)
    together = latents_of(backbone, composer, [roles[0], TEXTS[2], roles[1], roles[2]])
    for row, text in ((0, roles[0]), (1, TEXTS[2]), (2, roles[1]), (3, roles[2])):
        torch.testing.assert_close(together[row], latents_of(backbone, composer, [text])[0], rtol=1e-5, atol=1e-5)


def test_latents_are_the_states_of_a_plain_causal_pass(backbone: Backbone) -> None:
    composer, text = composer_of(backbone), TEXTS[1]
    ids = [*token_ids(backbone, text.experience), *token_ids(backbone, text.role)]
    embeds = torch.cat([backbone.embed(torch.tensor(ids)), composer.queries])[None]
    with backbone.adapted(), torch.no_grad():
        states = backbone.model.base_model(inputs_embeds=embeds).last_hidden_state[0, -3:]
        expected = composer.offset + composer.scale * composer.norm(composer.projection(states))
    torch.testing.assert_close(latents_of(backbone, composer, [text])[0], expected, rtol=1e-5, atol=1e-5)


def test_long_experience_keeps_its_head_and_the_profile(backbone: Backbone) -> None:
    role, experience = TEXTS[1].role, token_ids(backbone, TEXTS[1].experience)
    whole = latents_of(backbone, composer_of(backbone), [TEXTS[1]])
    assert torch.equal(whole, latents_of(backbone, composer_of(backbone, max_length=len(experience)), [TEXTS[1]]))
    cut = latents_of(backbone, composer_of(backbone, max_length=5), [TEXTS[1]])
    head = backbone.tokenizer.decode(experience[:5])
    assert token_ids(backbone, head) == experience[:5]
    assert torch.equal(cut, latents_of(backbone, composer_of(backbone), [ComposerText(role, head)]))


def test_untrained_latents_stand_close_to_zero(tiny_model_dir: Path) -> None:
    fresh = Backbone(str(tiny_model_dir), torch.float32, LoraSettings(r=4, alpha=8), False)
    latents = latents_of(fresh, composer_of(fresh, latent_std=0.01), TEXTS)
    distance = latents.std(dim=-1, correction=0)
    torch.testing.assert_close(distance, torch.full_like(distance, 0.01), rtol=1e-3, atol=0)


def test_text_has_profile_and_experience() -> None:
    past = [a_trajectory("What is the capital of Italy?", "Rome"), a_trajectory("Who wrote Faust?", "Goethe")]
    text = composer_text("You answer.", past)
    assert text.role == "\nRole: You answer.\n"
    assert text.experience == (
        "Question: What is the capital of Italy?\nassistant: Rome\n\nQuestion: Who wrote Faust?\nassistant: Goethe"
    )
    assert composer_text("You answer.", []).experience != ""


def test_without_role_every_role_reads_the_same(backbone: Backbone) -> None:
    past = [a_trajectory("Who?")]
    texts = [composer_text(profile, past, use_role=False) for profile in ("You answer.", "You check.")]
    first, second = latents_of(backbone, composer_of(backbone), texts)
    torch.testing.assert_close(first, second)


def test_role_changes_the_latents(backbone: Backbone) -> None:
    texts = [composer_text(profile, [a_trajectory("Who?")]) for profile in ("You answer.", "You check.")]
    first, second = latents_of(backbone, composer_of(backbone), texts)
    assert not torch.allclose(first, second, atol=1e-3)


def test_gradient_reaches_everything_that_learns_and_nothing_else(backbone: Backbone) -> None:
    composer = composer_of(backbone)
    latents = latents_of(backbone, composer, TEXTS)
    with backbone.adapted():
        (latents**3).sum().backward()
    learning = {**dict(composer.named_parameters()), **backbone.adapter_parameters()}
    assert {name.split(".")[0] for name in composer.state_dict()} == {"queries", "projection", "scale", "offset"}
    for name, weight in learning.items():
        assert weight.grad is not None, name
        assert float(weight.grad.abs().max()) > 0, name
    frozen = [weight for name, weight in backbone.named_parameters() if "lora_" not in name]
    assert frozen
    assert all(weight.grad is None and not weight.requires_grad for weight in frozen)


def test_agents_are_the_plain_model_bit_for_bit_after_composing(backbone: Backbone, tiny_model_dir: Path) -> None:
    plain = AutoModelForCausalLM.from_pretrained(tiny_model_dir).eval()
    latents_of(backbone, composer_of(backbone), TEXTS)
    ids = torch.tensor([[5, 9, 300, 17]])
    with torch.no_grad():
        assert torch.equal(backbone.model(ids).logits, plain(ids).logits)
        with backbone.adapted():
            assert not torch.equal(backbone.model(ids).logits, plain(ids).logits)
        assert torch.equal(backbone.model(ids).logits, plain(ids).logits)


def test_adapters_are_off_after_an_error_too(backbone: Backbone) -> None:
    ids = torch.tensor([[5, 9, 300, 17]])
    with torch.no_grad():
        before = backbone.model(ids).logits
        with pytest.raises(LookupError), backbone.adapted():
            raise LookupError
        assert torch.equal(backbone.model(ids).logits, before)


def test_dropout_acts_in_the_composer_alone_and_only_in_training(tiny_model_dir: Path) -> None:
    backbone = tiny_backbone(tiny_model_dir, dropout=0.5)
    composer = composer_of(backbone)
    assert not torch.equal(latents_of(backbone, composer, TEXTS), latents_of(backbone, composer, TEXTS))
    assert not any(part.training for part in backbone.model.modules())
    backbone.eval()
    assert torch.equal(latents_of(backbone, composer, TEXTS), latents_of(backbone, composer, TEXTS))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradient_checkpointing_changes_no_gradient(tiny_model_dir: Path, dropout: float) -> None:
    def gradients(checkpointing: bool) -> dict[str, torch.Tensor]:
        backbone = tiny_backbone(tiny_model_dir, dropout, checkpointing)
        composer = composer_of(backbone)
        torch.manual_seed(7)
        latents = latents_of(backbone, composer, TEXTS)
        with backbone.adapted():
            (latents**3).sum().backward()
        weights = {**dict(composer.named_parameters()), **backbone.adapter_parameters()}
        return {name: weight.grad for name, weight in weights.items() if weight.grad is not None}

    plain, saved = gradients(False), gradients(True)
    assert plain.keys() == saved.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(saved[name], gradient, rtol=1e-5, atol=1e-6)
