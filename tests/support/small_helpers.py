"""Count the private functions that could stand where they are called: three lines at most, and named once."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MOST_LINES = 3


class Helper(NamedTuple):
    """A private function or method with a body of at most three lines that its module names once."""

    path: Path
    line: int
    name: str


def small_helpers(path: Path) -> Iterator[Helper]:
    """Find them in one module. A docstring is not part of a body."""
    tree = ast.parse(path.read_text())
    defined = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    definitions = Counter(function.name for function in defined)
    uses = Counter(_names(tree))
    for function in defined:
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
        is_private = function.name.startswith("_") and not function.name.startswith("__")
        if is_private and lines <= _MOST_LINES and definitions[function.name] == uses[function.name] == 1:
            yield Helper(path, function.lineno, function.name)


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
