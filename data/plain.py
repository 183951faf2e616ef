"""What a checkpoint may hold so that it loads with ``weights_only=True``: JSON values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from data.task import Task


def plain(value: Any) -> Any:
    """``value`` with every mapping a dict with text keys and every sequence a list."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def task_from_plain(state: Mapping[str, Any]) -> Task:
    """The task that :func:`plain` of its fields was made from."""
    return Task(**{**state, "answers": tuple(state["answers"]), "choices": tuple(state["choices"])})
