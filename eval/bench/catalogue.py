"""Which benchmarks there are, found by reading the folder: a module with a ``main`` function is one."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parent


def find_benches(folder: Path = FOLDER) -> dict[str, str]:
    """Name to the first line of its docstring, in alphabetic order. Nothing is imported: a bench may load vLLM."""
    found = {}
    for path in sorted(folder.glob("[!_]*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in module.body):
            found[path.stem] = (ast.get_docstring(module) or "").partition("\n")[0]
    return found
