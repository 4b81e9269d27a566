"""LATERAL over rows of the same unit, behind the tables: its rows, the first of them, or what they add up to."""

from dataclasses import dataclass, replace
from typing import Literal

from rules.refusal import NotSupported
from rules.relation.bind_expression import Binding
from rules.relation.bind_source import Ctes, Outer, Relation
from rules.relation.bind_subquery import JOIN_HINT, Subqueries
from rules.relation.expression import all_of
from rules.relation.nodes import Node
from rules.relation.privacy import joined
from rules.relation.scan import Names
from rules.relation.scope import Scope, merge, single
from rules.relation.subquery_shape import is_more
from rules.relation.walk_syntax import aggregates, column_name
from rules.sql import syntax as s

_TRUE = s.Constant("boolean", "true")


@dataclass(frozen=True, slots=True)
class Lateral:
    """One LATERAL item of FROM, and whether rows without a partner stay."""

    kind: Literal["inner", "left"]
    source: s.QuerySource


def split_laterals(given: s.Source | None) -> tuple[s.Source | None, tuple[Lateral, ...]]:
    """FROM without the LATERAL subqueries at its end, and these in their order."""
    match given:
        case s.Join(
            kind="cross" | "inner" | "left" as kind, left=left, right=s.QuerySource(lateral=True) as right, on=on
        ):
            if given.using or given.natural or on not in (None, _TRUE):
                return given, ()
            rest, found = split_laterals(left)
            return rest, (*found, Lateral("left" if kind == "left" else "inner", right))
    return given, ()


def laterals_last(given: s.Select) -> s.Select:
    """Inner joins may stand in any order: LATERAL goes behind the tables, what joins these to it into WHERE."""
    if any(isinstance(item.expression, s.Star) for item in given.items):
        return given  # which has its columns in the order of FROM
    source, found, conditions = _apart(given.source)
    for lateral in found:
        assert source is not None
        source = s.Join("left" if lateral.kind == "left" else "cross", source, lateral.source, _on(lateral))
    whole = (*([given.where] if given.where is not None else []), *conditions)
    where = s.Operator("and", whole) if len(whole) > 1 else next(iter(whole), None)
    return replace(given, source=source, where=where)


def _on(lateral: Lateral) -> s.Expression | None:
    return _TRUE if lateral.kind == "left" else None


def _apart(given: s.Source | None) -> tuple[s.Source | None, tuple[Lateral, ...], tuple[s.Expression, ...]]:
    """FROM without its LATERAL subqueries, these, and the conditions of the joins behind them."""
    rest, found = split_laterals(given)
    match rest:
        case s.Join(kind="cross" | "inner", left=left, right=right, on=on, using=(), natural=False):
            tables, before, conditions = _apart(left)
            if before:
                assert tables is not None, "LATERAL stands beside something"
                joins = (on,) if on is not None else ()
                return s.Join("cross", tables, right), (*before, *found), (*conditions, *joins)
    return rest, found, ()


class Laterals(Subqueries):
    """Binds LATERAL subqueries beside the rows that they depend on."""

    def with_lateral(self, source: Relation, lateral: Lateral, ctes: Ctes) -> Relation:
        query = lateral.source.query
        calls = aggregates(query.items) if isinstance(query, s.Select) else ()
        if not isinstance(query, s.Select) or query.ctes or is_more(query, most=None):
            raise NotSupported("this LATERAL subquery is not supported over protected rows", hint=JOIN_HINT)
        if query.source is None and query.where is None:
            node, names = self._listed(query, source.node, self.binding(self.leaf(source)))
        else:
            node, names = self._beside(source, query, calls, lateral, ctes)
        entry = single(lateral.source.alias, names, lateral.source.columns)
        return Relation(node, merge(source.scope, entry))

    def _beside(
        self, source: Relation, query: s.Select, calls: tuple[s.Call, ...], lateral: Lateral, ctes: Ctes
    ) -> tuple[Node, Names]:
        """The unit's own rows, or the first of them: a join like any other. Or what they add up to: always one row."""
        tree = self.tree(query.source, ctes)
        if isinstance(tree, Outer):
            raise NotSupported("LATERAL over answers is not supported over protected rows", hint=JOIN_HINT)
        inside = self.inside(source, query, tree, ctes)
        if not calls:
            rows = self.first_rows(inside, query)
            inner, names = self._listed(query, rows.node, self.binding(self.leaf(rows)), rows.scope)
            linking = all_of(inside.linking)
            return joined(lateral.kind, source.node, inner, linking, number=self.fresh()), names
        found = self.with_group(source, inside, calls)
        if found is None:
            message = "LATERAL is not tied to the unit of the row around it"
            raise NotSupported(message, hint=JOIN_HINT, about="LATERAL")
        return self._listed(query, *found)

    def _listed(self, query: s.Select, node: Node, binding: Binding, scope: Scope | None = None) -> tuple[Node, Names]:
        """The select list as columns; * stands for what the scope has."""
        names: list[tuple[str, int]] = []
        for item in query.items:
            if isinstance(item.expression, s.Star) and scope is not None:
                names.extend(scope.star(item.expression.qualifier))
                continue
            node, number = self.as_column(node, binding.bind(item.expression))
            names.append((item.alias or column_name(item.expression), number))
        return node, tuple(names)
