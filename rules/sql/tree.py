"""PostgreSQL's tree of a statement as plain dicts, in the JSON form that libpg_query gives: {"ColumnRef": {…}}.

The JSON leaves out what is empty, zero or false.
"""

from collections.abc import Iterator
from typing import overload

Node = dict[str, "Json"]
Json = Node | list["Json"] | str | int | float | bool | None

TREES = (dict, list)  # all else is a leaf

PLACES = frozenset(
    ("location", "stmt_location", "stmt_len", "rexpr_list_start", "rexpr_list_end", "list_start", "list_end")
)


def walk(node: Json) -> Iterator[Node]:
    """Every dict below and at a node, outermost first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting.extend(reversed(found.values()))
        elif isinstance(found, list):
            waiting.extend(reversed(found))


def kind(node: Json) -> tuple[str, Node]:
    """The name and the body of a wrapped node: {"ColumnRef": {...}}."""
    if isinstance(node, dict) and len(node) == 1:
        for name, body in node.items():
            if isinstance(body, dict):
                return name, body
    return "", {}


def items(body: Node, key: str) -> list[Json]:
    """A list below a node."""
    found = body.get(key)
    return found if isinstance(found, list) else []


def strings(nodes: Json) -> tuple[str, ...]:
    """The texts of a list of String nodes; "*" for A_Star."""
    found = []
    for node in nodes if isinstance(nodes, list) else ():
        name, body = kind(node)
        found.append("*" if name == "A_Star" else str(body.get("sval", "")))
    return tuple(found)


def same(left: Json, right: Json) -> bool:
    """Equal trees, wherever they stand. Trees may be deeper than calls within calls can be."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            pairs += [(one.get(key), other.get(key)) for key in (one.keys() | other.keys()) - PLACES]
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            pairs += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


@overload
def copied(node: Node) -> Node: ...
@overload
def copied(node: Json) -> Json: ...
def copied(node: Json) -> Json:
    """Copy a tree: what is changed in the copy is changed nowhere else."""
    if isinstance(node, dict):
        return {key: copied(child) for key, child in node.items()}
    return [copied(child) for child in node] if isinstance(node, list) else node
