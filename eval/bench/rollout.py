"""Every MAS at once on vLLM, against vLLM's own limit; AutoGen also one call after another on transformers.

The agents write and review small programs, so that responses have the length of work, not of a name. Three ways over
the same model, prompts and response lengths, in one run, in tokens sampled a second:

    concurrent   ``EpisodeRunner`` on ``VLLMEngine``, all episodes of a MAS at once
    limit        vLLM's offline ``LLM.generate`` over the very prompts of the concurrent run, in one call, which no
                 order among calls holds back; as many at once as there are episodes, as in the concurrent run
    sequential   the first MAS' calls, one after another, by transformers' ``generate`` (of a few episodes; the rate is
                 constant)

The result's ``of_limit`` and ``vs_sequential`` are the first MAS', AutoGen's by default; ``rows`` has every one. On two
cores all four take the better part of an hour, ``--mas autogen`` minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict

import torch

from data.assets import resolve_model
from data.trajectory import Step
from eval.bench.mas_rows import MODEL, SYSTEMS, bench_engine, limit_rates, load_systems, row, run_systems, sampled
from eval.bench.programs import TASKS
from eval.bench.result import print_result


def main(argv: Sequence[str]) -> None:
    """Print one line for each MAS and way, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench rollout", description=__doc__)
    parser.add_argument("--mas", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--episodes", type=int, default=32, choices=range(1, len(TASKS) + 1), metavar="1..32")
    parser.add_argument("--sequential-episodes", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--max-model-len", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of each way")
    args = parser.parse_args(argv)
    engine = bench_engine(args.max_model_len, args.threads, args.episodes)
    measured = run_systems(engine, load_systems(args.mas), args.episodes, args.max_tokens)
    torch.set_num_threads(args.threads)
    limits = limit_rates(engine, {name: each.steps for name, each in measured.items()})
    rows = {name: row(name, each, limits[name]) for name, each in measured.items()}
    for each in rows.values():
        print(each, flush=True)
    headline = args.mas[0]
    made = measured[headline].made[: args.sequential_episodes]
    sequential = run_sequential([step for trajectory in made for step in trajectory.steps])
    print(f"sequential  {sequential:8.1f} tokens/s  {args.sequential_episodes} episodes by transformers", flush=True)
    print_result(
        "rollout",
        vs_sequential=rows[headline].concurrent / sequential,
        of_limit=rows[headline].of_limit,
        rows=[asdict(each) for each in rows.values()],
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
