"""Where in the analyst's text a refusal points: at the first place of the name that it quotes."""

import re

from rules.refusal import Refusal
from rules.sql.grammar import Node, strings, walk

QUOTED = re.compile(r'"([^"]+)"')


def find_position(refusal: Refusal, tree: Node, text: str) -> int | None:
    """Characters from 1; None when the refusal names nothing that stands in the text.

    Example:
        >>> from rules.sql.grammar import parse
        >>> (piece,) = parse("SELECT a, foo(b) FROM t")
        >>> find_position(Refusal('the function "foo" is not supported'), piece.tree, "SELECT a, foo(b) FROM t")
        11
    """
    quoted = QUOTED.search(refusal.message)
    if quoted is None:
        return None
    name = quoted[1].removesuffix("(…)").rpartition(".")[2]
    found = [place for node in walk(tree) if (place := _place(node, name)) is not None]
    return len(text.encode()[: min(found)].decode("utf-8", "replace")) + 1 if found else None


def _place(node: Node, name: str) -> int | None:
    """The byte where a function, a column or a table of this name begins."""
    given = strings(node.get("funcname")) or strings(node.get("fields")) or (node.get("relname"),)
    location = node.get("location", 0)
    return location if given[-1] == name and isinstance(location, int) and location >= 0 else None
