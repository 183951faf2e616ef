"""Reading a trace back, every line checked against the schema and every episode against its calls."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from data.trajectory import Cost
from rollout.trace import KINDS, TracedCall, TracedEpisode, total_cost

TOTALS = ("prompt_tokens", "completion_tokens", "latent_tokens", "cached_tokens", "first_token_s", "queue_s", "retries")


def read_trace(path: str | Path) -> Iterator[TracedCall | TracedEpisode]:
    """The records of a trace file, in its order, one in memory at a time.

    Raises:
        ValueError: a line that is no JSON object of the schema, or an episode whose calls and totals are not those of
            the call lines before it. The message names file, line and field.
    """
    calls: list[TracedCall] = []
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            where = f"{path}, line {number}"
            record = _record(where, line)
            if isinstance(record, TracedCall):
                calls.append(record)
            else:
                _check_episode(where, record, calls)
                calls = []
            yield record
    if calls:
        raise ValueError(f"{path}, line {number}: the file ends before the line of the episode; it was cut off")


def _record(where: str, line: str) -> TracedCall | TracedEpisode:
    try:
        raw = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: not JSON ({error}); the file was cut off or edited") from error
    kind = raw.pop("kind", None) if isinstance(raw, dict) else None
    if kind not in KINDS:
        raise ValueError(f"{where}: kind is {kind!r}, it must be one of {', '.join(KINDS)}")
    types = {field.name: str(field.type) for field in fields(KINDS[kind])}
    for name in (*(types.keys() - raw.keys()), *(raw.keys() - types.keys())):
        raise ValueError(f"{where}: {kind}.{name} is {'missing' if name in types else 'no field of a trace'}")
    for name, value in raw.items():
        if not _CHECKS[types[name]](value):
            raise ValueError(f"{where}: {kind}.{name} must be {types[name]}, got {value!r:.80}")
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}
    return KINDS[kind](**values)


def _check_episode(where: str, episode: TracedEpisode, calls: Sequence[TracedCall]) -> None:
    identity = _episode_of(episode)
    for call in calls:
        if _episode_of(call) != identity:
            raise ValueError(f"{where}: episode {identity} follows a call of another one, {_episode_of(call)}")
    total = total_cost([_cost(call) for call in calls], episode.wall_s)
    expected: dict[str, Any] = {"calls": len(calls), **{name: getattr(total, name) for name in TOTALS}}
    for name, value in expected.items():
        if getattr(episode, name) != value:
            raise ValueError(f"{where}: episode.{name} is {getattr(episode, name)}, its calls make it {value}")


def _episode_of(record: TracedCall | TracedEpisode) -> tuple[str, int, str, int, str]:
    return record.phase, record.step, record.task, record.member, record.mas


def _cost(call: TracedCall) -> Cost:
    return Cost(**{field.name: getattr(call, field.name) for field in fields(Cost)})


def _text(value: object) -> bool:
    return isinstance(value, str)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _seconds(value: object) -> bool:
    return _number(value) and value >= 0  # type: ignore[operator]


def _all(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _or_none(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


def _scores(value: object) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "str": _text,
    "str | None": _or_none(_text),
    "int": _count,
    "int | None": _or_none(_count),
    "float": _seconds,
    "float | None": _or_none(_seconds),
    "tuple[str, ...]": _all(_text),
    "tuple[int, ...]": _all(_count),
    "tuple[float, ...]": _all(_number),
    "dict[str, float]": _scores,
}
