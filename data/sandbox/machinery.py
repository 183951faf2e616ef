"""What judges, as it was before the solution ran; inside the sandbox it lies beside ``judge.py``."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

_MACHINERY = ("unittest", "json", "pytest", "_pytest", "pluggy", "importlib", "builtins", "_probe")
_HOOKS = ("__getattr__", "__getattribute__", "__call__")


def fingerprint() -> dict[str, tuple[object, ...]]:
    """What every function, class and module of the machinery is; tampering with one changes it."""
    found: dict[str, tuple[object, ...]] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _MACHINERY:
            found[name] = (module,)
            for key, value in list(vars(module).items()):
                if callable(value) and not (module is builtins and key == "_"):
                    found[f"{name}.{key}"] = _identity(value)
                if isinstance(value, type):
                    found.update(_members(f"{name}.{key}", value))
    found["tracing"] = (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile(), _monitors())
    found["import hooks"] = (*sys.meta_path, *sys.path_hooks)
    return found


def first_change(before: dict[str, tuple[object, ...]], allowed: tuple[str, ...] = ()) -> str:
    """The name of something that is no longer what it was; empty if all is."""
    now = fingerprint()
    for name, value in before.items():
        then = now.get(name, ())
        same = len(then) == len(value) and all(a is b for a, b in zip(then, value, strict=True))
        if not same and not name.startswith(allowed or "\0"):
            return name
    return ""


def resolve(names: Iterable[str]) -> dict[str, object]:
    """What the tests will use of other modules, such as ``math.isclose``, as it is before the solution runs."""
    found: dict[str, object] = {}
    for name in names:
        with contextlib.suppress(ImportError, AttributeError):
            value = _lookup(name)
            # Some are made anew at each look, such as ``pytest.mark.skip``, and cannot be compared.
            if callable(value) and value is _lookup(name):
                found[name] = value
    return found


def first_moved(before: dict[str, object]) -> str:
    """The first of them that is something else now; empty if none is."""
    return next((name for name, value in resolve(before).items() if value is not before[name]), "")


def first_rebound(module: types.ModuleType, before: dict[str, object]) -> str:
    """The first function or class of the tests' module that its name no longer means, or built-in that it hides now."""
    now = vars(module)
    moved = [name for name, value in before.items() if callable(value) and now.get(name) is not value]
    hiding = [name for name in now if name not in before and hasattr(builtins, name)]
    return "".join(f"{module.__name__}.{name}" for name in (moved + hiding)[:1])


def _identity(value: Any) -> tuple[object, ...]:
    if isinstance(value, types.FunctionType):
        return (value, value.__code__, value.__defaults__, value.__kwdefaults__)
    return (value,)


def _members(name: str, owner: type) -> Iterable[tuple[str, tuple[object, ...]]]:
    """A class's functions, its bases, and how many methods it has that come before all others."""
    own = dict(vars(owner))
    yield f"{name} bases", owner.__bases__
    yield f"{name} hooks", (sum(key in _HOOKS for key in own),)
    for key, value in own.items():
        inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        inner = inner.fget if isinstance(inner, property) else inner
        if callable(inner):
            yield f"{name}.{key}", _identity(inner)


def _monitors() -> object:
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(number) for number in range(6)] if monitoring else []
    return next((tool for tool in tools if tool is not None), None)


def _lookup(dotted: str) -> object:
    module, _, attributes = dotted.partition(":")
    value: object = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        value = getattr(value, attribute)
    return value
