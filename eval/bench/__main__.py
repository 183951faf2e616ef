"""``python -m eval.bench NAME [--flags]``: run one benchmark, or list them all when no name is given."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module

from eval.bench.catalogue import find_benches

USAGE = "usage: python -m eval.bench NAME [--flags]"


def main(argv: Sequence[str]) -> int:
    """Run the benchmark named first with the rest as its arguments; returns the exit status (2 for an unknown name)."""
    benches = find_benches()
    if not argv or argv[0] in ("-h", "--help"):
        print(f"{USAGE}\n\n{listing(benches)}")
        return 0
    name, *rest = argv
    if name not in benches:
        print(f"{unknown(name, benches)}\n{USAGE}\n\n{listing(benches)}", file=sys.stderr)
        return 2
    import_module(f"eval.bench.{name}").main(rest)
    return 0


def listing(benches: Mapping[str, str]) -> str:
    """One line a bench: its name and what its docstring opens with."""
    width = max(map(len, benches), default=0)
    return "\n".join(f"  {name:<{width}}  {about}" for name, about in benches.items()) or "  (no benchmarks yet)"


def unknown(name: str, benches: Mapping[str, str]) -> str:
    """The complaint about a name that is no bench, with the nearest one where there is one."""
    near = get_close_matches(name, benches, n=1, cutoff=0.5)
    return f"no benchmark {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
