"""What a test file must report, read from its source before anything runs, and the form in which the judge gets it."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

_CAMEL_ASSERT = re.compile(r"assert[A-Z]")


@dataclass(frozen=True)
class Expectation:
    """A test file, prepared.

    Attributes:
        tests: its source with every compared value passed through the judge's probe, and the canary at the end.
        names: of its tests, ``function`` or ``Class.method``; each must be reported and pass.
        canary: name of a test added to fail: if it passes, the machinery lies.
        relied_on: ``module:attribute.path`` of what the tests use of other modules.
        may_skip: the source speaks of skipping or of expected failures, so that a test may be skipped.
        patches_builtins: the tests replace built-in functions themselves.
    """

    tests: str
    names: frozenset[str]
    canary: str
    relied_on: tuple[str, ...]
    may_skip: bool
    patches_builtins: bool


def expect_pytest(tests: str, seal: str) -> Expectation:
    """For functions ``test*`` and classes ``Test*``, as pytest collects them. Raises ``SyntaxError``."""
    imported = import_solution(tests)
    return _expect(imported, frozenset(_pytest_names(ast.parse(imported))), *_canary_function(seal))


def expect_unittest(tests: str, seal: str) -> Expectation:
    """For the methods ``test*`` of the class ``TestCases``. Raises ``SyntaxError``."""
    body = ast.parse(tests).body
    classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == "TestCases"]
    return _expect(tests, frozenset(name for node in classes[-1:] for name in _methods(node)), *_canary_class(seal))


def import_solution(tests: str) -> str:
    """``tests`` with an import of what it takes from the solution, where it has none.

    Half of KodCode's files use the solution's names without importing them, and some come with an implementation of
    the very function that they test, which is left out: a function ``f`` beside a test ``test_f...``.
    """
    tree = ast.parse(tests)
    if any(_imports_solution(node) for node in ast.walk(tree)):
        return tests
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    tested = [name for name in functions if any(other.startswith(f"test_{name}") for other in functions)]
    tree.body = [node for node in tree.body if node not in [functions[name] for name in tested]]
    if missing := sorted(_free_names(ast.unparse(tree))):
        tree.body.insert(_after_preamble(tree), ast.parse(f"from solution import {', '.join(missing)}").body[0])
    return ast.unparse(tree)


def _imports_solution(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(name.name == "solution" for name in node.names)
    return isinstance(node, ast.ImportFrom) and node.module == "solution"


def _free_names(source: str) -> set[str]:
    """Global names that are read somewhere and bound nowhere."""
    top = symtable.symtable(source, "tests", "exec")
    read: set[str] = set()
    bound = {"__name__", "__file__", "__doc__", *dir(builtins)}
    scopes = [top]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if scope is top or symbol.is_global():
                read |= {symbol.get_name()} if symbol.is_referenced() else set()
                bound |= {symbol.get_name()} if symbol.is_assigned() or symbol.is_imported() else set()
    return read - bound


def _expect(tests: str, names: frozenset[str], canary: str, canary_source: str) -> Expectation:
    tree = ast.parse(tests)
    return Expectation(
        tests=f"{_probing(tree)}\n\n{canary_source}",
        names=names,
        canary=canary,
        relied_on=tuple(sorted(set(_relied_on(tree)))),
        may_skip=bool(re.search(r"skip|xfail|expectedFailure", tests)),
        patches_builtins="builtins" in tests,
    )


def _pytest_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if _is_test(node):
            yield node.name
        elif isinstance(node, ast.ClassDef) and _is_collected(node):
            yield from (name.replace(".", "::") for name in _methods(node))


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _is_collected(node: ast.ClassDef) -> bool:
    has_init = any(isinstance(inner, ast.FunctionDef) and inner.name == "__init__" for inner in node.body)
    is_case = any("TestCase" in ast.unparse(base) for base in node.bases)
    return is_case or (node.name.startswith("Test") and not has_init)


def _methods(node: ast.ClassDef) -> Iterator[str]:
    return (f"{node.name}.{inner.name}" for inner in node.body if _is_test(inner))


def _canary_function(seal: str) -> tuple[str, str]:
    name = f"test_{seal[:8]}"
    return name, f"def {name}():\n    assert len('{seal[8:16]}') == 9\n"


def _canary_class(seal: str) -> tuple[str, str]:
    name, method = f"Test{seal[:8]}", f"test_{seal[8:16]}"
    body = f"    def {method}(self):\n        self.assertEqual(8, 9)\n"
    return f"{name}.{method}", f"import unittest\n\nclass {name}(unittest.TestCase):\n{body}"


class _Probing(ast.NodeTransformer):
    """``assert a == b`` to ``assert probed(a) == probed(b)``, and the arguments of ``self.assertEqual`` alike."""

    def __init__(self) -> None:
        self.inside_assert = False

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.inside_assert = True
        node.test = self.visit(node.test)
        self.inside_assert = False
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if self.inside_assert:
            node.left = _call_probe(node.left)
            node.comparators = [_call_probe(value) for value in node.comparators]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        on_self = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        if on_self and function.value.id == "self" and _CAMEL_ASSERT.match(function.attr):
            node.args = [value if isinstance(value, ast.Starred) else _call_probe(value) for value in node.args]
        return node


def _call_probe(value: ast.expr) -> ast.expr:
    if isinstance(value, ast.Constant):
        return value
    return ast.Call(func=ast.Name("_probed", ast.Load()), args=[value], keywords=[])


def _probing(tree: ast.Module) -> str:
    tree = ast.fix_missing_locations(_Probing().visit(tree))
    tree.body.insert(_after_preamble(tree), ast.parse("from _probe import probed as _probed").body[0])
    return ast.unparse(tree)


def _after_preamble(tree: ast.Module) -> int:
    """Where imports may go: after the docstring and ``from __future__``, which must come first."""
    future = [isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body]
    is_docstring = ast.get_docstring(tree) is not None
    return max([index + 1 for index, first in enumerate(future) if first] or [int(is_docstring)])


def _relied_on(tree: ast.Module) -> Iterator[str]:
    """Imported names and the attribute chains that begin with one."""
    aliases = dict(_aliases(tree))
    yield from aliases.values()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, _, rest = ast.unparse(node).partition(".")
            if root in aliases and re.fullmatch(r"[\w.]+", rest):
                module = aliases[root]
                yield f"{module}.{rest}" if not module.endswith(":") else f"{module}{rest}"


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Local name to ``module:`` or ``module:attribute``; the solution itself is no one's to rely on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                # ``import a.b`` binds a, and imports both.
                bound = name.name if name.asname else name.name.partition(".")[0]
                yield name.asname or bound, f"{bound}:"
        elif isinstance(node, ast.ImportFrom) and node.module and node.module not in ("solution", "__future__"):
            yield from ((name.asname or name.name, f"{node.module}:{name.name}") for name in node.names)
