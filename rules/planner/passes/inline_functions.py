"""Functions of the schema in SQL: a call becomes the expression that its body is, to be used over protected rows.

PostgreSQL does the same where a body is one SELECT of one expression. A call stays as it is where its meaning needs
more than that: overloaded names, arguments by name, types that are known only at the call, bodies that read a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rules.catalog import Routine, TableName
from rules.planner.block_leaves import is_aggregate
from rules.planner.tables import Tables
from rules.refusal import TooComplex
from rules.sql.grammar import Json, Node, Unreadable, holders, items, kind, parse, strings, walk
from rules.sql.selects import column_name
from rules.sql.tree import PLACES, canonical_tree, copied

_MOST_NESTED: Final = 16  # a function that calls itself never ends
_MOST_NODES: Final = 20_000  # of one expression
_OTHER_CLAUSES: Final = (
    "fromClause", "whereClause", "groupClause", "havingClause", "sortClause", "distinctClause", "limitCount",
    "limitOffset", "windowClause", "withClause", "valuesLists",
)  # fmt: skip
_PLAIN_CALL: Final = frozenset(("funcname", "args", "funcformat", "location"))
# Cast to, these are of length 1; as the type of a parameter they have any. Of the others only a call knows the type.
_UNFIT: Final = ("bpchar", "bit", "record", "any", "anyelement", "anyarray", "anynonarray", "anyenum", "anycompatible")


@dataclass(frozen=True, slots=True)
class _Inline:
    """A function as an expression over its parameters."""

    expression: Json
    names: tuple[str, ...]  # of the parameters; "" where one has none
    types: tuple[Node, ...]
    defaults: tuple[Json, ...]  # None where one has none
    result: Node
    is_strict: bool

    def takes(self, arguments: int) -> bool:
        """Return whether a call has so many arguments, or leaves out those that have defaults."""
        return arguments <= len(self.types) and all(default is not None for default in self.defaults[arguments:])


def inline_functions(tree: Node, tables: Tables) -> Node:
    """Replace every call of a function that is one expression, from the outermost inwards."""
    inliner = _Inliner(tables)
    if all(inliner.find(node) is None for node in holders(tree, "FuncCall")):
        return tree
    made = inliner.replaced(tree, 0)
    assert isinstance(made, dict)
    return made


class _Inliner:
    def __init__(self, tables: Tables) -> None:
        self._search_path = tables.context.search_path
        self._routines = {routine.name: routine for routine in tables.context.catalog.routines if routine.definition}
        self._read: dict[TableName, _Inline | None] = {}
        self._nodes = 0

    def replaced(self, node: Json, depth: int) -> Json:
        """The same tree with expressions instead of calls. Select items keep their names."""
        if isinstance(node, list):
            return [self.replaced(child, depth) for child in node]
        if not isinstance(node, dict):
            return node
        name, body = kind(node)
        if (inline := self.find(node)) is not None:
            return self.replaced(self._expression(inline, body, depth), depth + 1)
        made = {key: self.replaced(child, depth) for key, child in node.items()}
        if name == "ResTarget" and "val" in body and "name" not in body:
            value = kind(made)[1].get("val")
            if column_name(value) != column_name(body["val"]):
                return {name: {"name": column_name(body["val"]), **kind(made)[1]}}
        return made

    def find(self, node: Node) -> _Inline | None:
        """The function of a plain call; None of anything else."""
        name, call = kind(node)
        if name != "FuncCall" or not call.keys() <= _PLAIN_CALL:
            return None
        if any(kind(argument)[0] == "NamedArgExpr" for argument in items(call, "args")):
            return None
        *schema, name = strings(call.get("funcname"))
        for schema_name in schema or self._search_path:
            routine = self._routines.get(TableName(schema_name, name))
            if routine is not None and not routine.is_overloaded:
                if routine.name not in self._read:
                    self._read[routine.name] = _inline_of(routine)
                inline = self._read[routine.name]
                return inline if inline is not None and inline.takes(len(items(call, "args"))) else None
        return None

    def _expression(self, function: _Inline, call: Node, depth: int) -> Node:
        if depth == _MOST_NESTED:
            raise TooComplex(f"functions are nested more than {_MOST_NESTED} levels deep")
        location, nodes = call.get("location", -1), items(call, "args")
        nodes = [*nodes, *(_filled(default, (), (), location) for default in function.defaults[len(nodes) :])]
        arguments = [_cast(node, to) for node, to in zip(nodes, function.types, strict=True)]
        made = _cast(_filled(function.expression, arguments, function.names, location), function.result)
        if function.is_strict and arguments:
            made = _unless_null(made, nodes)
        self._nodes += sum(1 for _ in walk(made))
        if self._nodes > _MOST_NODES:
            raise TooComplex("the functions of the statement are too long where they are written out")
        return made


def _inline_of(routine: Routine) -> _Inline | None:
    """Read a definition; None where the function is more than an expression."""
    try:
        (piece,) = parse(routine.definition)
        _, function = kind(canonical_tree(piece.tree))
        expression = _expression_of(function)
    except (Unreadable, ValueError):
        return None
    parameters = [kind(node)[1] for node in items(function, "parameters")]
    types = [parameter.get("argType") for parameter in parameters] + [function.get("returnType")]
    is_plain = all(parameter.get("mode") in ("FUNC_PARAM_DEFAULT", "FUNC_PARAM_IN") for parameter in parameters)
    fit = [node for node in types if isinstance(node, dict) and _is_fit(node)]
    if expression is None or not is_plain or len(fit) < len(types):
        return None
    return _Inline(
        expression,
        tuple(str(parameter.get("name", "")) for parameter in parameters),
        tuple(fit[:-1]),
        tuple(parameter.get("defexpr") for parameter in parameters),
        fit[-1],
        _option(function, "strict") is not None,
    )


def _expression_of(function: Node) -> Json:
    """The only expression of a body, in its old or its new form, that reads nothing."""
    returned = kind(function.get("sql_body"))
    if returned[0] == "ReturnStmt":
        value = returned[1].get("returnval")
    else:
        select = kind(_statement_of(function))
        targets = items(select[1], "targetList")
        if select[0] != "SelectStmt" or len(targets) != 1 or any(clause in select[1] for clause in _OTHER_CLAUSES):
            return None
        value = kind(targets[0])[1].get("val")
    reads = any("SubLink" in node or "over" in node or is_aggregate(node) for node in walk(value))
    return None if reads else value


def _statement_of(function: Node) -> Json:
    """The only statement of a body; raises ValueError where there are several."""
    body = function.get("sql_body")
    if body is not None:
        (block,) = items(kind(body)[1], "items")
        (statement,) = items(kind(block)[1], "items")
        return statement
    (text,) = strings(items(kind(_option(function, "as"))[1], "items"))
    (piece,) = parse(text)
    return canonical_tree(piece.tree)


def _option(function: Node, name: str) -> Json:
    options = [kind(node)[1] for node in items(function, "options")]
    return next((option.get("arg") for option in options if option.get("defname") == name), None)


def _is_fit(type_name: Node) -> bool:
    names = strings(type_name.get("names"))
    return "setof" not in type_name and names[-1:] != () and not names[-1].startswith(_UNFIT)


def _filled(node: Json, arguments: Sequence[Node], names: Sequence[str], location: Json) -> Json:
    """A body with arguments for its parameters. What it says wrong is said of the call."""
    if isinstance(node, list):
        return [_filled(child, arguments, names, location) for child in node]
    if not isinstance(node, dict):
        return node
    name, body = kind(node)
    if name == "ParamRef" and isinstance(number := body.get("number"), int) and 0 < number <= len(arguments):
        return copied(arguments[number - 1])
    if name == "ColumnRef" and (field := strings(body.get("fields"))[-1]) in names:
        return copied(arguments[names.index(field)])
    return {
        key: location if key in PLACES else _filled(child, arguments, names, location) for key, child in node.items()
    }


def _cast(value: Json, to: Node) -> Node:
    return {"TypeCast": {"arg": value, "typeName": copied(to), "location": -1}}


def _unless_null(expression: Node, arguments: Sequence[Json]) -> Node:
    """CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE expression END."""
    tests: list[Json] = [{"NullTest": {"arg": copied(argument), "nulltesttype": "IS_NULL"}} for argument in arguments]
    test: Json = tests[0] if len(tests) == 1 else {"BoolExpr": {"boolop": "OR_EXPR", "args": tests}}
    null: Node = {"A_Const": {"isnull": True}}
    when: Mapping[str, Json] = {"expr": test, "result": null}
    return {"CaseExpr": {"args": [{"CaseWhen": dict(when)}], "defresult": expression}}
