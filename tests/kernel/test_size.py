"""The kernel is read by whoever checks the claim about amounts, so it stays as small as it says."""

import ast
import io
import tokenize
from pathlib import Path

import pytest

KERNEL = Path(__file__).parents[2] / "rules" / "kernel"
LAYOUT = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
)


def code_lines(text: str) -> int:
    """Lines that are no comments, no docstrings and not empty."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            code.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(code)


def test_only_code_is_counted() -> None:
    words = '"""A module.\n\nIts words.\n"""\n\n# more\n'
    text = words + 'X = (  # a number\n    1,\n)\n\n\ndef f():\n    """Say it."""\n    return """a\nb"""\n'

    assert code_lines(text) == 6


@pytest.mark.parametrize(("folder", "most"), [(KERNEL, 2_050), (KERNEL / "special", 310)])
def test_it_is_small(folder: Path, most: int) -> None:
    assert sum(code_lines(file.read_text()) for file in folder.glob("*.py")) <= most
