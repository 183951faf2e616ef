"""The lifecycle to look at: every event in a file, every episode in TensorBoard, a summary at the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lightning as L

from lightning_modules.callbacks.comem.mechanism import Ended, Mechanism
from memory.comem.comem import CoMem
from memory.comem.episode import Episode
from memory.comem.event import Event, event_to_dict
from rollout.ask import Asker

EVENTS = "comem_events.jsonl"
RESULTS = "comem_results.json"
COUNTED = ("born", "used", "scored", "promoted", "pruned", "forgotten")


class LifecycleLog(Mechanism):
    """Writes ``comem_events.jsonl`` (for ``python -m memory.inspect``) and ``comem_results.json`` into the run."""

    place = 6
    learns = False

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self.rows: list[dict[str, float]] = []
        self.kinds: Counter[str] = Counter()
        self.in_flight = 0
        self.questions: Counter[str] = Counter()

    def apply(self, memory: CoMem, episode: Episode) -> Sequence[Event]:
        """It has nothing to change."""
        return ()

    def observe(self, trainer: L.Trainer, memory: CoMem, ended: Ended) -> None:
        """The episode's events and figures."""
        self.kinds.update(event.kind for event in ended.events)
        self.in_flight = max(self.in_flight, ended.in_flight)
        row = figures(ended.events, memory)
        self.rows.append(row)
        with (_folder(trainer) / EVENTS).open("ab") as file:
            self.bytes += file.write(b"".join(_line(event) for event in ended.events))
        for logger in trainer.loggers:
            logger.log_metrics({f"comem/{name}": value for name, value in row.items()}, step=len(self.rows) - 1)

    def batch_ended(self, asker: Asker) -> None:
        """What the batch's questions cost."""
        costs = ("calls", "prompt_tokens", "completion_tokens", "unreadable")
        self.questions.update({name: getattr(asker, name) for name in costs})

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Cut off what a stopped run wrote after its last checkpoint; in another folder the log begins anew."""
        folder = _folder(trainer)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / EVENTS).open("ab") as file:
            self.bytes = min(self.bytes, file.tell())
            file.truncate(self.bytes)

    def on_test_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """An evaluation's episodes come after those of the checkpoint."""
        self.on_train_start(trainer, pl_module)

    def on_test_end(self, trainer: L.Trainer, pl_module: Any) -> None:
        """As in training."""
        self.on_train_end(trainer, pl_module)

    def on_train_end(self, trainer: L.Trainer, pl_module: Any) -> None:
        """The summary."""
        result = {
            "tasks_in_flight": self.in_flight,
            "episodes": len(self.rows),
            "mean": _means(self.rows),
            "last_quarter": _means(self.rows[-(-3 * len(self.rows) // 4) :]),
            "events": dict(self.kinds),
            "questions": dict(self.questions),
            "private_entries": {agent: len(store) for agent, store in pl_module.comem.private.items()},
            "collective_entries": len(pl_module.comem.collective),
            "encoder": pl_module.comem.encoder.name,
            "settings": asdict(pl_module.comem.settings),
        }
        (_folder(trainer) / RESULTS).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")

    def state_dict(self) -> dict[str, Any]:
        """Rows, counts, and how much of the file belongs to them."""
        counters = {"kinds": dict(self.kinds), "questions": dict(self.questions), "in_flight": self.in_flight}
        return {**super().state_dict(), "bytes": self.bytes, "rows": self.rows, **counters}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue all of them."""
        super().load_state_dict(state_dict)
        self.bytes, self.in_flight = int(state_dict["bytes"]), int(state_dict["in_flight"])
        self.kinds, self.questions = Counter(state_dict["kinds"]), Counter(state_dict["questions"])
        self.rows = [dict(row) for row in state_dict["rows"]]


def figures(events: Sequence[Event], memory: CoMem) -> dict[str, float]:
    """One episode's row: reward, baseline, pollution, how many entries were born and so on, how many there are.

    ``collective_score`` is the mean S of the collective pool; an empty pool has none.
    """
    row: dict[str, float] = {}
    for event in events:
        if event.kind in ("episode", "measured"):
            row |= event.values
    counts: Counter[str] = Counter(event.kind for event in events)
    sizes = {
        "private_entries": sum(len(store) for store in memory.private.values()),
        "collective_entries": len(memory.collective),
    }
    scores = [entry.score for entry in memory.collective.entries()]
    quality = {"collective_score": sum(scores) / len(scores)} if scores else {}
    return {**row, **{kind: float(counts[kind]) for kind in COUNTED}, **sizes, **quality}


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Over the rows that have the figure: an episode without injected entries has no noise."""
    names = sorted({name for row in rows for name in row})
    values = {name: [row[name] for row in rows if name in row] for name in names}
    return {name: sum(each) / len(each) for name, each in values.items()}


def _line(event: Event) -> bytes:
    return json.dumps(event_to_dict(event), ensure_ascii=False).encode() + b"\n"


def _folder(trainer: L.Trainer) -> Path:
    return Path(trainer.log_dir or trainer.default_root_dir)
