"""Answers that enter another query: a private average in its WHERE, a ranking that chooses its groups.

What is computed from released values is the twin's work and free. Where protected rows meet it, its rows must be known
before these can be asked for. So a statement is planned until the first such place (`InnerQuery`), that inner
query is answered as a statement of its own, and the whole is planned again with the rows at hand. To the second part
they are constants, as if the analyst had written them.
"""

import re
from fractions import Fraction
from itertools import combinations
from typing import Final, Literal

from rules.bind.enums import find_enum
from rules.catalog import Catalog, TableName
from rules.frozen import frozen, replace
from rules.functions.coerce import literal
from rules.functions.function import EvalContext, LiteralText, Needed
from rules.refusal import NotSupported
from rules.sql import syntax as s
from rules.values import domain
from rules.values.domain import ANYTHING, Domain, Range, Values
from rules.values.expression import Column, Constant, null_of
from rules.values.types import INTERVAL, Type, find_type

Use = Literal["rows", "value", "exists", "lookup", "groups", "bounds", "reading"]
FREE: frozenset[Use] = frozenset(("groups", "bounds", "reading"))  # which no block can stand in
Links = tuple[tuple[s.Expression, bool], ...]

_CUT_INTERVAL: Final = re.compile(r"interval[ (][a-z0-9 ()]+")  # interval hour, interval(2): its values are cut already
_WIDEST_KEY = 3  # columns; a proof that is not looked for costs rows, never privacy
_EXAMPLES = {
    "integer": "0",
    "numeric": "0",
    "float": "0",
    "boolean": "true",
    "date": "2000-01-01",
    "timestamp": "2000-01-01 00:00:00",
    "timestamptz": "2000-01-01 00:00:00+00",
    "interval": "00:00:00",
    "text": "?",
}


@frozen
class PublicColumn:
    """A column of a public table, and what its values are read as."""

    table: TableName
    name: str
    type: str


@frozen
class InnerQuery:
    """A query inside a statement, and what is asked of it."""

    select: int = -1  # its first SELECT
    depth: int = 0  # how many set operations stand around that one
    use: Use = "rows"
    columns: tuple[PublicColumn, ...] = ()  # for bounds: a row for each, which no query asks for either
    sql: str = ""  # for the groups of public rows: a statement of our own, which no query asks for
    tables: tuple[TableName, ...] = ()  # for these too: public tables, where it has to run on the real database
    type: str = ""  # for a reading: what the literals are read as
    literals: tuple[str, ...] = ()  # which no query asks for either
    links: Links = ()  # for a lookup: inside = outside, and whether in this order
    rewritten: int = 0  # how many subqueries had become queries in FROM when the SELECTs were numbered


@frozen
class InnerAnswer:
    """The rows of an inner query in canonical text, as the twin computed them from what was released."""

    inner: InnerQuery
    names: tuple[str, ...]
    types: tuple[str, ...]  # format_type of each
    rows: tuple[tuple[str | None, ...], ...]
    origin: str = ""  # which releases they were made of; "" of public rows


def find_released(query: s.Query, use: Use, known: tuple[InnerAnswer, ...], links: Links = ()) -> InnerAnswer:
    """The rows of an inner query, or a demand for them."""
    inner = _inner(query, use, links)
    for released in known:
        if released.inner == inner:
            return released
    raise Needed(inner)


def readings(known: tuple[InnerAnswer, ...]) -> tuple[LiteralText, ...]:
    """Return what PostgreSQL has read in literals: the second column."""
    return tuple(
        LiteralText(released.inner.type, text, read)
        for released in known
        if released.inner.use == "reading"
        for text, (_, read) in zip(released.inner.literals, released.rows, strict=True)
    )


def renumbered(known: tuple[InnerAnswer, ...], rewritten: tuple[int, ...]) -> tuple[InnerAnswer, ...]:
    """The answers by the numbers that SELECTs have now: each of those that were rewritten has become two.

    What was asked for after more of them had been rewritten will be found then.
    """
    inner_answers = (inner_answer for inner_answer in known if inner_answer.inner.rewritten <= len(rewritten))
    return tuple(
        replace(inner_answer, inner=_renumbered(inner_answer.inner, rewritten)) for inner_answer in inner_answers
    )


def _renumbered(inner: InnerQuery, rewritten: tuple[int, ...]) -> InnerQuery:
    select = inner.select
    for number in rewritten[inner.rewritten :]:
        select += select > number
    return replace(inner, select=select, rewritten=0)


def stand_in(inner: InnerQuery, names: tuple[str, ...], types: tuple[str, ...]) -> InnerAnswer:
    """One row of examples: enough to see whether the rest of the statement can be planned."""
    sql_types = (find_type(written) for written in types)
    row = tuple(None if sql_type is None else _EXAMPLES.get(sql_type.kind) for sql_type in sql_types)
    return InnerAnswer(inner, names, types, (row,))


def constants(released: InnerAnswer, catalog: Catalog, setting: EvalContext) -> tuple[tuple[Constant, ...], ...]:
    """The rows as typed constants."""
    types = _types(released, catalog)
    return tuple(
        tuple(literal(text, sql_type, setting) for text, sql_type in zip(row, types, strict=True))
        for row in released.rows
    )


def table(released: InnerAnswer, catalog: Catalog, setting: EvalContext) -> tuple[tuple[Constant, ...], ...]:
    """The rows with the types of their columns: a varchar is no text, and a numeric(4,1) has its digits."""
    types = _types(released, catalog)
    return tuple(
        tuple(
            replace(cell, type=sql_type) if sql_type.kind == "text" or sql_type.size is not None else cell
            for cell, sql_type in zip(row, types, strict=True)
        )
        for row in constants(released, catalog, setting)
    )


def value(released: InnerAnswer, catalog: Catalog, setting: EvalContext) -> Constant:
    """The one value of a scalar subquery."""
    rows = constants(released, catalog, setting)
    return rows[0][0] if rows else null_of(_types(released, catalog)[0])


def columns(
    released: InnerAnswer, rows: tuple[tuple[Constant, ...], ...], numbers: tuple[int, ...], catalog: Catalog
) -> tuple[Column, ...]:
    """Return what is known of each column, which is all of it."""
    made = []
    for place, (number, sql_type) in enumerate(zip(numbers, _types(released, catalog), strict=True)):
        cells = [row[place] for row in rows]
        shown = cells[0].type if cells else sql_type
        nullable = any(cell.text is None for cell in cells)
        made.append(Column(number, shown, _domain(shown, cells), nullable=nullable, name=released.names[place]))
    return tuple(made)


def keys(rows: tuple[tuple[Constant, ...], ...], numbers: tuple[int, ...]) -> frozenset[frozenset[int]]:
    """Columns on which no two of the rows agree; of one row alone that is none."""
    if len(rows) <= 1:
        return frozenset((frozenset(),))
    keys: set[frozenset[int]] = set()
    for width in range(1, _WIDEST_KEY + 1):
        for places in combinations(range(len(numbers)), width):
            key = frozenset(numbers[place] for place in places)
            if not any(known < key for known in keys) and _are_distinct(rows, places):
                keys.add(key)
    return frozenset(keys)


def _are_distinct(rows: tuple[tuple[Constant, ...], ...], places: tuple[int, ...]) -> bool:
    """Return whether the rows differ in values whose equality is PostgreSQL's own; a NULL equals nothing."""
    cells = [tuple(row[place] for place in places) for row in rows]
    equal = [
        tuple(cell.value for cell in constants)
        for constants in cells
        if all(cell.text is not None for cell in constants)
    ]
    plain = all(isinstance(item, Fraction | str | bool) for row in equal for item in row)
    return plain and len(set(equal)) == len(equal)


def _domain(sql_type: Type, cells: list[Constant]) -> Domain:
    known = [cell.value for cell in cells if cell.text is not None]
    items = [item for item in known if isinstance(item, Fraction | str | bool)]
    if len(items) < len(known):
        return ANYTHING
    if sql_type.kind == "enum":
        return Values(tuple(label for label in sql_type.labels if label in items))
    if sql_type.kind == "float":  # the planner keeps no list of doubles
        numbers = [item for item in items if isinstance(item, Fraction)]
        return Range(min(numbers), max(numbers)) if numbers else Values(())
    return domain.values(items)


def _inner(query: s.Query, use: Use, links: Links) -> InnerQuery:
    depth = 0
    while isinstance(query, s.SetOperation):
        query, depth = query.left, depth + 1
    if isinstance(query, s.Values):
        hint = "Use SELECT … UNION ALL SELECT … instead."
        raise NotSupported("comparing protected rows with VALUES is not supported", hint=hint)
    return InnerQuery(query.index, depth, use, links=links)


def _types(released: InnerAnswer, catalog: Catalog) -> tuple[Type, ...]:
    return tuple(_type(name, written, catalog) for name, written in zip(released.names, released.types, strict=True))


def _type(name: str, written: str, catalog: Catalog) -> Type:
    sql_type = INTERVAL if _CUT_INTERVAL.fullmatch(written) else find_type(written)
    if sql_type is None:
        sql_type = find_enum(written, catalog)
    if sql_type is None or sql_type.kind in ("other", "unknown"):
        hint = "Cast it to a type such as text or numeric."
        raise NotSupported(
            f'column "{name}" of the subquery has type {written}, which is not supported over protected rows', hint=hint
        )
    return sql_type
