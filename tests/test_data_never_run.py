"""Nowhere is data turned into objects of any class, or into code."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
MODULES = sorted(path for package in ("rules", "proxy") for path in (HERE / package).rglob("*.py"))
FORBIDDEN = frozenset(
    "pickle _pickle cPickle marshal shelve copyreg dill cloudpickle jsonpickle deepcopy eval exec __import__".split()
)


def named(tree: ast.AST) -> Iterator[str]:
    """Every module, name and attribute that stands in a text, and what is imported under another name."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (part for name in names for part in name.name.split("."))
            case ast.ImportFrom(module=module, names=names):
                yield from (module or "").split(".")
                yield from (name.name for name in names)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name


def parsed(text: str) -> ast.AST:
    """The tree of a module. CPython 3.11 fails if the garbage collector runs a finalizer while it is built."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HERE)))
def test_no_module_unpickles_or_evaluates(path: Path) -> None:
    assert FORBIDDEN.isdisjoint(named(parsed(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "text", ["import pickle", "from copy import deepcopy as d", "import copy; copy.deepcopy(1)", "eval('1')"]
)  # fmt: skip
def test_it_would_be_seen(text: str) -> None:
    assert not FORBIDDEN.isdisjoint(named(parsed(text)))
