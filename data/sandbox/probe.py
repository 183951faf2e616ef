"""What compared values pass through: inside the sandbox it is ``_probe``, which the tests import.

A file of its own, since the solution can reach the globals of this function.
"""

from __future__ import annotations

import contextlib
import os
import types
import unittest.mock
from collections.abc import Iterator
from typing import Any

_PLAIN_TYPES = (type(unittest.mock.ANY),)
# Drawn anew in every run.
_STRANGERS = (object(), int.from_bytes(os.urandom(8), "big"), os.urandom(8).hex())


def probed(value: Any) -> Any:
    """``value``, unless it claims to equal something that nothing can equal."""
    for part in _parts(value):
        if isinstance(type(part).__eq__, types.FunctionType) and not isinstance(part, _PLAIN_TYPES):
            claims = False
            with contextlib.suppress(Exception):
                claims = any(bool(part == stranger) for stranger in _STRANGERS)
            if claims:
                raise AssertionError(f"an instance of {type(part).__name__} equals everything")
    return value


def _parts(value: Any, depth: int = 3) -> Iterator[Any]:
    yield value
    if depth and type(value) in (list, tuple, dict):
        for part in value.values() if type(value) is dict else value:
            yield from _parts(part, depth - 1)
