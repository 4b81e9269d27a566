"""One spelling for one meaning: PostgreSQL's tree without special call syntax, printed by PostgreSQL's own grammar."""

from rules.sql.grammar import Json, Node, deparse


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


def canonical_text(tree: Node) -> str:
    return deparse(canonical_tree(tree))
