"""PostgreSQL's tree of a statement as plain dicts, in the JSON form that libpg_query gives: {"ColumnRef": {…}}.

The JSON leaves out what is empty, zero or false.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
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
        tree = waiting.pop()
        if type(tree) is dict:
            yield tree
            for child in reversed(tree.values()):
                if type(child) in TREES:
                    waiting.append(child)
        elif type(tree) is list:
            waiting.extend(reversed(tree))


class Index:
    """A tree and what it holds, found in one walk: the dicts that have a field or are a wrapped node, by its name,
    outermost first, and all texts."""

    def __init__(self, tree: Node) -> None:
        self.tree = tree
        self._holders: dict[str, list[Node]] = defaultdict(list)
        self._texts: set[str] = set()
        self._add((tree,))

    def _add(self, nodes: Iterable[Json]) -> None:
        holders_of = self._holders
        for node in nodes:
            if type(node) is dict:
                for key in node:
                    holders_of[key].append(node)
                self._add(node.values())
            elif type(node) is list:
                self._add(node)
            elif type(node) is str:
                self._texts.add(node)

    @cached_property
    def words(self) -> AbstractSet[str]:
        """The names of all fields and kinds of nodes, and all texts: what is not there need not be looked for."""
        return self._texts | self._holders.keys()

    def holders(self, key: str) -> Sequence[Node]:
        """Every dict that has this key."""
        return self._holders.get(key, ())

    def bodies(self, name: str) -> list[Node]:
        """The bodies of all wrapped nodes of one kind."""
        return [body for holder in self.holders(name) if isinstance(body := holder[name], dict)]


def holders(node: Json, key: str) -> list[Node]:
    """Every dict below and at a node that has this key, outermost first."""
    holding: list[Node] = []
    _collect((node,), key, holding)
    return holding


def _collect(nodes: Iterable[Json], key: str, holding: list[Node]) -> None:
    """Add the dicts below some nodes that have a key. Planning does this some twenty times: each call counts."""
    for node in nodes:
        if type(node) is dict:
            if key in node:
                holding.append(node)
            _collect(node.values(), key, holding)
        elif type(node) is list:
            _collect(node, key, holding)


def bodies(node: Json, name: str) -> list[Node]:
    """The bodies of all wrapped nodes of one kind below and at a node, outermost first."""
    return [body for holder in holders(node, name) if isinstance(body := holder[name], dict)]


def kind(node: Json) -> tuple[str, Node]:
    """The name and the body of a wrapped node: {"ColumnRef": {...}}."""
    if type(node) is dict and len(node) == 1:
        for name, body in node.items():
            if type(body) is dict:
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
        if type(one) is dict and type(other) is dict:
            if one.keys() != other.keys():
                one, other = _without_places(one), _without_places(other)
            if one.keys() != other.keys():
                return False
            pairs += [(child, other[key]) for key, child in one.items() if key not in PLACES]
        elif type(one) is list and type(other) is list and len(one) == len(other):
            pairs += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _without_places(node: Node) -> Node:
    """A node without what says where it stands, and without fields that are null."""
    return {key: child for key, child in node.items() if key not in PLACES and child is not None}


def text_of(node: Json) -> str:
    """A tree as text: those of equal trees are equal if the fields are in one order, and those of others are not."""
    return _AS_TEXT.encode(node)


_AS_TEXT = json.JSONEncoder(check_circular=False, separators=(",", ":"))


@overload
def copied(node: Node) -> Node: ...
@overload
def copied(node: Json) -> Json: ...
def copied(node: Json) -> Json:
    """Copy a tree: what is changed in the copy is changed nowhere else."""
    if isinstance(node, dict):
        return {key: copied(child) for key, child in node.items()}
    return [copied(child) for child in node] if isinstance(node, list) else node


_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_FIELDS = {1 << 1: "month", 1 << 2: "year", 1 << 3: "day", 1 << 10: "hour", 1 << 11: "minute", 1 << 12: "second"}


def make_canonical(index: Index) -> None:
    """Make every call in a tree a plain one: EXTRACT, SUBSTRING FROM, AT TIME ZONE and the like become functions."""
    for call in index.holders("funcformat"):
        if call["funcformat"] == "COERCE_SQL_SYNTAX":
            call["funcformat"] = "COERCE_EXPLICIT_CALL"
    for cast in index.holders("typeName"):
        # interval '90' day is '90 day'::interval day: as a column that is of another type than '90 day'::interval.
        amount, fields = _amount_and_fields(cast)
        if fields in _FIELDS and _WHOLE.fullmatch(amount) is not None:
            cast["arg"] = {"A_Const": {"sval": {"sval": f"{amount} {_FIELDS[fields]}"}, "location": -1}}


def made_canonical(tree: Node) -> Node:
    """The same of a tree that nobody else has."""
    make_canonical(Index(tree))
    return tree


def type_of_cast(cast: Node) -> Node:
    """The type that a value is cast to: of '90 day'::interval day it is interval, for its field cuts nothing off."""
    amount, fields = _amount_and_fields(cast)
    type_name = cast["typeName"]
    assert isinstance(type_name, dict), "a cast has a type"
    if fields not in _FIELDS or _WHOLE.fullmatch(amount.removesuffix(f" {_FIELDS[fields]}")) is None:
        return type_name
    return {key: each for key, each in type_name.items() if key != "typmods"}


def _amount_and_fields(cast: Node) -> tuple[str, int]:
    """The text that is cast to an interval of some fields; of any other cast an empty one, and no field."""
    type_name = cast["typeName"]
    if not isinstance(type_name, dict) or strings(type_name.get("names"))[-1:] != ("interval",):
        return "", 0
    amount, fields = (_constant(node) for node in (cast.get("arg"), next(iter(items(type_name, "typmods")), None)))
    return (amount, fields) if isinstance(amount, str) and isinstance(fields, int) else ("", 0)


def _constant(node: Json) -> Json:
    """The value of a constant."""
    name, body = kind(node)
    for field in ("sval", "ival") if name == "A_Const" else ():
        if isinstance(value := body.get(field), dict):
            return value.get(field)
    return None
