"""Queries of sqlglot's as the planner's, clause by clause."""

from typing import Any

from sqlglot import exp

from rules.sql import syntax as s
from rules.sql.lower.expressions import Expressions, identifier, listed, strange, take
from rules.sql.normalize import RESERVED

KINDS: dict[type[exp.Expression], Any] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
SIDES: dict[str, Any] = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


class Queries(Expressions):
    """One conversion."""

    def query(self, node: object) -> s.Query:
        match node:
            case exp.Select():
                return self._select(node)
            case exp.Union() | exp.Intersect() | exp.Except():
                return self._set_operation(node)
            case exp.Subquery():
                (inner,) = take(node, "this")
                return self.query(inner)
            case exp.Values():
                (rows,) = take(node, "expressions")
                return s.Values(tuple(tuple(self.expression(cell) for cell in row.expressions) for row in rows))
        raise strange(node)

    def _select(self, node: exp.Select) -> s.Select:
        with_, distinct, items, from_, joins, where, group, having, order, limit, offset, locks = take(
            node,
            *("with_", "distinct", "expressions", "from_", "joins", "where", "group", "having"),
            *("order", "limit", "offset", "locks"),
        )
        ctes, recursive = self._ctes(with_)
        index, *rest = map(self._item, listed(items))
        is_distinct, distinct_on = self._distinct(distinct)
        return s.Select(
            index=_index(index),
            items=tuple(rest),
            source=self._sources(from_, joins),
            where=self._condition(where),
            group_by=self._group(group),
            having=self._condition(having),
            distinct=is_distinct,
            distinct_on=distinct_on,
            order_by=self.order(order),
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
            kind=KINDS[type(node)],
            all=not distinct,
            left=self.query(left),
            right=self.query(right),
            order_by=self.order(order),
            limit=self._limit(limit),
            offset=self._limit(offset),
            ctes=ctes,
            recursive=recursive,
        )

    def _ctes(self, node: exp.With | None) -> tuple[tuple[s.Cte, ...], bool]:
        if node is None:
            return (), False
        ctes, recursive = take(node, "expressions", "recursive")
        lowered = []
        for cte in ctes:
            query, alias = take(cte, "this", "alias")
            name, columns = take(alias, "this", "columns")
            lowered.append(s.Cte(identifier(name), self.query(query), tuple(map(identifier, listed(columns)))))
        return tuple(lowered), bool(recursive)

    def _distinct(self, node: exp.Distinct | None) -> tuple[bool, tuple[s.Expression, ...]]:
        if node is None:
            return False, ()
        (on,) = take(node, "on")
        if on is None:
            return True, ()
        return True, self._columns(on)

    def _item(self, node: exp.Expression) -> s.Item:
        if isinstance(node, exp.Alias):
            inner, alias = take(node, "this", "alias")
            return s.Item(self.expression(inner), identifier(alias))
        return s.Item(self.expression(node))

    def _condition(self, node: exp.Where | exp.Having | None) -> s.Expression | None:
        return None if node is None else self.expression(*take(node, "this"))

    def _limit(self, node: exp.Limit | exp.Offset | None) -> s.Expression | None:
        return None if node is None else self.expression(*take(node, "expression"))

    # FROM: the one spelling has no commas there

    def _sources(self, from_: exp.From | None, joins: object) -> s.Source | None:
        if from_ is None:
            return None
        (first,) = take(from_, "this")
        return self._joined(self._source(first), joins)

    def _joined(self, source: s.Source, joins: object) -> s.Source:
        for join in listed(joins):
            source = self._join(join, source)
        return source

    def _join(self, node: exp.Join, left: s.Source) -> s.Join:
        right, side, kind, on, using, method = take(node, "this", "side", "kind", "on", "using", "method")
        if (kind or "") not in ("", "CROSS") or (method or "") not in ("", "NATURAL"):
            raise strange(node)
        return s.Join(
            kind="cross" if kind == "CROSS" else SIDES[side or ""],
            left=left,
            right=self._source(right),
            on=None if on is None else self.expression(on),
            using=tuple(identifier(name) for name in listed(using)),
            natural=method == "NATURAL",
        )

    def _source(self, node: object) -> s.Source:
        match node:
            case exp.Table():
                return self._table(node)
            case exp.Subquery(this=exp.Table()) | exp.Subquery(this=exp.Subquery()) if node.this.args.get("joins"):
                return self._source(*take(node, "this"))  # a join in brackets: sqlglot hangs it on its first table
            case exp.Subquery():
                query, alias, joins = take(node, "this", "alias", "joins")
                return self._joined(s.QuerySource(self.query(query), *_alias(alias)), joins)
            case exp.Values():
                rows, alias = take(node, "expressions", "alias")
                return s.QuerySource(self.query(exp.Values(expressions=rows)), *_alias(alias))
            case exp.Lateral():
                query, alias = take(node, "this", "alias")
                return s.QuerySource(self.query(query), *_alias(alias), lateral=True)
        raise strange(node)

    def _table(self, node: exp.Table) -> s.Source:
        name, schema, alias, joins = take(node, "this", "db", "alias", "joins")
        label, columns = _alias(alias)
        if isinstance(name, exp.Identifier):
            owner = None if schema is None else identifier(schema)
            return self._joined(s.TableSource(identifier(name), owner, label, columns), joins)
        call = self.expression(name if schema is None else exp.Dot(this=schema, expression=name))
        if isinstance(call, s.Operator):
            call = s.Call(call.name, call.arguments, schema=RESERVED)
        if not isinstance(call, s.Call):
            raise strange(node)
        return self._joined(s.FunctionSource(call, label, columns), joins)

    # GROUP BY: plain, or one list of sets

    def _group(self, node: exp.Group | None) -> tuple[s.Expression | s.GroupingSets, ...]:
        if node is None:
            return ()
        plain, sets = take(node, "expressions", "grouping_sets")
        expressions: list[s.Expression | s.GroupingSets] = []
        for item in (*listed(plain), *listed(sets)):
            if isinstance(item, exp.GroupingSets):
                (inner,) = take(item, "expressions")
                expressions.append(s.GroupingSets(tuple(map(self._columns, inner))))
            else:
                expressions.append(self.expression(item))
        return tuple(expressions)

    def _columns(self, node: exp.Expression) -> tuple[s.Expression, ...]:
        if isinstance(node, exp.Tuple):
            return tuple(map(self.expression, node.expressions))
        return (self.expression(node),)


def _index(item: s.Item) -> int:
    """A SELECT's number is the first entry of its list."""
    match item:
        case s.Item(s.Constant("number", text), alias) if alias == RESERVED:
            return int(text)
    raise strange(item)


def _alias(node: exp.TableAlias | None) -> tuple[str | None, tuple[str, ...]]:
    if node is None:
        return None, ()
    name, columns = take(node, "this", "columns")
    return (None if name is None else identifier(name)), tuple(map(identifier, listed(columns)))
