"""Count the public rows that protected rows refer to, or do not: one number, not one for each row.

SELECT count(*) FROM products AS p WHERE EXISTS (SELECT FROM items AS i WHERE i.product_id = p.id) becomes SELECT
count(DISTINCT p.id) FROM products AS p, items AS i WHERE i.product_id = p.id; with NOT EXISTS it is what that leaves of
all rows, which are public. IN and, over a column that is never NULL, NOT IN say the same.
"""

from rules.frozen import frozen
from rules.planner.passes.table_reads import (
    TableRead,
    alias_of,
    column_of,
    conjuncts_of,
    reference,
    table_of,
    tells_rows,
)
from rules.planner.tables import Tables, tables_in
from rules.sql.grammar import deparse, deparse_expression, parse
from rules.sql.tree import Index, Json, Node, bodies, copied, holders, items, kind, strings, walk

_ELSE = (
    "groupClause", "havingClause", "distinctClause", "windowClause", "sortClause", "limitCount", "limitOffset",
    "withClause", "valuesLists", "lockingClause", "intoClause",
)  # fmt: skip


def count_matched(index: Index, tables: Tables) -> Node:
    """Rewrite every count of public rows by whether a protected row matches."""
    if not index.holders("SubLink"):
        return index.tree
    ctes = frozenset(str(body.get("ctename")) for body in index.bodies("CommonTableExpr"))
    if not any(_found(body, tables, ctes) for body in index.bodies("SelectStmt")):
        return index.tree
    made = copied(index.tree)
    for body in bodies(made, "SelectStmt"):
        if (matched := _found(body, tables, ctes)) is not None:
            (piece,) = parse(matched.sql())
            body.clear()
            body.update(kind(piece.tree)[1])
    return made


@frozen
class _Matched:
    source: Json  # the public table
    key: str  # a unique column of it, as text
    rest: tuple[str, ...]  # conditions on it
    partners: tuple[Json, ...]  # what the subquery reads
    matching: tuple[str, ...]  # and its conditions
    negated: bool
    name: str

    def sql(self) -> str:
        where = " AND ".join(f"({condition})" for condition in (*self.rest, *self.matching))
        number = f"count(DISTINCT {self.key})"
        joined = f"FROM {_sources((self.source, *self.partners))} WHERE {where}"
        if not self.negated:
            return f"SELECT {number} AS {self.name} {joined}"
        test = f" WHERE {' AND '.join(f'({condition})' for condition in self.rest)}" if self.rest else ""
        every = f"SELECT count(*) FROM {_sources((self.source,))}{test}"
        return f"SELECT GREATEST(({every}) - GREATEST((SELECT {number} {joined}), 0), 0) AS {self.name}"


def _sources(nodes: tuple[Json, ...]) -> str:
    select: Node = {
        "targetList": [{"ResTarget": {"val": {"A_Const": {"ival": {"ival": 1}}}}}],
        "fromClause": list(nodes),
        "limitOption": "LIMIT_OPTION_DEFAULT",
        "op": "SETOP_NONE",
    }
    return deparse({"SelectStmt": select}).removeprefix("SELECT 1 FROM ")


def _is_plain(body: Node) -> bool:
    return body.get("op") == "SETOP_NONE" and not any(body.get(clause) for clause in _ELSE)


def _found(body: Node, tables: Tables, ctes: frozenset[str]) -> _Matched | None:
    targets, sources = items(body, "targetList"), items(body, "fromClause")
    if not _is_plain(body) or len(targets) != 1 or len(sources) != 1:
        return None
    target, table = kind(targets[0])[1], table_of(sources[0], tables, ctes)
    name, call = kind(target.get("val"))
    is_count = name == "FuncCall" and strings(call.get("funcname"))[-1:] == ("count",) and bool(call.get("agg_star"))
    if not is_count or call.get("over") or call.get("agg_filter") or table is None:
        return None
    rules = tables.context.policy.find_table(table.name)
    if rules is None or not rules.public or table.definition is not None:
        return None
    tested = [(conjunct, _subquery(conjunct)) for conjunct in conjuncts_of(body.get("whereClause"))]
    links = [link for _, link in tested if link is not None]
    others = [node for node, link in tested if link is None]
    if len(links) != 1 or any(holders(other, "SubLink") for other in others):
        return None
    public = TableRead(alias_of(_body(sources[0])), table)
    rest = tuple(deparse_expression(public.qualified(other)) for other in others)
    return _matched(sources[0], public, links[0], rest, str(target.get("name") or "count"), tables, ctes)


def _matched(
    source: Json,
    public: "TableRead",
    link: tuple[Node, bool],
    rest: tuple[str, ...],
    name: str,
    tables: Tables,
    ctes: frozenset[str],
) -> _Matched | None:
    sublink, negated = link
    inner = kind(sublink.get("subselect"))[1]
    partners = items(inner, "fromClause")
    is_read = any(tables.find_protected(*table) is not None for table in tables_in(inner))
    if not (_is_plain(inner) and _shows_rows(inner)) or not partners or not is_read or public.alias in _aliases(inner):
        return None
    table = table_of(partners[0], tables, ctes) if len(partners) == 1 else None
    partner = None if table is None else TableRead(alias_of(_body(partners[0])), table)
    matching = conjuncts_of(inner.get("whereClause"))
    if partner is not None:  # its names hide those around it
        matching = [public.qualified(partner.qualified(node)) for node in matching]
    if sublink.get("subLinkType") == "ANY_SUBLINK":
        equal = _listed(sublink, inner, public, partner, negated=negated)
        if equal is None:
            return None
        matching = [*matching, equal]
    sides = (side for node in matching for side in _equated(node))
    key = next((side for side in sides if side[:-1] == (public.alias,) and tells_rows(public.table, side[-1])), None)
    if key is None:
        return None
    written = tuple(map(deparse_expression, matching))
    return _Matched(source, _quoted(*key), rest, tuple(partners), written, negated, _quoted(name))


def _shows_rows(inner: Node) -> bool:
    """Tell whether a subquery has a row for each that it reads: no aggregate makes one of all, no function others."""
    shown = (kind(kind(target)[1].get("val"))[0] for target in items(inner, "targetList"))
    return all(name in ("ColumnRef", "A_Const") for name in shown)


def _aliases(inner: Node) -> set[str]:
    sources = (kind(node) for source in items(inner, "fromClause") for node in walk(source))
    return {alias_of(body) for name, body in sources if name.startswith("Range") or name == "JoinExpr"}


def _listed(sublink: Node, inner: Node, public: TableRead, partner: TableRead | None, *, negated: bool) -> Json | None:
    """IN as an equality of columns; None where a NULL on either side would make NOT IN NULL."""
    (target, *more) = items(inner, "targetList")
    if partner is None or more or "operName" in sublink:
        return None
    tested = public.column(column_of(sublink.get("testexpr")))
    value = partner.column(column_of(kind(target)[1].get("val")))
    if tested is None or value is None or (negated and not (tested.not_null and value.not_null)):
        return None
    columns = reference(public.alias, tested.name), reference(partner.alias, value.name)
    return {
        "A_Expr": {"kind": "AEXPR_OP", "name": [{"String": {"sval": "="}}], "lexpr": columns[0], "rexpr": columns[1]}
    }


def _body(item: Json) -> Node:
    return kind(item)[1]


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def _subquery(condition: Json) -> tuple[Node, bool] | None:
    """[NOT] EXISTS or [NOT] IN, and whether it is negated."""
    name, body = kind(condition)
    if name == "BoolExpr" and body.get("boolop") == "NOT_EXPR":
        inner = _subquery(items(body, "args")[0])
        return None if inner is None else (inner[0], not inner[1])
    is_test = name == "SubLink" and body.get("subLinkType") in ("EXISTS_SUBLINK", "ANY_SUBLINK")
    return (body, False) if is_test else None


def _equated(condition: Json) -> tuple[tuple[str, ...], ...]:
    """The columns on both sides of an equality."""
    name, body = kind(condition)
    if name != "A_Expr" or body.get("kind") != "AEXPR_OP" or strings(body.get("name")) != ("=",):
        return ()
    return column_of(body.get("lexpr")), column_of(body.get("rexpr"))
