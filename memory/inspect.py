"""What CoMem remembers in a run, and what became of each entry.

python -m memory.inspect runs/comem/000                          # every entry that is there now
python -m memory.inspect runs/comem/000 --store collective --sort score
python -m memory.inspect runs/comem/000 --agent assistant --contains drawer
python -m memory.inspect runs/comem/000 --entry m12-assistant-0  # its history: born, used, scored, promoted, ...
python -m memory.inspect runs/comem/000 --kind forgotten         # every such event of the run, and why
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from memory.comem.entry import Entry, entry_from_dict
from memory.comem.event import Event, event_from_dict

CHECKPOINT = Path("checkpoints") / "last.ckpt"
EVENTS = "comem_events.jsonl"
SORTS = ("score", "n_use", "n_succ", "mean_reward", "created_episode", "k_miss")
KINDS = ("born", "used", "scored", "promoted", "pruned", "forgotten")


def main(argv: Sequence[str]) -> int:
    """Print what is asked for; the exit status is 1 when the run has no CoMem, or not the entry."""
    args = _parser().parse_args(argv)
    try:
        lines = list(_history(args) if args.entry or args.kind else _listing(args))
    except (FileNotFoundError, KeyError) as error:
        print(f"memory.inspect: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


def stored_entries(run: Path) -> Iterator[tuple[str, Entry]]:
    """(``private`` or ``collective``, entry) for all that the run's last checkpoint holds.

    Raises:
        FileNotFoundError: no checkpoint.
        KeyError: a checkpoint without CoMem.
    """
    path = run / CHECKPOINT
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; give the directory of a run that has a checkpoint")
    state: dict[str, Any] = torch.load(path, weights_only=True, mmap=True)
    if "comem" not in state:
        raise KeyError(f"{path} holds no CoMem: it is a run with another memory")
    for store in state["comem"]["private"].values():
        yield from (("private", entry_from_dict(raw)) for raw in store["entries"])
    yield from (("collective", entry_from_dict(raw)) for raw in state["comem"]["collective"]["entries"])


def events_of(run: Path) -> Iterator[Event]:
    """Every event of the run, oldest first. Raises ``FileNotFoundError`` when it logged none."""
    with (run / EVENTS).open(encoding="utf-8") as file:
        yield from (event_from_dict(json.loads(line)) for line in file)


def history(events: Iterator[Event], entry_id: str) -> list[Event]:
    """The events of one entry, those of the private entry that it is the copy of included."""
    lives = {entry_id, entry_id.removesuffix("c")}
    return [event for event in events if event.entry_id in lives]


def _listing(args: argparse.Namespace) -> Iterator[str]:
    chosen = [(tier, entry) for tier, entry in stored_entries(args.run) if _wanted(args, tier, entry)]
    chosen.sort(key=lambda pair: -(getattr(pair[1], args.sort) or 0))
    yield f"{'entry':<24} {'tier':<10} {'agent':<14} {'S':>5} {'use':>4} {'succ':>4} {'mean R':>6} {'miss':>4}  content"
    for tier, entry in chosen[: args.limit]:
        mean = "-" if entry.mean_reward is None else f"{entry.mean_reward:.2f}"
        yield (
            f"{entry.id:<24} {tier:<10} {entry.agent_name:<14} {entry.score:>5.1f} {entry.n_use:>4} {entry.n_succ:>4} "
            f"{mean:>6} {entry.k_miss:>4}  {entry.content}"
        )
    yield f"{min(len(chosen), args.limit)} of {len(chosen)} entries"


def _wanted(args: argparse.Namespace, tier: str, entry: Entry) -> bool:
    return (
        args.store in (tier, "all")
        and args.agent in (entry.agent_name, None)
        and (args.contains or "").casefold() in entry.content.casefold()
    )


def _history(args: argparse.Namespace) -> Iterator[str]:
    events = events_of(args.run)
    found = history(events, args.entry) if args.entry else [event for event in events if event.kind == args.kind]
    if args.entry and not found:
        raise KeyError(f"no event of the run is about {args.entry!r}")
    for event in found:
        content = f"  «{event.content}»" if event.content else ""
        yield f"episode {event.episode:>5}  {event.kind:<9}  {event.entry_id:<24}  {event.why}{content}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m memory.inspect", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--store", choices=("private", "collective", "all"), default="all")
    parser.add_argument("--agent", help="only entries of this agent")
    parser.add_argument("--contains", help="only entries with this text")
    parser.add_argument("--sort", choices=SORTS, default="score", help="largest first")
    parser.add_argument("--limit", type=int, default=50, help="most entries listed")
    parser.add_argument("--entry", help="the history of this entry")
    parser.add_argument("--kind", choices=KINDS, help="every event of this kind")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
