"""Rows that a protected table might have, made up from its columns' types, keys, values and bounds: never from data.

The same text whenever it is asked, so that a preview looks the same twice. Keys count from 1 in every table, so that
made-up rows of one table find their partners in another.
"""

from fractions import Fraction

from rules.catalog import Table
from rules.sql.normalize.to_text import quoted
from rules.values import domain
from rules.values.domain import Domain, Range
from rules.values.expression import Column
from rules.values.types import Type
from rules.values.value import DAY, Value, text_of

ROWS = 100
_LISTED = 1000  # values that are taken one by one
_STEPS = 1000  # into which a range is divided
_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)  # none divides 100: columns do not repeat together
_HOUR = DAY // 24
_EXAMPLES = {"date": "2024-01-01", "timestamp": "2024-01-01 00:00:00", "timestamptz": "2024-01-01 00:00:00+00"}


def made_up(table: Table, columns: tuple[Column, ...]) -> str:
    """A sub-select with these columns of a table and some made-up rows."""
    keys = {name for key in table.keys for name in key.columns}
    keys |= {name for key in table.foreign_keys for name in key.columns}
    items = (
        f"{_expression(column, place, is_key=column.name in keys)} AS {quoted(column.name)}"
        for place, column in enumerate(columns)
    )
    return f"(SELECT {', '.join(items)} FROM pg_catalog.generate_series(1, {ROWS}) AS g(i))"


def _expression(column: Column, place: int, *, is_key: bool) -> str:
    """The value in row i."""
    known = domain.intersect(column.domain, column.declared)
    turn = f"(g.i * {_PRIMES[place % len(_PRIMES)]} + {place})"
    if is_key and (numbered := _numbered(column.type)):
        return numbered
    items = domain.items_of(known, _LISTED)
    if items:
        return _pick(items, column.type, turn)
    return _between(known, column.type, turn) or _any(column, turn)


def _numbered(sql_type: Type) -> str:
    """A key's value: the number of the row."""
    match sql_type.kind:
        case "integer" | "numeric" | "text":
            return f"g.i::{sql_type.sql}"
        case "uuid":
            return "pg_catalog.md5(g.i::text)::uuid"
    return ""


def _pick(items: tuple[Value, ...], sql_type: Type, turn: str) -> str:
    texts = [text_of(item, sql_type) for item in items]
    listed = ", ".join(f"'{text.replace(chr(39), chr(39) * 2)}'" for text in texts if text is not None)
    return f"(ARRAY[{listed}]::{sql_type.plain().sql}[])[1 + {turn} % {len(texts)}]::{sql_type.sql}"


def _between(known: Domain, sql_type: Type, turn: str) -> str:
    """A value of a range, or nothing where it has no ends."""
    span = domain.range_of(known)
    if span.low is None or span.high is None:
        return ""
    size = _step(span, sql_type)
    count = int((span.high - span.low) / size) + 1
    low = text_of(size * -(-span.low // size) if sql_type.kind in ("integer", "numeric") else span.low, sql_type)
    if low is None:
        return ""
    match sql_type.kind:
        case "integer" | "numeric" | "float":
            return f"({low}::numeric + {turn} % {count} * {_decimal(size)})::{sql_type.sql}"
        case "date":
            return f"('{low}'::date + ({turn} % {count} * {int(size)})::integer)"
        case "timestamp" | "timestamptz":
            return f"('{low}'::{sql_type.sql} + {turn} % {count} * '{int(size) // _HOUR} hours'::interval)"
    return ""


def _step(span: Range, sql_type: Type) -> Fraction:
    """So large that there are some hundreds of values, and a multiple of what the type can hold."""
    assert span.low is not None and span.high is not None
    least = {"date": Fraction(1), "integer": Fraction(1)}.get(sql_type.kind, Fraction(1, 100))
    if sql_type.kind in ("timestamp", "timestamptz"):
        least = Fraction(_HOUR)
    elif sql_type.kind == "numeric" and sql_type.scale is not None:
        least = Fraction(10) ** -sql_type.scale
    return least * max(1, int((span.high - span.low) / _STEPS / least))


def _decimal(number: Fraction) -> str:
    return f"{number.numerator}::numeric" + (f" / {number.denominator}" if number.denominator > 1 else "")


def _any(column: Column, turn: str) -> str:
    sql_type = column.type
    match sql_type.kind:
        case "integer" | "numeric" | "float":
            return f"(1 + {turn} % 100)::{sql_type.sql}"
        case "text":
            return f"('{column.name.replace(chr(39), chr(39) * 2)} ' || g.i)::{sql_type.sql}"
        case "date":
            return f"('{_EXAMPLES[sql_type.kind]}'::date + g.i)"
        case "timestamp" | "timestamptz":
            return f"('{_EXAMPLES[sql_type.kind]}'::{sql_type.sql} + {turn} * '1 hour'::interval)"
        case "uuid":
            return _numbered(sql_type)
    return f"NULL::{sql_type.sql}"
