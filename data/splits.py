"""The named splits of a benchmark: which upstream rows make each, read once, and never a test question in training."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from data.leakage import overlap
from data.records import Place, Record, Row
from data.source import SAMPLE, Hub, SourceName, local_records
from data.task import Task

Choose = Callable[[Sequence[Row]], Sequence[Row]]
Parse = Callable[[Record, Place], Task]

SPLIT_SEED = 42
"""Of the splits that the papers draw at random without saying how (ours)."""


def rows(first: int = 0, last: int | None = None) -> Choose:
    """Rows ``first`` to ``last`` (exclusive; ``None`` is the end)."""
    return lambda records: records[first:last]


ALL: Choose = rows()


def share(first: float, last: float, seed: int = SPLIT_SEED) -> Choose:
    """From the share ``first`` to ``last`` (0.7 to 0.8) of the rows in a random order that only ``seed`` decides."""

    def choose(records: Sequence[Row]) -> Sequence[Row]:
        generator = random.Random(seed)
        # The sequence of random() is the same on every Python; that of shuffle() is not promised to be.
        order = sorted(range(len(records)), key=[generator.random() for _ in records].__getitem__)
        return [records[index] for index in order[round(first * len(records)) : round(last * len(records))]]

    return choose


def having(field: str, *values: str) -> Choose:
    """The rows whose ``field``, as text, is one of ``values``."""
    return lambda records: [row for row in records if str(row[0].get(field)) in values]


@dataclass(frozen=True)
class Part:
    """What a split is made of.

    Attributes:
        upstream: split of the hub data set; ``a+b`` are both, one after the other.
        choose: which of its rows.
        files: names to look for in a local directory, the first that is there; ``upstream`` by default.
    """

    upstream: str
    choose: Choose = ALL
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Published:
    """How a benchmark is published.

    Attributes:
        name: of the benchmark.
        hub: where it lies on the hub.
        layout: its splits; the held-out ones are all but ``train``.
        one_file: its splits when everything is one local file; ``layout`` by default.
        sample: file or folder of the bundled sample, which is written in the form of a local copy.
        sizes: records of its splits in the papers, where they say; a copy that has others is used all the same.
    """

    name: str
    hub: Hub
    layout: Mapping[str, Part]
    one_file: Mapping[str, Part] | None = None
    sample: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)


class Splits:
    """The tasks of one benchmark by split, each split parsed once.

    ``train`` never holds a question that another split holds too (compared by
    :func:`data.scoring.short_answer.normalise_question`): such items are left out of it, with a warning that counts
    them, and kept in :attr:`left_out`.

    Args:
        published: splits and sources.
        parse: a record to a task; raises ``ValueError`` naming place and field.
        source: ``published``, or ``sample`` for the bundled one.
        path: a local copy of ``published``: a file, or a directory; ``None`` asks the hub.
    """

    def __init__(self, published: Published, parse: Parse, source: SourceName, path: str | Path | None = None) -> None:
        if source not in ("published", "sample"):
            raise ValueError(f"unknown source {source!r}; there are published, sample")
        if source == "sample" and path is not None:
            raise ValueError("the sample is bundled and takes no path; for your own file leave source='published'")
        self.published = published
        self.path = SAMPLE / published.sample if source == "sample" else None if path is None else Path(path)
        self.left_out: tuple[Task, ...] = ()
        self._parse = parse
        self._loaded: dict[str, tuple[Task, ...]] = {}

    @property
    def layout(self) -> Mapping[str, Part]:
        """The splits that this source has."""
        one_file = self.published.one_file
        return one_file if one_file and self.path is not None and self.path.is_file() else self.published.layout

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``split`` in the source's order.

        Raises ``ValueError`` for a split that is unknown or empty and for a malformed row (file, line and field),
        ``FileNotFoundError`` for a source that is not there.
        """
        tasks = self._read(split)
        if not tasks:
            where = self.path or "the hub"
            raise ValueError(
                f"split {split!r} of {self.published.name} is empty: {where} has no rows for it; "
                "give a directory with a file for each split"
            )
        return tasks

    def records(self, split: str) -> Sequence[Row]:
        """The raw rows of ``split``. Raises as :meth:`tasks` does."""
        if split not in self.layout:
            raise ValueError(f"{self.published.name} has no split {split!r}; it has {', '.join(self.layout)}")
        part = self.layout[split]
        if self.path is not None:
            return part.choose(local_records(self.path, *(part.files or (part.upstream,))))
        return part.choose(self.published.hub.records(part.upstream))

    def _read(self, split: str) -> tuple[Task, ...]:
        if split not in self._loaded:
            tasks = _with_unique_ids([self._parse(record, place) for record, place in self.records(split)])
            self._loaded[split] = self._without_held_out(tasks) if split == "train" else tuple(tasks)
        return self._loaded[split]

    def _without_held_out(self, train: Sequence[Task]) -> tuple[Task, ...]:
        held_out = [task for split in self.layout if split != "train" for task in self._if_there(split)]
        self.left_out = tuple(overlap(train, held_out))
        if self.left_out:
            some = ", ".join(task.id for task in self.left_out[:3])
            warnings.warn(
                f"{self.published.name}: {len(self.left_out)} training items ask a held-out question "
                f"and are left out ({some}{', …' if len(self.left_out) > 3 else ''})",
                stacklevel=2,
            )
        gone = {task.id for task in self.left_out}
        return tuple(task for task in train if task.id not in gone)

    def _if_there(self, split: str) -> Sequence[Task]:
        try:
            return self._read(split)
        except FileNotFoundError:
            return ()  # A copy without that split: nothing of it can be tested on, so nothing leaks.


def _with_unique_ids(tasks: Sequence[Task]) -> list[Task]:
    # TriviaQA repeats a question for each of its evidence sets: the rows stay, as upstream counts them.
    times: dict[str, int] = {}
    unique = []
    for task in tasks:
        times[task.id] = count = times.get(task.id, 0) + 1
        unique.append(task if count == 1 else replace(task, id=f"{task.id}#{count}"))
    return unique
