"""Writes generated households with the plans that prove them solvable: ``python -m data.alfworld.build``.

Each line names a task type and a seed, from which :func:`data.alfworld.household.draw_household` makes the problem, its
checksum, and the commands of the planner that comes with ALFWorld. A problem is kept when the plan takes 4 to 30 steps.
Planning takes seconds a problem, which is why the bundled list is made beforehand.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import cast

from data.alfworld.benchmark import HOUSEHOLDS, household_data
from data.alfworld.household import TASK_TYPES, draw_household
from data.alfworld.process import EnginePool

SIZES = {"train": 10, "validation": 2, "test": 10}  # of each type (ours)
SHORTEST, LONGEST = 4, 30


def prove(engines: EnginePool, type_: str, seed: str) -> dict[str, object] | None:
    """The line for one household; ``None`` when the planner finds no plan of a fitting length."""
    household = draw_household(type_, seed)
    engine, _ = engines.next()
    plan = cast(list[str], engine.call(call="plan", data=household_data(household))["plan"])
    if not SHORTEST <= len(plan) <= LONGEST:
        return None
    return {"type": type_, "seed": seed, "checksum": household.checksum, "plan": plan}


def main(argv: Sequence[str] | None = None) -> None:
    """Write every split's households to ``--file``, drawn from ``--seed``."""
    parser = argparse.ArgumentParser(prog="python -m data.alfworld.build", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", type=Path, default=HOUSEHOLDS)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args(argv)
    engines = EnginePool(args.processes)

    def lines(split: str, type_: str) -> list[str]:
        print(f"{split} {type_}", flush=True)
        proved = (prove(engines, type_, f"{args.seed}/{split}/{number}") for number in count())
        kept = islice((line for line in proved if line is not None), SIZES[split])
        return [json.dumps({"split": split, **line}) for line in kept]

    kinds = [(split, type_) for split in SIZES for type_ in TASK_TYPES]
    with ThreadPoolExecutor(args.processes) as threads:
        found = list(threads.map(lambda kind: lines(*kind), kinds))
    args.file.write_text("".join(f"{line}\n" for each in found for line in each), encoding="utf-8")
    print(f"{sum(map(len, found))} households in {args.file}")


if __name__ == "__main__":
    main()
