"""Queries of sqlglot's as the planner's, clause by clause."""

from itertools import count, product
from typing import Any

from sqlglot import exp

from rules.refusal import NotSupported
from rules.sql import syntax as s
from rules.sql.parse.dialect import listed, strange, take
from rules.sql.parse.expressions import Expressions, identifier

KINDS: dict[type[exp.Expression], Any] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
SIDES: dict[str, Any] = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}
MOST_GROUPING_SETS = 64


class Queries(Expressions):
    """One conversion. It numbers the SELECTs: each before its CTEs, then in the order of the text."""

    def __init__(self) -> None:
        self._indexes = count()

    def query(self, node: object) -> s.Query:
        match node:
            case exp.Select():
                return self._select(node)
            case exp.Union() | exp.Intersect() | exp.Except():
                return self._set_operation(node)
            case exp.Subquery() if not node.alias:
                (inner,) = take(node, "this")
                return self.query(inner)
            case exp.Values():
                (rows,) = take(node, "expressions")
                return s.Values(tuple(tuple(self.expression(cell) for cell in row.expressions) for row in rows))
        raise strange(node)

    def _select(self, node: exp.Select) -> s.Select:
        index = next(self._indexes)
        with_, distinct, items, from_, joins, where, group, having, windows, order, limit, offset, locks = take(
            node,
            *("with_", "distinct", "expressions", "from_", "joins", "where", "group", "having", "windows"),
            *("order", "limit", "offset", "locks"),
        )
        ctes, recursive = self._ctes(with_)
        is_distinct, distinct_on = self._distinct(distinct)
        named: dict[str, exp.Window] = {window.name: window for window in listed(windows)}
        return s.Select(
            index=index,
            items=tuple(self._item(item, named) for item in listed(items)),
            source=self._sources(from_, joins),
            where=self._condition(where),
            group_by=self._group(group),
            having=self._condition(having),
            distinct=is_distinct,
            distinct_on=distinct_on,
            order_by=self.order(order, named),
            limit=self._limit(limit),
            offset=self._limit(offset),
            locking=bool(locks),
            ctes=ctes,
            recursive=recursive,
        )

    def _set_operation(self, node: exp.SetOperation) -> s.SetOperation:
        with_, left, right, distinct, order, limit, offset = take(
            node, "with_", "this", "expression", "distinct", "order", "limit", "offset"
        )
        ctes, recursive = self._ctes(with_)
        return s.SetOperation(
            kind="union"
            if isinstance(node, exp.Union)
            else "intersect"
            if isinstance(node, exp.Intersect)
            else "except",
            all=not distinct,
            left=self.query(left),
            right=self.query(right),
            order_by=self.order(order, None),
            limit=self._limit(limit),
            offset=self._limit(offset),
            ctes=ctes,
            recursive=recursive,
        )

    def _ctes(self, node: exp.With | None) -> tuple[tuple[s.Cte, ...], bool]:
        if node is None:
            return (), False
        ctes, recursive = take(node, "expressions", "recursive")
        found = []
        for cte in ctes:
            query, alias, _ = take(cte, "this", "alias", "materialized")
            name, columns = take(alias, "this", "columns")
            found.append(s.Cte(identifier(name), self.query(query), tuple(map(identifier, listed(columns)))))
        return tuple(found), bool(recursive)

    def _distinct(self, node: exp.Distinct | None) -> tuple[bool, tuple[s.Expression, ...]]:
        if node is None:
            return False, ()
        (on,) = take(node, "on")
        if on is None:
            return True, ()
        return True, tuple(self.expression(each) for each in (on.expressions if isinstance(on, exp.Tuple) else [on]))

    def _item(self, node: exp.Expression, named: dict[str, exp.Window]) -> s.Item:
        if isinstance(node, exp.Alias):
            inner, alias = take(node, "this", "alias")
            return s.Item(self.expression(inner, named), identifier(alias))
        return s.Item(self.expression(node, named))

    def _condition(self, node: exp.Where | exp.Having | None) -> s.Expression | None:
        if node is None:
            return None
        (inner,) = take(node, "this")
        return self.expression(inner)

    def _limit(self, node: exp.Expression | None) -> s.Expression | None:
        if node is None:
            return None
        if isinstance(node, exp.Fetch):
            raise NotSupported("FETCH FIRST … WITH TIES is not supported over protected tables", hint="Use LIMIT.")
        (inner,) = take(node, "expression")
        return self.expression(inner)

    # FROM

    def _sources(self, from_: exp.From | None, joins: object) -> s.Source | None:
        """Comma-separated items, each with its own joins: a comma binds more loosely than JOIN."""
        if from_ is None:
            return None
        (first,) = take(from_, "this")
        items = [self._source(first)]
        for join in listed(joins):
            right, side, kind, on, using, method = take(join, "this", "side", "kind", "on", "using", "method")
            source = self._source(right)
            is_comma = not (side or kind or on or using or method)
            if is_comma:
                items.append(source)
            else:
                items[-1] = self._join(join, items[-1], source)
        joined = items[0]
        for item in items[1:]:
            joined = s.Join("cross", joined, item)
        return joined

    def _join(self, node: exp.Join, left: s.Source, right: s.Source) -> s.Join:
        _, side, kind, on, using, method = take(node, "this", "side", "kind", "on", "using", "method")
        if (kind or "") not in ("", "INNER", "CROSS", "OUTER") or (method or "") not in ("", "NATURAL"):
            raise strange(node)
        return s.Join(
            kind="cross" if kind == "CROSS" else SIDES[side or ""],
            left=left,
            right=right,
            on=None if on is None else self.expression(on),
            using=tuple(identifier(name) for name in listed(using)),
            natural=method == "NATURAL",
        )

    def _source(self, node: object) -> s.Source:
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                return self._table(node)
            case exp.Table():
                return self._function(node)
            case exp.Subquery():
                query, alias, joins = take(node, "this", "alias", "joins")
                if isinstance(query, exp.Table):
                    return self._nested(query, alias, joins)
                name, columns = _alias(alias)
                return s.QuerySource(self.query(query), name, columns)
            case exp.Paren():
                (inner,) = take(node, "this")
                return self._source(inner)
            case exp.Lateral():
                query, alias = take(node, "this", "alias")
                if isinstance(query, exp.Subquery):
                    name, columns = _alias(alias)
                    return s.QuerySource(self.query(query), name, columns, lateral=True)
        raise strange(node)

    def _nested(self, table: exp.Table, alias: object, joins: object) -> s.Source:
        """`(a JOIN b ON …)`: sqlglot hangs the inner joins on the table."""
        if alias is not None or joins:
            raise strange(table)
        return self._source(table)

    def _table(self, node: exp.Table) -> s.Source:
        name, schema, alias, joins = take(node, "this", "db", "alias", "joins")
        label, columns = _alias(alias)
        source: s.Source = s.TableSource(
            identifier(name), None if schema is None else identifier(schema), label, columns
        )
        for join in listed(joins):
            (right,) = (join.this,)
            source = self._join(join, source, self._source(right))
        return source

    def _function(self, node: exp.Table) -> s.FunctionSource:
        call, alias = take(node, "this", "alias")
        converted = self.expression(call)
        if not isinstance(converted, s.Call):
            raise strange(node)
        label, columns = _alias(alias)
        return s.FunctionSource(converted, label, columns)

    # GROUP BY

    def _group(self, node: exp.Group | None) -> tuple[s.Expression | s.GroupingSets, ...]:
        if node is None:
            return ()
        (elements,) = take(node, "expressions")
        return tuple(self._grouping(each) for each in listed(elements))

    def _grouping(self, node: exp.Expression) -> s.Expression | s.GroupingSets:
        if not isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            return self.expression(node)
        (elements,) = take(node, "expressions")
        parts = [self._columns(each) for each in elements]
        if isinstance(node, exp.Cube):
            return _cube(parts)
        if isinstance(node, exp.GroupingSets):
            return s.GroupingSets(tuple(parts))
        return s.GroupingSets(tuple(sum(parts[:length], ()) for length in range(len(parts), -1, -1)))

    def _columns(self, node: exp.Expression) -> tuple[s.Expression, ...]:
        if isinstance(node, exp.Tuple):
            return tuple(self.expression(each) for each in node.expressions)
        return (self.expression(node),)


def _alias(node: exp.TableAlias | None) -> tuple[str | None, tuple[str, ...]]:
    if node is None:
        return None, ()
    name, columns = take(node, "this", "columns")
    return (None if name is None else identifier(name)), tuple(map(identifier, listed(columns)))


def _cube(parts: list[tuple[s.Expression, ...]]) -> s.GroupingSets:
    choices = list(product((True, False), repeat=len(parts)))
    if len(choices) > MOST_GROUPING_SETS:
        raise NotSupported(f"CUBE of more than {MOST_GROUPING_SETS.bit_length() - 1} expressions is not supported")
    chosen = [
        tuple(column for part, taken in zip(parts, choice, strict=True) if taken for column in part)
        for choice in choices
    ]
    return s.GroupingSets(tuple(chosen))
