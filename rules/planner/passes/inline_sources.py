"""Items of FROM and calls as the queries and expressions that they stand for: views, functions in SQL, VALUES, f(…).

Views that the rules name are read as the queries that define them, so that they prove no more than their tables do. A
call of the schema's function becomes the expression that its body is, as in PostgreSQL where a body is one SELECT of
one expression. A call stays as it is where its meaning needs more than that: overloaded names, arguments by name, types
that are known only at the call, bodies that read a table. FROM f(…) AS d becomes FROM (SELECT * FROM f(…) AS d) AS d,
and a list of VALUES likewise: one kind of item less. A function that reads the items beside it stays as it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from rules.catalog import Catalog, Routine, Table, TableName
from rules.frozen import frozen
from rules.kernel.render import qualified
from rules.planner.find_blocks import is_aggregate
from rules.planner.tables import Tables, replace_relations, source, tables_of
from rules.policy.model import Policy
from rules.refusal import NotSupported, TooComplex
from rules.sql.grammar import Unreadable, parse
from rules.sql.selects import column_name
from rules.sql.tree import PLACES, Index, Json, Node, copied, holders, items, kind, made_canonical, strings, walk

FindView = Callable[[str | None, str], Table | None]
_MOST_NESTED_VIEWS = 32
_END = re.compile(r"[;\s]*$")
_MOST_NESTED: Final = 16  # a function that calls itself never ends
_MOST_NODES: Final = 20_000  # of one expression
_OTHER_CLAUSES: Final = (
    "fromClause", "whereClause", "groupClause", "havingClause", "sortClause", "distinctClause", "limitCount",
    "limitOffset", "windowClause", "withClause", "valuesLists",
)  # fmt: skip
_PLAIN_CALL: Final = frozenset(("funcname", "args", "funcformat", "location"))
# Cast to, these are of length 1; as the type of a parameter they have any. Of the others only a call knows the type.
_UNFIT: Final = ("bpchar", "bit", "record", "any", "anyelement", "anyarray", "anynonarray", "anyenum", "anycompatible")


def inline_views(index: Index, tables: Tables) -> Node:
    """Replace every view by its definition, under the view's name or alias."""
    return _inlined(index, tables.find_view)


def _inlined(index: Index, find_view: FindView, depth: int = 0) -> Node:
    if all(find_view(schema, name) is None for schema, name in tables_of(index)):
        return index.tree

    def instead(schema: str | None, name: str) -> Node | None:
        view = find_view(schema, name)
        if view is None:
            return None
        if depth == _MOST_NESTED_VIEWS:
            raise TooComplex(f"views are nested more than {_MOST_NESTED_VIEWS} levels deep")
        return _inlined(Index(defined(view)), find_view, depth + 1)

    return replace_relations(index.tree, instead)


def count_over(view: Table, policy: Policy, catalog: Catalog) -> Node:
    """SELECT count(*) FROM a view, as the query over its tables that it is."""

    def find_view(schema: str | None, name: str) -> Table | None:
        named = TableName(str(schema), name)
        rules = policy.find_table(named)
        return catalog.find_table(named) if rules is not None and rules.view else None

    (piece,) = parse(f"SELECT count(*) FROM {qualified(view.name)}")
    return _inlined(Index(made_canonical(piece.tree)), find_view)


def defined(view: Table) -> Node:
    """FROM (the view's query) AS its name. PostgreSQL printed the query with every name in full."""
    assert view.definition is not None
    name = view.name.name.replace('"', '""')
    try:
        return made_canonical(source(f'({_END.sub("", view.definition)}) AS "{name}"'))
    except Unreadable:  # PostgreSQL prints the marks of CYCLE with casts, which its own grammar does not read
        raise NotSupported(f'the definition of view "{view.name.name}" cannot be parsed') from None


@frozen
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


def inline_functions(index: Index, tables: Tables) -> Node:
    """Replace every call of a function that is one expression, from the outermost inwards."""
    inliner = _Inliner(tables)
    if not inliner.has_routines or all(inliner.find(node) is None for node in index.holders("FuncCall")):
        return index.tree
    made = inliner.replaced(index.tree, 0)
    assert isinstance(made, dict)
    return made


class _Inliner:
    def __init__(self, tables: Tables) -> None:
        self._search_path = tables.context.search_path
        self._routines = {routine.name: routine for routine in tables.context.catalog.routines if routine.definition}
        self._read: dict[TableName, _Inline | None] = {}
        self._nodes = 0

    @property
    def has_routines(self) -> bool:
        return bool(self._routines)

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
        _, function = kind(made_canonical(piece.tree))
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
    return made_canonical(piece.tree)


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


def wrap_sources(index: Index, _: Tables) -> Node:
    """Make a query of every function and list of VALUES in FROM."""
    has_such = index.holders("RangeFunction") or index.holders("valuesLists")
    if not has_such or not any(map(_is_wrapped, _sources(index.tree))):
        return index.tree
    made, numbers = copied(index.tree), count(1)
    for owner in list(walk(made)):
        sources = items(owner, "fromClause")
        sources[:] = (_as_query(source, numbers) for source in sources)
        for side in ("larg", "rarg"):
            if side in owner:
                owner[side] = _as_query(owner[side], numbers)
    return made


def _sources(tree: Node) -> Iterator[Json]:
    for owner in holders(tree, "fromClause"):
        yield from items(owner, "fromClause")
    for side in ("larg", "rarg"):
        yield from (owner[side] for owner in holders(tree, side))


def _is_wrapped(item: Json) -> bool:
    name, body = kind(item)
    is_values = name == "RangeSubselect" and bool(items(kind(body.get("subquery"))[1], "valuesLists"))
    is_bare = (is_values or name == "RangeFunction") and not body.get("lateral")
    return is_bare and not holders(body, "ColumnRef")


def _as_query(item: Json, numbers: Iterator[int]) -> Json:
    if not _is_wrapped(item):
        return item
    body = kind(item)[1]
    alias = kind({"Alias": body.get("alias")})[1].get("aliasname") or _own_name(body, numbers)
    query: Node = {
        "targetList": [{"ResTarget": {"val": {"ColumnRef": {"fields": [{"A_Star": {}}]}}}}],
        "fromClause": [item],
        "limitOption": "LIMIT_OPTION_DEFAULT",
        "op": "SETOP_NONE",
    }
    return {"RangeSubselect": {"subquery": {"SelectStmt": query}, "alias": {"aliasname": alias}}}


def _own_name(body: Node, numbers: Iterator[int]) -> str:
    """Return what FROM f(…) without an alias is called: as a select item is. VALUES without one has no name."""
    functions = items(body, "functions")[:1]
    return column_name(items(kind(functions[0])[1], "items")[0]) if functions else f"_ng_values{next(numbers)}"
