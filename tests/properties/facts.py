"""Whether what the planner says of a relation is true of its rows: one node at a time, on a real PostgreSQL."""

from collections.abc import Iterator
from fractions import Fraction

import psycopg

from rules.algebra.nodes import Facts, Filter, Join, Node, below
from rules.kernel.render import Renderer
from rules.planner.to_script import to_script
from rules.replay import Kernel
from rules.values import domain
from rules.values.domain import Anything, Domain, Range, Values
from rules.values.expression import Column
from rules.values.value import find_value

MOST_ROWS = 3000
_ROUNDED = Fraction(1, 10**6)


def every_node(node: Node, *, is_filtered: bool = False) -> Iterator[Node]:
    """A relation and all that it is made of.

    But no joins below a WHERE, which may hold what links them, and no full ones: what is around them tells their unit.
    """
    is_part = isinstance(node, Join) and (is_filtered or node.kind == "full")
    if not is_part:
        yield node
    for part in below(node):
        yield from every_node(part, is_filtered=is_part or isinstance(node, Filter))


def lies(connection: psycopg.Connection, node: Node, kernel: Kernel) -> list[str]:
    """What a node's facts claim and its rows deny; nothing, if they are sound. Of very many rows some are looked at."""
    rows = f"SELECT * FROM ({rows_of(node, kernel)}) AS r LIMIT {MOST_ROWS}"
    return [*_of_columns(connection, rows, node.facts.columns), *_of_rows(connection, rows, node.facts)]


def rows_of(node: Node, kernel: Kernel) -> str:
    """All rows and columns of a relation."""
    columns = node.facts.columns
    relation = kernel.relation(to_script(node))
    found = Renderer().render(relation, frozenset(column.id for column in columns))
    return f"SELECT {', '.join(f'{found.names[column.id]} AS c{column.id}' for column in columns)} {found.clause()}"


def _of_columns(connection: psycopg.Connection, rows: str, columns: tuple[Column, ...]) -> Iterator[str]:
    """NULL where a column says that it has none, values outside its domain."""
    texts = ", ".join(f"c{column.id}::text" for column in columns)
    answer = connection.execute(f"SELECT {texts} FROM ({rows}) AS r").fetchall()
    for place, column in enumerate(columns):
        values = {row[place] for row in answer}
        if None in values and not column.nullable:
            yield f"c{column.id} is never NULL"
        outside = sorted(value for value in values if value is not None and not _is_in(column.domain, column, value))
        if outside:
            yield f"c{column.id} is in {column.domain}, without {outside}"


def _is_in(known: Domain, column: Column, text: str) -> bool:
    if isinstance(known, Anything):
        return True
    value = find_value(text, column.type, "Europe/Berlin")
    if value is not None:
        step = known.step if isinstance(known, Range) else None
        fits = step is None or not isinstance(value, Fraction) or value % step == 0
        return fits and domain.contains(_vague(known) if column.type.kind == "float" else known, value)
    if isinstance(known, Values):
        return False
    if text == "NaN":
        return True  # a range says nothing of it: whatever computes with numbers guards itself
    # An infinity, or a moment that Python has no name for: only where nothing bounds them.
    return (known.low if text.startswith("-") or text.endswith("BC") else known.high) is None


def _vague(known: Domain) -> Domain:
    """What is known of doubles is not exact: they are rounded as they are computed."""
    found = domain.range_of(known)
    low = None if found.low is None else found.low - abs(found.low) * _ROUNDED
    return Range(low, None if found.high is None else found.high + abs(found.high) * _ROUNDED)


def _of_rows(connection: psycopg.Connection, rows: str, facts: Facts) -> Iterator[str]:
    """Keys that two rows share, columns that do not tell a unit or are not told by it, more rows than are proved."""
    claims = {f"no two rows agree on {_named(key)}": _twice(key) for key in facts.keys}
    if facts.unit is not None and facts.unit.column is not None:
        unit = f"c{facts.unit.column}"
        claims[f"{unit} is never NULL"] = f"SELECT FROM r WHERE {unit} IS NULL"
        claims |= {
            f"{_named(columns)} tells {unit}": _varies(_listed(columns), unit, f"row({_listed(columns)}) IS NOT NULL")
            for columns in facts.determinants
        }
        claims |= {f"{unit} tells c{column}": _varies(unit, f"c{column}") for column in facts.determined}
        claims |= {
            f"c{column} is {unit}": f"SELECT FROM r WHERE c{column} <> {unit}"
            for column in facts.aliases - {facts.unit.column}
        }
        if facts.rows.proved is not None:
            claims[f"{unit} has at most {facts.rows.proved} rows"] = (
                f"SELECT FROM r GROUP BY {unit} HAVING count(*) > {facts.rows.proved}"
            )
    if not claims:
        return
    tests = ", ".join(f"EXISTS ({test})" for test in claims.values())
    row = connection.execute(f"WITH r AS MATERIALIZED ({rows}) SELECT {tests}").fetchone()
    assert row is not None
    yield from (claim for claim, is_false in zip(claims, row, strict=True) if is_false)


def _listed(columns: frozenset[int]) -> str:
    return ", ".join(f"c{column}" for column in sorted(columns))


def _named(columns: frozenset[int]) -> str:
    return f"({_listed(columns)})"


def _twice(key: frozenset[int]) -> str:
    """Rows that agree as PostgreSQL's unique keys mean it: NULL agrees with nothing."""
    whole = f" WHERE row({_listed(key)}) IS NOT NULL GROUP BY {_listed(key)}" if key else ""
    return f"SELECT FROM r{whole} HAVING count(*) > 1"


def _varies(by: str, column: str, where: str = "true") -> str:
    """Rows that are equal there and differ here."""
    return f"SELECT FROM r WHERE {where} GROUP BY {by} HAVING count(DISTINCT row({column})) > 1"
