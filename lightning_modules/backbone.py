"""One frozen causal LM that serves as agent policy (adapters off) and as composer (adapters on)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.cache_utils import DynamicCache

from data.assets import resolve_model
from data.bounds import check_at_least


@dataclass(frozen=True)
class LoraSettings:
    """LoRA on the composer (paper, LatentMem Table 3)."""

    r: int = 16
    alpha: int = 32
    dropout: float = 0.1
    target_modules: tuple[str, ...] = ("q_proj", "v_proj")

    def __post_init__(self) -> None:
        check_at_least(1, "lora", r=self.r, alpha=self.alpha)
        if not 0 <= self.dropout < 1 or not self.target_modules:
            raise ValueError(
                f"lora.dropout is {self.dropout} and lora.target_modules {list(self.target_modules)}; "
                "give a dropout from 0 to below 1 and at least one module"
            )


class Backbone(nn.Module):
    """Frozen base weights with LoRA layers that are off unless :meth:`adapted` is entered.

    Args:
        name: asset name, local path or hub id of any Hugging Face causal LM with a chat template.
        dtype: of the frozen weights; the adapters are kept in fp32.
        lora: adapter settings.
        gradient_checkpointing: recompute the composer's activations in its backward pass (paper: on).
        layers: only the first so many layers of the checkpoint; all of them by default.
    """

    def __init__(
        self,
        name: str,
        dtype: torch.dtype,
        lora: LoraSettings,
        gradient_checkpointing: bool = False,
        layers: int | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        path = resolve_model(name)
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(path)
        depth = {} if layers is None else {"num_hidden_layers": layers}
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, **depth)
        model.requires_grad_(False)
        config = LoraConfig(
            r=lora.r,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=list(lora.target_modules),
            bias="none",
            task_type="CAUSAL_LM",
        )
        self.model: PreTrainedModel = inject_adapter_in_model(config, model)
        for weight in self.adapter_parameters().values():
            weight.data = weight.data.float()  # peft gives them the base's dtype, in which small updates are lost
        if gradient_checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        self._lora_layers = [layer for layer in self.model.modules() if isinstance(layer, BaseTunerLayer)]
        self._use_adapters(False)
        self.model.eval()

    @property
    def hidden_size(self) -> int:
        """D of the paper."""
        return int(self.model.get_input_embeddings().weight.shape[1])

    def adapter_parameters(self) -> dict[str, nn.Parameter]:
        """The LoRA weights by name."""
        return {name: weight for name, weight in self.named_parameters() if "lora_" in name}

    def train(self, mode: bool = True) -> Backbone:
        """Remembers the mode for the composer; the agents' forward passes are always in evaluation mode."""
        self.training = mode
        return self

    @contextmanager
    def adapted(self, inference: bool = False) -> Iterator[None]:
        """Adapters on, and ``adapting`` says so.

        The composer's backward belongs inside too: checkpointing runs its forward again there.

        Args:
            inference: without dropout, whatever mode is remembered.
        """
        training = self.training and not inference
        self._use_adapters(True)
        if training:  # going through all modules takes as long as a small forward pass
            self.model.train()
        try:
            yield
        finally:
            if training:
                self.model.eval()
            self._use_adapters(False)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Token ids ``[...]`` to input embeddings ``[..., hidden]``."""
        table = self.model.get_input_embeddings()
        return table(ids.to(table.weight.device))

    def hidden_states(
        self,
        embeds: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
        cache: DynamicCache | None = None,
        use_cache: bool = False,
    ) -> tuple[torch.Tensor, DynamicCache | None]:
        """Last-layer states ``[batch, seq, hidden]`` of ``embeds``, and the cache if one is used.

        Args:
            embeds: ``[batch, seq, hidden]``.
            mask: ``[batch, cached + seq]``, 1 for real positions; or additive, ``[batch, 1, seq, cached + seq]``.
            positions: ``[batch, seq]``.
            cache: keys and values of ``cached`` earlier positions; it is extended in place.
            use_cache: return a new cache when none is given.
        """
        out = self.model.base_model(
            inputs_embeds=embeds,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=use_cache or cache is not None,
        )
        return out.last_hidden_state, out.past_key_values

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """``[..., hidden]`` to ``[..., vocabulary]`` in fp32; give it the positions that are scored, no others."""
        return self.model.get_output_embeddings()(states).float()

    def _use_adapters(self, enabled: bool) -> None:
        """peft's own switch also goes through every weight's ``requires_grad``, which costs a tenth of a decision."""
        self.adapting = enabled
        for layer in self._lora_layers:
            layer._disable_adapters = not enabled
