"""PostgreSQL's tree without special call syntax, as the outer statement is cut from it."""

from rules.sql.grammar import Json, Node


def canonical_tree(tree: Node) -> Node:
    """The tree with every call a plain one: EXTRACT, SUBSTRING FROM, AT TIME ZONE and the like become functions."""
    return {key: _plain(value) for key, value in tree.items()}


def _plain(node: Json) -> Json:
    match node:
        case list():
            return [_plain(child) for child in node]
        case dict():
            plain = {key: _plain(value) for key, value in node.items()}
            if plain.get("funcformat") == "COERCE_SQL_SYNTAX":
                plain["funcformat"] = "COERCE_EXPLICIT_CALL"
            return plain
    return node
