"""The shape of the code: no module needs itself, and few helpers stand apart from their one caller."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from tests.support.small_helpers import small_helpers

ROOT = Path(__file__).parent.parent


def modules() -> dict[str, Path]:
    paths = (path for top in ("rules", "proxy") for path in (ROOT / top).rglob("*.py"))
    names = (path.relative_to(ROOT).with_suffix("").parts for path in paths if "client" not in path.parts)
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): ROOT.joinpath(*parts) for parts in names}


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that one imports, wherever it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.with_suffix(".py").read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known.keys()
            found |= inner or {node.module}
    return found & known.keys()


def test_imports_make_no_circle() -> None:
    known = modules()
    graph = {name: imported(path, known) - {name} for name, path in known.items()}

    assert len(list(TopologicalSorter(graph).static_order())) == len(known) > 300


def test_few_helpers_of_three_lines_have_one_caller() -> None:
    found = [helper for path in modules().values() for helper in small_helpers(path.with_suffix(".py"))]

    assert len(found) <= 372
