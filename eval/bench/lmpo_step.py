"""The LMPO update against a straightforward one: the same loss and gradients, several times faster.

One query, G members, two agents as in AutoGen: the assistant's prompt is the same for all members, the user proxy's
differs from the member's first reply on, which stands near its end.

    ours             composer once a role, what prompts share once and without gradient, gradient through the rest
    straightforward  ``eval/bench/straightforward.py``: composer and full sequence with gradient, for every call
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import torch

from eval.bench.peak_memory import measure_peak
from eval.bench.result import print_result
from eval.bench.straightforward import straightforward_update
from eval.bench.timing import Ratios, compare
from lightning_modules.backbone import Backbone, LoraSettings
from lightning_modules.composer import Composer, ComposerSettings, ComposerText
from lightning_modules.latent_gradient import CallLoss, latent_gradient
from lightning_modules.lmpo import clipped_surrogate, group_advantages, token_weights
from lightning_modules.token_scores import AgentCall, micro_batches, score_calls

ROLES = ("You answer quiz questions briefly.", "You give the final answer.")
CLIP = 0.2
TEMPERATURE = 1.0


@dataclass(frozen=True)
class Workload:
    """What one update works on.

    Attributes:
        model: asset name, local path or hub id.
        members: G.
        prompt_tokens: of every agent call, the latents not counted.
        response_tokens: of every agent call.
        experience_tokens: about as many the composer reads beside the role.
        micro_batch: calls a forward pass, in both ways.
        threads: of torch, in both ways.
    """

    model: str = "smollm2-135m-instruct"
    members: int = 8
    prompt_tokens: int = 1024
    response_tokens: int = 32
    experience_tokens: int = 256
    micro_batch: int = 4
    threads: int = 2


@dataclass(frozen=True)
class Update:
    """Everything that both ways are given."""

    backbone: Backbone
    composer: Composer
    texts: list[ComposerText]
    calls: list[AgentCall]
    call_loss: CallLoss
    micro_batch: int

    def weights(self) -> dict[str, torch.nn.Parameter]:
        """What is trained, by name."""
        return {**dict(self.composer.named_parameters()), **self.backbone.adapter_parameters()}

    def forget(self) -> None:
        """Gradients back to none."""
        for weight in self.weights().values():
            weight.grad = None

    def gradients(self) -> dict[str, torch.Tensor]:
        """A copy of all gradients."""
        return {name: weight.grad.clone() for name, weight in self.weights().items() if weight.grad is not None}


def main(argv: Sequence[str]) -> None:
    """Print what was compared, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench lmpo_step", description=__doc__)
    for name, default in asdict(Workload()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--repeats", type=int, default=1, help="timed pairs; each figure is the median")
    args = vars(parser.parse_args(argv))
    repeats = args.pop("repeats")
    workload = Workload(**args)
    ratios, difference = run(workload, repeats)
    peaks = {way.__name__: measure_peak(prepare, workload, way).growth_mib for way in (straightforward, ours)}
    print(f"peak memory      {peaks['straightforward']:.0f} MiB straightforward, {peaks['ours']:.0f} MiB ours")
    print_result(
        "lmpo_step",
        speedup=ratios.median,
        grad_rel_diff=difference,
        peak_mem_ratio=peaks["straightforward"] / peaks["ours"],
    )


def run(workload: Workload, repeats: int) -> tuple[Ratios, float]:
    """Time both ways in turn, and compare loss and gradients of their first pass; prints both."""
    update = make_update(workload)
    losses: dict[str, float] = {}
    gradients: dict[str, dict[str, torch.Tensor]] = {}

    def noted(way: Callable[[Update], float]) -> None:
        update.forget()
        losses[way.__name__] = way(update)
        gradients[way.__name__] = update.gradients()

    ratios = compare(partial(noted, straightforward), partial(noted, ours), repeats=repeats, warmup=0)
    difference, worst = relative_differences(gradients["ours"], gradients["straightforward"])
    print(f"calls            {len(update.calls)} of {workload.prompt_tokens} + {workload.response_tokens} tokens")
    print(f"loss             {losses['straightforward']:.7f} straightforward, {losses['ours']:.7f} ours")
    print(f"gradients        relative difference {difference:.2e}, {worst:.2e} in the worst weight")
    print(f"seconds          {min(ratios.first_s):.1f} straightforward, {min(ratios.second_s):.1f} ours", flush=True)
    return ratios, difference


def ours(update: Update) -> float:
    """The update of :class:`lightning_modules.latentmem.LatentMem`, without its optimiser."""
    with update.backbone.adapted():
        latents = update.composer(update.backbone, update.texts)
    result = latent_gradient(update.backbone, update.calls, latents, update.call_loss, TEMPERATURE, update.micro_batch)
    with update.backbone.adapted():
        latents.backward(gradient=result.gradient)
    return result.loss


def straightforward(update: Update) -> float:
    """Composer and full sequence with gradient for every call."""
    return straightforward_update(
        update.backbone,
        update.composer,
        update.texts,
        update.calls,
        update.call_loss,
        TEMPERATURE,
        update.micro_batch,
    )


def prepare(workload: Workload, way: Callable[[Update], float]) -> Callable[[], object]:
    """For a fresh process: build everything, hand out the work."""
    return partial(way, make_update(workload))


def relative_differences(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> tuple[float, float]:
    """‖found − expected‖ / ‖expected‖ of the gradient as one vector, and of the weight where it is largest.

    Raises if one side lacks a weight.
    """
    if found.keys() != expected.keys():
        raise ValueError(f"gradients of different weights: {sorted(found.keys() ^ expected.keys())[:3]}")
    norms = {name: (float((found[name] - expected[name]).norm()), float(expected[name].norm())) for name in expected}
    off, size = (math.hypot(*part) for part in zip(*norms.values(), strict=True))
    return off / size, max(off / size for off, size in norms.values())


def make_update(workload: Workload) -> Update:
    """A seeded update with adapters that are not zero, as they are after some training."""
    torch.set_num_threads(workload.threads)
    torch.manual_seed(0)
    backbone = Backbone(workload.model, torch.float32, LoraSettings(dropout=0.0))
    for name, weight in backbone.adapter_parameters().items():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)
    composer = Composer(backbone, ComposerSettings(micro_batch=workload.micro_batch))
    rng = random.Random(0)
    texts = make_texts(backbone, workload, rng)
    calls = make_calls(backbone, workload, rng)
    return Update(backbone, composer, texts, calls, make_loss(backbone, composer, texts, calls), workload.micro_batch)


def make_texts(backbone: Backbone, workload: Workload, rng: random.Random) -> list[ComposerText]:
    """One for each role."""
    experience = str(backbone.tokenizer.decode(some_ids(backbone, workload.experience_tokens, rng)))
    return [ComposerText(f"Role: {role}\n", experience) for role in ROLES]


def make_calls(backbone: Backbone, workload: Workload, rng: random.Random) -> list[AgentCall]:
    """Member by member: the assistant's call, then the user proxy's, who reads the reply before its last words."""
    suffix = some_ids(backbone, 4, rng)
    question = some_ids(backbone, workload.prompt_tokens - len(suffix), rng)
    asked = some_ids(backbone, len(question) - workload.response_tokens - 8, rng)
    calls = []
    for _ in range(workload.members):
        reply, answer = (some_ids(backbone, workload.response_tokens, rng) for _ in range(2))
        calls += [
            AgentCall(question, suffix, reply, 0),
            AgentCall(asked + reply + question[:8], suffix, answer, 1),
        ]
    return calls


def some_ids(backbone: Backbone, count: int, rng: random.Random) -> tuple[int, ...]:
    """Random words of the vocabulary, special tokens left out."""
    special = set(backbone.tokenizer.all_special_ids)
    words = [token for token in range(len(backbone.tokenizer)) if token not in special]
    return tuple(rng.choices(words, k=count))


def make_loss(
    backbone: Backbone, composer: Composer, texts: Sequence[ComposerText], calls: Sequence[AgentCall]
) -> CallLoss:
    """Eq. 10 to 12 with random rewards, and old log-probabilities so near that the clip acts on some tokens only."""
    old = [
        logprobs + 0.3 * torch.randn_like(logprobs) for logprobs in present_logprobs(backbone, composer, texts, calls)
    ]
    members = len(calls) // len(texts)
    advantages = group_advantages(torch.rand(1, members), 1e-4).flatten().repeat_interleave(len(texts))
    weights = token_weights([len(call.output_ids) for call in calls], [0] * len(calls), "group_tokens")

    def call_loss(row: int, logprobs: torch.Tensor) -> torch.Tensor:
        return clipped_surrogate(logprobs, old[row], advantages[row], CLIP).loss.sum() * weights[row]

    return call_loss


@torch.no_grad()
def present_logprobs(
    backbone: Backbone, composer: Composer, texts: Sequence[ComposerText], calls: Sequence[AgentCall]
) -> list[torch.Tensor]:
    """Of every call, ``[response]``."""
    with backbone.adapted():
        latents = composer(backbone, texts)
    found: dict[int, torch.Tensor] = {}
    for rows in micro_batches(calls, size=len(calls) // len(texts)):
        scores = score_calls(backbone, [calls[row] for row in rows], latents, TEMPERATURE)
        found |= dict(zip(rows, scores.logprobs.split([len(calls[row].output_ids) for row in rows]), strict=True))
    return [found[row] for row in range(len(calls))]
