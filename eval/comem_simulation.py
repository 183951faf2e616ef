"""A SIMULATION of CoMem over a long stream: scripted agents, no language model, nothing measured on a benchmark.

    python -m eval.comem_simulation      # 2,000 episodes, 4 agents, five memories; writes docs/comem_simulation.*

What is real: CoMem's stores, retrieval, rules and their order. What is scripted: whether an agent succeeds, what it
distils, how it judges, where texts lie in the embedding space. It shows what the rules do to known good and known bad
insights, not how well any model would do.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from eval.comem_simulation_plot import plot_simulation
from eval.comem_world import AGENTS, Rules, ScriptedWorld, TopicEncoder, is_proven_good
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.lifecycle import ORDER, Step, count_uses, curate, end_episode, prune_unused, sediment_insights
from memory.comem.pollution import action_similarity, memory_similarity, noise
from memory.comem.settings import CoMemSettings

WINDOW = 100
"""Episodes over which figures are averaged."""


@dataclass(frozen=True)
class Variant:
    """A memory to simulate. ``steps`` are the mechanisms that it has."""

    name: str
    steps: tuple[Step, ...]
    settings: CoMemSettings


VARIANTS = (
    Variant("CoMem", ORDER, CoMemSettings()),
    Variant("private only", (count_uses, prune_unused, sediment_insights), CoMemSettings()),
    Variant("collective only", (count_uses, curate, sediment_insights), CoMemSettings(distil_into="collective")),
    Variant("flat shared", (count_uses, sediment_insights), CoMemSettings(distil_into="collective")),
    Variant("no memory", (count_uses,), CoMemSettings()),
)
"""The paper's full method, its two ablations, what it argues against, and nothing at all."""


DISTILLERS = (
    Rules(),
    Rules(good_after_success=0.7, good_after_failure=0.4),
    Rules(good_after_success=0.9, good_after_failure=0.7),
)
"""The world, and the same with agents that write better insights."""


def simulate(variant: Variant, episodes: int, seed: int = 0, rules: Rules = DISTILLERS[0]) -> list[dict[str, float]]:
    """One row an episode; every variant meets the same tasks."""
    world, memory = ScriptedWorld(seed, rules), CoMem(TopicEncoder(), variant.settings)
    recent: list[Mapping[str, Sequence[str]]] = []
    rows = []
    for index in range(episodes):
        task = world.task(index)
        memory.prepare([task], AGENTS)
        injected = {agent.name: memory.recall(task, agent, "").entry_ids for agent in AGENTS}
        texts = {name: [entry.content for entry in memory.entries(ids)] for name, ids in injected.items()}
        in_pool = {each for ids in injected.values() for each in ids if memory.collective.get([each])}
        played = world.play(index, texts)
        episode = Episode(
            index,
            played.reward,
            injected,
            played.actions,
            {
                entry.id: tuple(
                    world.judge(index, name, entry.content) for name, ids in injected.items() if entry.id in ids
                )
                for entry in memory.collective.get(in_pool)
            },
            played.insights if variant.steps != (count_uses,) else {},
        )
        recent = [*recent, played.actions][-WINDOW // 2 :]
        vectors = memory.injected_vectors(episode)
        events = end_episode(memory, episode, variant.steps[:1])
        measured = pollution(memory, episode, vectors, recent)
        events += end_episode(memory, episode, variant.steps[1:])
        rows.append({"reward": played.reward, "misleading": world.misleading(texts), **measured, **sizes(memory)})
    return rows


def pollution(
    memory: CoMem, episode: Episode, vectors: Mapping[str, object], recent: Sequence[Mapping[str, Sequence[str]]]
) -> dict[str, float]:
    """The two figures of :mod:`memory.comem.pollution`, where there is anything to measure."""
    taken = {agent.name: [a for actions in recent for a in actions[agent.name]] for agent in AGENTS}
    figures = {
        "noise": noise(memory.entries(episode.used), memory.baseline.value),
        "memory_similarity": memory_similarity(vectors),  # type: ignore[arg-type]
        "action_similarity": action_similarity(taken),
    }
    return {name: value for name, value in figures.items() if value is not None}


def sizes(memory: CoMem) -> dict[str, float]:
    """How much is stored, and the share of the pool that helps whoever reads it."""
    pool = memory.collective.entries()
    precision = {"precision": sum(is_proven_good(entry.content) for entry in pool) / len(pool)} if pool else {}
    private = max((len(store) for store in memory.private.values()), default=0)
    return {"largest_private": private, "pool": len(pool), **precision}


def mean(rows: Sequence[Mapping[str, float]], name: str) -> float | None:
    """Over the rows that have the figure."""
    values = [row[name] for row in rows if name in row]
    return sum(values) / len(values) if values else None


COLUMNS = (
    ("reward", "reward"),
    ("injected, below baseline", "noise"),
    ("injected, misleading", "misleading"),
    ("pool precision", "precision"),
    ("pool size", "pool"),
    ("largest private store", "largest_private"),
    ("memory similarity", "memory_similarity"),
    ("action similarity", "action_similarity"),
)


def table(runs: Mapping[str, Sequence[Mapping[str, float]]], part: slice, title: str) -> str:
    """Markdown, a row a memory."""
    lines = [f"### {title}", "", "| memory | " + " | ".join(label for label, _ in COLUMNS) + " |"]
    lines.append("|---|" + "---|" * len(COLUMNS))
    for name, rows in runs.items():
        cells = [_cell(mean(rows[part], key), key) for _, key in COLUMNS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def by_distiller(rewards: Mapping[str, Sequence[float | None]]) -> str:
    """Markdown: reward of the last quarter, a column for each of :data:`DISTILLERS`."""
    columns = [f"{each.good_after_success} / {each.good_after_failure}" for each in DISTILLERS]
    lines = [f"| memory | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    lines += [f"| {name} | {' | '.join(_cell(each, 'reward') for each in row)} |" for name, row in rewards.items()]
    return "\n".join(lines)


def _cell(value: float | None, key: str) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if key in ("pool", "largest_private") else f"{value:.2f}"


def report(
    runs: Mapping[str, Sequence[Mapping[str, float]]],
    rewards: Mapping[str, Sequence[float | None]],
    episodes: int,
    seed: int,
) -> str:
    """The page: what is simulated, the tables, the figure, the assumptions."""
    quarter = episodes // 4
    first = table(runs, slice(0, quarter), f"Episodes 0 to {quarter - 1}")
    last = table(runs, slice(episodes - quarter, episodes), f"Episodes {episodes - quarter} to {episodes - 1}")
    world = "\n".join(f"- `{name}` = {value}" for name, value in asdict(ScriptedWorld(seed).rules).items())
    better = by_distiller(rewards)
    return PAGE.format(
        episodes=episodes, agents=len(AGENTS), seed=seed, first=first, last=last, world=world, better=better
    )


PAGE = """# CoMem over a long stream: a simulation

**This is a simulation.** Agents, distiller, judge and embedding space are scripted; no language model ran and no
benchmark was solved. Stores, retrieval, rules and their order are the real ones. It shows what the rules make of
insights whose worth is known, under the assumptions below; it says nothing about scores on ALFWorld or PDDL.

`python -m eval.comem_simulation --episodes {episodes} --seed {seed}` writes this page ({agents} agents).

![simulation](comem_simulation.png)

{first}

{last}

"Below baseline" is the noise figure that real runs log; "misleading" is what only a simulation can know: the share of
injected insights that hurt their reader. "Flat shared" is every agent's insights in one pool that is never curated.

## How good insights must be

Reward of the last quarter, by the chance that an insight is good after a success / after a failure. Compare each column
with its last row: where most insights mislead, no memory at all is best, and selection only limits the damage; it pays
as agents write more good ones. Flat sharing pays in none of these worlds.

{better}

## Assumptions

A task has one of the topics. An agent's part succeeds with `base`, plus `help` when an injected insight on the task's
topic is good for it, minus `harm` times the share of injected insights that mislead it; the reward is the mean over the
agents. After each episode every agent writes one insight: a good one with probability `good_after_success` or
`good_after_failure`, half of them for everybody, half for its own role only (and misleading for the others). Judges see
the truth through noise. An agent follows an injected insight's habit with probability `steered`, else its role's own.

{world}
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Simulate every variant; write page, figure and rows."""
    parser = argparse.ArgumentParser(prog="python -m eval.comem_simulation", description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    args = parser.parse_args(argv)
    runs, rewards = {}, {}
    for variant in VARIANTS:
        runs[variant.name] = simulate(variant, args.episodes, args.seed)
        tail = runs[variant.name][-args.episodes // 4 :]
        print(
            f"simulation: {variant.name:<16} last quarter {json.dumps({k: mean(tail, k) for _, k in COLUMNS})}",
            flush=True,
        )
        better = [simulate(variant, args.episodes, args.seed, rules)[-args.episodes // 4 :] for rules in DISTILLERS[1:]]
        rewards[variant.name] = [mean(rows, "reward") for rows in (tail, *better)]
    args.out.mkdir(parents=True, exist_ok=True)
    page = report(runs, rewards, args.episodes, args.seed)
    (args.out / "comem_simulation.md").write_text(page, encoding="utf-8")
    plot_simulation(runs, args.out / "comem_simulation.png", WINDOW)


if __name__ == "__main__":
    main()
