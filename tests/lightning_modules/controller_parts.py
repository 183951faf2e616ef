"""A tiny random Qwen3 as controller, with adapters that are not zero, and embedded episodes to decide on."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from lightning_modules.backbone import Backbone
from lightning_modules.controller import Controller, ControllerSettings
from lightning_modules.lts import LORA
from lightning_modules.packed_decisions import EmbeddedEpisode
from tests.tiny_model import tiny_tokenizer


def save_tiny_qwen3(folder: Path) -> Path:
    """Three layers of 32 dimensions and the tiny tokenizer."""
    tokenizer = tiny_tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=512,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def adapted_backbone(folder: Path, layers: int | None = None) -> Backbone:
    """fp32, with adapters as they are after some training."""
    torch.manual_seed(1)
    backbone = Backbone(str(folder), torch.float32, LORA, layers=layers)
    with torch.no_grad():
        for name, weight in sorted(backbone.adapter_parameters().items()):
            if "lora_B" in name:
                weight.normal_(std=0.3)
    return backbone


def new_controller(backbone: Backbone, settings: ControllerSettings = ControllerSettings()) -> Controller:
    torch.manual_seed(2)
    return Controller(backbone, settings)


def random_episode(keys: int, seen: tuple[int, ...], seed: int = 0, hidden: int = 32) -> EmbeddedEpisode:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, hidden, generator=generator)

    return EmbeddedEpisode(draw(1)[0], draw(keys), draw(len(seen), 3), seen)
