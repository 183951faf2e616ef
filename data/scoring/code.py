"""From a response to the program in it, and to the test file that is run against it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

from data.scoring.final_answer import marked_answer

_FENCE = re.compile(
    r"^[ \t]*(?:```|~~~)[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)|\Z)", re.DOTALL | re.MULTILINE
)
_PYTHON = ("", "python", "py", "python3")
_STATEMENT = re.compile(r"^(?:(?:from|import|def|async def|class) |@)", re.MULTILINE)


def extract_code(response: str, names: Collection[str] = ()) -> str:
    """The program of a response.

    Of several fenced blocks the last one that defines any of ``names`` (a response may go on with an example of use),
    else the last one that is valid Python, else the last; a fence left open ends with the text. A marked answer is
    looked into first. Without fences: all of the text if it is Python, else the longest stretch of it that is, from a
    line that begins a statement on.
    """
    for text in (marked_answer(response), response):
        if text and (blocks := _blocks(text)):
            return _best(blocks, names)
    return _unfenced(marked_answer(response) or response)


def defined_names(code: str) -> frozenset[str]:
    """What the top level of ``code`` binds: functions, classes, imports, variables; nothing for what is not Python."""
    tree = parse(code)
    return frozenset(name for node in tree.body for name in _bound(node)) if tree else frozenset()


def kodcode_tests(tests: str, reference: str) -> str:
    """KodCode's test file, made to test the program that is scored.

    The published pipeline puts ``from solution import *`` before every test file. Two departures (ours): only names
    that the reference solution binds are taken over, or a solution could bring an ``all`` that is always true; and a
    test file's own copy of a function of the reference is dropped, or it would test its copy whatever was answered.
    """
    tree = parse(tests)
    if tree is None:
        return tests
    names = {name for name in defined_names(reference) if not name.startswith("test")}
    functions = {node.name for node in _functions(parse(reference))} & names
    kept = [node for node in tree.body if not (isinstance(node, _FUNCTION) and node.name in functions)]
    future = [node for node in kept if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    rest = [node for node in kept if node not in future]
    takeover = _TAKEOVER.format(names=sorted(names))
    body = [ast.unparse(ast.Module([node], [])) for node in future] + [takeover]
    return "\n".join([*body, ast.unparse(ast.Module(rest, []))]) + "\n"


def parse(code: str) -> ast.Module | None:
    """The syntax tree, or ``None`` for what is not Python."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_TAKEOVER = (
    "import solution as _solution\n"
    "globals().update({{name: getattr(_solution, name) for name in {names} if hasattr(_solution, name)}})"
)


def _blocks(text: str) -> list[str]:
    found = [(language.lower(), block) for language, block in _FENCE.findall(text)]
    return [block for language, block in found if language in _PYTHON]


def _best(blocks: Sequence[str], names: Collection[str]) -> str:
    defining = [block for block in blocks if not defined_names(block).isdisjoint(names)]
    valid = [block for block in blocks if block.strip() and parse(block) is not None]
    return (defining or valid or blocks)[-1]


def _unfenced(text: str) -> str:
    if parse(text) is not None:
        return text
    begins = [match.start() for match in _STATEMENT.finditer(text)]
    if not begins:
        return text
    lines = text[begins[0] :].split("\n")
    for last in range(len(lines), 0, -1):
        if parse("\n".join(lines[:last])) is not None:
            return "\n".join(lines[:last])
    return text


def _functions(tree: ast.Module | None) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in tree.body if isinstance(node, _FUNCTION)] if tree else []


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, (*_FUNCTION, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names if alias.name != "*"]
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
