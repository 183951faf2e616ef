"""Where a benchmark's rows come from: the hub, a local file or directory, or the bundled sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from data.formats import FORMATS, read_records
from data.records import Place, Row

SourceName = Literal["published", "sample"]

SAMPLE = Path(__file__).parent / "sample"
"""The folder of the bundled samples, each in its benchmark's published format."""


@dataclass(frozen=True)
class Hub:
    """A data set of the hub.

    Attributes:
        repository: ``owner/name``.
        config: of the data set, where it has several.
        gated: its owner wants terms accepted before it is given out.
    """

    repository: str
    config: str | None = None
    gated: bool = False

    def records(self, split: str) -> list[Row]:
        """The rows of ``split`` (``a+b``: of both, in that order), through ``datasets`` and its cache.

        Raises ``FileNotFoundError`` saying how else to provide them when the hub does not give them.
        """
        try:
            from datasets import load_dataset

            rows = load_dataset(self.repository, self.config, split=split)
        except (ImportError, OSError) as error:
            raise FileNotFoundError(
                f"could not load {self.repository} (split {split!r}) from the hub: {type(error).__name__}: {error}. "
                f"{self._remedy()}"
            ) from error
        return [(row, Place(f"{self.repository} {split}, row {number}")) for number, row in enumerate(rows)]

    def _remedy(self) -> str:
        connect = "connect and install `datasets`"
        if self.gated:
            page = f"huggingface.co/datasets/{self.repository}"
            connect = f"accept the terms at {page} once, run `hf auth login`, and {connect}"
        return (
            f"Either {connect}, or download its rows and give their file or directory as `path` "
            f"({', '.join(FORMATS)}), or use source='sample', which is bundled"
        )


def local_records(path: Path, *names: str) -> list[Row]:
    """The records of the file ``path``, or of the first of ``names`` that the directory ``path`` has.

    A name is a file without its suffix, ``folder/name`` below the directory, or the first part of Parquet shards
    (``train`` of ``data/train-00000-of-00001.parquet``); ``a+b`` are both, one after the other.

    Raises ``FileNotFoundError`` saying what may be given, ``ValueError`` for a malformed file.
    """
    return [row for file in _files(path, names) for row in read_records(file)]


def _files(path: Path, names: Sequence[str]) -> list[Path]:
    if path.is_file():
        return [path]
    for name in names:
        parts = [_named(path, part) for part in name.split("+")]
        if all(parts):
            return [file for files in parts for file in files]
    wanted = " or ".join(f"{name}.jsonl" for name in names)
    others = ", ".join(suffix for suffix in FORMATS if suffix != ".jsonl")
    raise FileNotFoundError(
        f"no data at {path}: give a file ({', '.join(FORMATS)}), a directory with {wanted} (or {others}), "
        "no path at all (the hub is asked), or source='sample', which is bundled"
    )


def _named(folder: Path, name: str) -> list[Path]:
    for suffix in FORMATS:
        if (folder / f"{name}{suffix}").is_file():
            return [folder / f"{name}{suffix}"]
    return sorted(folder.glob(f"{name}-*.parquet")) or sorted(folder.glob(f"data/{name}-*.parquet"))
