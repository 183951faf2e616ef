"""The nearest known name for a key or a class that a config or a flag spelt wrongly."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_type_hints

_UNKNOWN = (
    r"key='([\w.]+)'",  # a nested flag
    r"[Kk]eys? [\"']([\w.]+)[\"'] (?:is|are) not expected",
    r"[Uu]nrecognized arguments: --([\w.]+)",
    r"[Oo]ption [\"']([\w.]+)[\"'] is not accepted",
    r"does not accept (?:nested )?(?:key|option) [\"']?([\w.]+)",
)


def with_nearest_key(message: str, classes: Iterable[type]) -> str:
    """``message`` and, where it complains of an unknown key, what was probably meant."""
    for pattern in _UNKNOWN:
        found = re.search(pattern, message)
        if found:
            word, known = found[1].split(".")[-1], set(parameter_names(classes))
            if word in known:  # then it is the value that is wrong
                return message
            close = difflib.get_close_matches(word, sorted(known), n=1)
            return f"{message}\nunknown key {word!r}" + (f": did you mean {close[0]!r}?" if close else "")
    return message


_UNKNOWN_CLASS = (
    r"Expected a dot import path string: (\S+)",
    r"class_path '([\w.]+)':\s+(?:module|No module)",
)


def with_nearest_class(message: str, classes: Iterable[type]) -> str:
    """``message`` and, where it complains of an unknown class, which of ``classes`` was probably meant."""
    paths = {each.__name__.casefold(): f"{each.__module__}.{each.__name__}" for each in classes}
    for pattern in _UNKNOWN_CLASS:
        found = re.search(pattern, message)
        if found:
            name = found[1].split(".")[-1]
            close = difflib.get_close_matches(name.casefold(), paths, n=1)
            return f"{message}\nunknown class {found[1]!r}" + (f": did you mean {paths[close[0]]!r}?" if close else "")
    return message


def parameter_names(classes: Iterable[type]) -> Iterator[str]:
    """Names of all constructor parameters of ``classes``, and of those of the dataclasses among their types."""
    for each in classes:
        names = list(inspect.signature(each.__init__).parameters)  # type: ignore[misc]
        yield from (name for name in names if name != "self")
        yield from parameter_names(_dataclasses_in(get_type_hints(each.__init__).values()))  # type: ignore[misc]


def _dataclasses_in(hints: Iterable[Any]) -> Iterator[type]:
    for hint in hints:
        for each in (hint, *get_args(hint)):
            if isinstance(each, type) and dataclasses.is_dataclass(each):
                yield each
