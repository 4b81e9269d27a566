"""Where in the analyst's text a refusal points: at what it quotes, or else at what it is about.

Names are looked for in PostgreSQL's tree of the text, SQL words among its tokens. The first place of a name is taken; a
word that stands there more than once points nowhere.
"""

import re

from rules.refusal import Refusal
from rules.sql.grammar import Json, Node, strings, walk
from rules.sql.limits import tokens

QUOTED = re.compile(r'"([^"]+)"')


def find_position(refusal: Refusal, tree: Node, text: str) -> int | None:
    """Characters from 1; None when the refusal names nothing that stands in the text.

    Example:
        >>> from rules.sql.grammar import parse
        >>> text = "SELECT a, foo(b) FROM t LIMIT 3"
        >>> (piece,) = parse(text)
        >>> find_position(Refusal('the function "foo" is not supported'), piece.tree, text)
        11
        >>> find_position(Refusal("rows are not given out", about="LIMIT"), piece.tree, text)
        25
    """
    quoted = QUOTED.search(refusal.message)
    for name in (quoted[1].removesuffix("(…)").rpartition(".")[2] if quoted else "", refusal.about):
        found = [place for node in walk(tree) if (place := _place(node, name)) is not None] if name else []
        if found:
            return len(text.encode()[: min(found)].decode("utf-8", "replace")) + 1
    words = [start for word, start in tokens(text) if word.upper() == refusal.about] if refusal.about else []
    return words[0] + 1 if len(words) == 1 else None


def _place(node: Node, name: str) -> int | None:
    """The byte where a function, a column, a table or a constant of this name begins."""
    location = node.get("location", 0)
    return location if name in _names(node) and isinstance(location, int) and location >= 0 else None


def _names(node: Node) -> tuple[Json, ...]:
    """What a node that has a place in the text is called."""
    whole = strings(node.get("funcname")) or strings(node.get("fields"))
    if whole:
        return whole[-1:]
    alias, constant = node.get("alias"), node.get("sval")
    if "relname" in node:
        return node["relname"], alias.get("aliasname") if isinstance(alias, dict) else None
    return (constant.get("sval"),) if isinstance(constant, dict) else ()
