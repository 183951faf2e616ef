"""Concurrent episodes on vLLM, against one after another on transformers and against vLLM's own limit.

Three ways over the same model, prompts and response lengths, in one run, in tokens sampled a second:

    concurrent   ``EpisodeRunner`` on ``VLLMEngine``, all episodes at once, for each MAS
    limit        vLLM's offline ``LLM.generate`` over the very prompts of the concurrent run, in one call
    sequential   AutoGen's calls one after another by transformers' ``generate`` (a few episodes: the rate is constant)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict

import torch

from data.assets import resolve_model
from data.trajectory import Step
from eval.bench.mas_rows import EPISODES, MODEL, SYSTEMS, load_systems, mas_rows, run_systems, sampled
from eval.bench.result import print_result
from rollout.vllm_engine import VLLMEngine

FIRST = "autogen"


def main(argv: Sequence[str]) -> None:
    """Print one line a way and MAS, then the result: AutoGen's figures, and the rows of all."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench rollout", description=__doc__)
    parser.add_argument("--mas", nargs="*", choices=SYSTEMS, default=tuple(SYSTEMS), help="beside AutoGen")
    parser.add_argument("--episodes", type=int, default=EPISODES, choices=range(1, EPISODES + 1), metavar="N")
    parser.add_argument("--sequential-episodes", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--max-model-len", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of each way")
    args = parser.parse_args(argv)
    engine = VLLMEngine(
        MODEL, "float32", args.max_model_len, max_num_seqs=args.episodes, kv_cache_gib=1, cpu_threads=args.threads
    )
    systems = load_systems([FIRST, *(name for name in args.mas if name != FIRST)])
    measured = run_systems(engine, systems, args.episodes, args.max_tokens)
    torch.set_num_threads(args.threads)
    rows = mas_rows(engine, measured, args.episodes)
    sequential = run_sequential(measured[FIRST].steps[: 2 * args.sequential_episodes])
    print(
        f"sequential {sequential:6.1f} tokens/s  {args.sequential_episodes} AutoGen episodes by transformers",
        flush=True,
    )
    print_result(
        "rollout",
        vs_sequential=rows[0].concurrent / sequential,
        of_limit=rows[0].of_limit,
        rows=[asdict(row) for row in rows],
    )


def run_sequential(steps: Sequence[Step]) -> float:
    """Tokens a second of transformers' ``generate``, one call at a time, same prompts and response lengths."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(resolve_model(MODEL), dtype=torch.float32).eval()

    def call(step: Step) -> None:
        ids = torch.tensor([step.prefix_ids + step.suffix_ids])
        count = len(step.output_ids)
        with torch.no_grad():
            model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                top_k=0,
                max_new_tokens=count,
                min_new_tokens=count,
                pad_token_id=0,
            )

    call(steps[0])
    started = time.perf_counter()
    for step in steps:
        call(step)
    return sampled(steps) / (time.perf_counter() - started)
