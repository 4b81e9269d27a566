"""Compute of public rows what only PostgreSQL can: by a subquery over them alone, which is answered before.

Over protected rows an expression must fail on no row, so only listed functions are there. A public table's own values
may be computed with any function: WHERE to_tsvector(p.name) @@ to_tsquery('x') becomes WHERE p.id IN (SELECT p.id FROM
products AS p WHERE to_tsvector(p.name) @@ to_tsquery('x')), and FROM products AS p, unnest(p.tags) AS t becomes FROM
products AS p, (SELECT p.id AS noisegate_key, t.* FROM products AS p, unnest(p.tags) AS t) AS t with t.noisegate_key =
p.id. The table needs a column that tells its rows apart.
"""

from collections.abc import Iterator, Sequence

from rules.functions.registry import FUNCTIONS, OPERATORS
from rules.planner.passes.table_reads import (
    TableRead,
    alias_of,
    column_of,
    conjuncts_of,
    reference,
    table_of,
    tells_rows,
)
from rules.planner.tables import Tables
from rules.sql.tree import Index, Json, Node, bodies, copied, holders, items, kind, strings

_KEY = "noisegate_key"


def read_public_apart(index: Index, tables: Tables) -> Node:
    """Rewrite conditions on one public table, and functions in FROM of its columns, that need PostgreSQL itself."""
    ctes = frozenset(str(body.get("ctename")) for body in index.bodies("CommonTableExpr"))
    made = copied(index.tree)
    changed = [
        _Select(body, tables, ctes).rewrite()
        for body in bodies(made, "SelectStmt")
        if tables.are_read({"fromClause": body.get("fromClause")})  # what is of public rows alone is answered whole
    ]
    return made if any(changed) else index.tree


class _Select:
    """One SELECT: the public tables in its FROM, each with a key, and where they stand."""

    def __init__(self, body: Node, tables: Tables, ctes: frozenset[str]) -> None:
        self._body = body
        found = list(_sources(items(body, "fromClause")))
        self._sources = [source for source, _ in found]
        self._public: dict[str, tuple[TableRead, str, Json]] = {}
        self._read: list[TableRead] = []
        self._all_known = True
        for source, may_be_missing in found:
            table = table_of(source, tables, ctes)
            if table is None:
                self._all_known = False
                continue
            read = TableRead(alias_of(kind(source)[1]), table)
            self._read.append(read)
            rules = tables.context.policy.find_table(table.name)
            key = next((column.name for column in table.columns if tells_rows(table, column.name)), None)
            is_public = rules is not None and rules.public and table.definition is None
            if is_public and key is not None and not may_be_missing:
                self._public[read.alias] = read, key, source

    def rewrite(self) -> bool:
        """Change the body in place; tell whether anything was changed."""
        if not self._public:
            return False
        changed = self._rewrite_functions()
        conjuncts = conjuncts_of(self._body.get("whereClause"))
        made = [self._apart(conjunct) for conjunct in conjuncts]
        if any(one is not other for one, other in zip(made, conjuncts, strict=True)):
            self._body["whereClause"] = _all(made)
            changed = True
        return changed

    def _apart(self, conjunct: Json) -> Json:
        if not _needs_postgresql(conjunct) or holders(conjunct, "SubLink"):
            return conjunct
        owner = self._owner(conjunct)
        if owner is None:
            return conjunct
        read, key, source = self._public[owner]
        inner = _select([_target(reference(read.alias, key))], [source], conjunct)
        return {
            "SubLink": {
                "subLinkType": "ANY_SUBLINK",
                "testexpr": reference(read.alias, key),
                "subselect": {"SelectStmt": inner},
            }
        }

    def _owner(self, expression: Json) -> str | None:
        """The public table, by its alias, that all columns of an expression are of."""
        owners = {self._owner_of(column_of({"ColumnRef": body})) for body in bodies(expression, "ColumnRef")}
        return owners.pop() if len(owners) == 1 else None

    def _owner_of(self, written: tuple[str, ...]) -> str | None:
        if len(written) == 1 and not self._all_known:
            return None
        having = [read.alias for read in self._read if read.column(written) is not None]
        return having[0] if len(having) == 1 and having[0] in self._public else None

    def _rewrite_functions(self) -> bool:
        """FROM items that are functions of one public table's columns become subqueries over that table."""
        found = [(source, owner) for source in self._sources if (owner := self._owner_of_function(source)) is not None]
        joined = {id(body.get("rarg")): body for body in _inner_and_left_joins(items(self._body, "fromClause"))}
        for source, owner in found:
            read, key, table = self._public[owner]
            alias = alias_of(kind(source)[1])
            targets = [_target(reference(read.alias, key), _KEY), _target({"ColumnRef": {"fields": [*_star(alias)]}})]
            function, equal = copied(source), _equal(reference(alias, _KEY), reference(read.alias, key))
            inner = _select(targets, [table, function], None)
            subquery: Node = {"subquery": {"SelectStmt": inner}, "alias": {"aliasname": alias}}
            join = joined.get(id(source))
            assert isinstance(source, dict), "an item of FROM is a node"
            source.clear()
            source["RangeSubselect"] = subquery
            if join is not None:
                join["quals"] = _all([*conjuncts_of(join.get("quals")), equal])
            else:
                self._body["whereClause"] = _all([*conjuncts_of(self._body.get("whereClause")), equal])
        return bool(found)

    def _owner_of_function(self, source: Json) -> str | None:
        name, body = kind(source)
        if (
            name != "RangeFunction"
            or body.get("ordinality")
            or len(items(body, "functions")) != 1
            or not alias_of(body)
        ):
            return None
        return self._owner(body.get("functions"))


def _sources(nodes: Sequence[Json], *, may_be_missing: bool = False) -> Iterator[tuple[Json, bool]]:
    """The items of FROM, in joins too, and whether an outer join may have a row of NULLs in their place."""
    for node in nodes:
        name, body = kind(node)
        if name == "JoinExpr":
            joined = body.get("jointype")
            left = may_be_missing or joined in ("JOIN_RIGHT", "JOIN_FULL")
            right = may_be_missing or joined in ("JOIN_LEFT", "JOIN_FULL")
            yield from _sources((body.get("larg"),), may_be_missing=left)
            yield from _sources((body.get("rarg"),), may_be_missing=right)
        else:
            yield node, may_be_missing


def _inner_and_left_joins(nodes: Sequence[Json]) -> Iterator[Node]:
    for node in nodes:
        name, body = kind(node)
        if name == "JoinExpr":
            if body.get("jointype") in ("JOIN_INNER", "JOIN_LEFT") and "usingClause" not in body:
                yield body
            yield from _inner_and_left_joins((body.get("larg"), body.get("rarg")))


def _needs_postgresql(expression: Json) -> bool:
    """Tell whether a function or an operator is not among those that may read protected rows."""
    calls = (strings(body.get("funcname")) for body in bodies(expression, "FuncCall"))
    operators = (strings(body.get("name")) for body in bodies(expression, "A_Expr") if body.get("kind") == "AEXPR_OP")
    return any(name[-1:] and name[-1] not in FUNCTIONS for name in calls) or any(
        name[-1:] and name[-1] not in OPERATORS for name in operators
    )


def _select(targets: list[Json], sources: list[Json], condition: Json) -> Node:
    made: Node = {
        "targetList": targets,
        "fromClause": copied(sources),
        "limitOption": "LIMIT_OPTION_DEFAULT",
        "op": "SETOP_NONE",
    }
    return made if condition is None else {**made, "whereClause": condition}


def _target(value: Json, name: str | None = None) -> Json:
    return {"ResTarget": {"val": value} if name is None else {"name": name, "val": value}}


def _star(alias: str) -> Sequence[Json]:
    return {"String": {"sval": alias}}, {"A_Star": {}}


def _equal(one: Node, other: Node) -> Json:
    return {"A_Expr": {"kind": "AEXPR_OP", "name": [{"String": {"sval": "="}}], "lexpr": one, "rexpr": other}}


def _all(conjuncts: Sequence[Json]) -> Json:
    kept = [conjunct for conjunct in conjuncts if kind(conjunct)[1].get("boolval") != {"boolval": True}]
    return kept[0] if len(kept) == 1 else {"BoolExpr": {"boolop": "AND_EXPR", "args": kept}}
