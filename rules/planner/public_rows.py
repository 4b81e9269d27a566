"""SQL over public rows alone, for the twin: which combinations of values the keys of a block can have.

Every statement is written here: functions of our own templates over rows that `noisegate_public_rows` reads. Lists that
the planner knows (declared values, days between bounds) stand beside the public tables as rows of their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from rules.algebra.cover import Cover, is_over, types_of
from rules.algebra.nodes import Scan
from rules.catalog import TableName
from rules.frozen import frozen, replace
from rules.functions.text.text_casts import shown_digits
from rules.kernel.expressions import expression_sql, quoted_name, quoted_text
from rules.kernel.render import qualified
from rules.values import domain
from rules.values.domain import Range, Values
from rules.values.expression import Column, Expression
from rules.values.types import TEXT, Type
from rules.values.value import DAY, text_of, to_local

MOST_DAYS = 100_000
_LONGEST_LIST = 20_000  # characters
_NOON = "interval '12 hours'"


@frozen
class PublicTables:
    """Rows of public tables that meet each other; optional: or NULLs in place of all of them."""

    scans: tuple[Scan, ...]
    conditions: tuple[Expression, ...] = ()
    optional: bool = False
    on: tuple[Expression, ...] = ()  # what ties optional rows to the others
    on_real: bool = False  # whether the real database is asked, and not the twin

    def columns(self) -> dict[int, Column]:
        return {number: column for scan in self.scans for number, column in types_of(scan).items()}

    def sql(self, used: Sequence[int], names: Mapping[int, str]) -> str:
        """The columns that are used, under these names; whether the rows are there at all is `present`."""
        own = self.columns()
        inner = {number: f"s{place}.{names[number]}" for place, number in self._places() if number in names}
        read = [number for number in own if number in names]
        sources = []
        for place, scan in enumerate(self.scans):
            here = [number for number in read if number in dict(scan.names)]
            sources.append(f"({_table_sql(scan, own, here, names, on_real=self.on_real)}) AS s{place}")
        where = [expression_sql(condition, inner) for condition in self.conditions]
        shown = [f"{inner[number]} AS {names[number]}" for number in used]
        test = f" WHERE {' AND '.join(where)}" if where else ""
        rows = f"SELECT {', '.join([*shown, 'TRUE AS present'])} FROM {' CROSS JOIN '.join(sources)}{test}"
        if not self.optional:
            return rows
        nothing = [f"NULL::{read_type(own[number].type)}" for number in used]
        return f"{rows} UNION ALL SELECT {', '.join([*nothing, 'NULL'])}"

    def _places(self) -> list[tuple[int, int]]:
        return [(place, number) for place, scan in enumerate(self.scans) for number, _ in scan.names]


@frozen
class ListedRows:
    """The values that an expression or a column can have, as the planner knows them."""

    number: int
    expression: Expression
    days: tuple[int, int] | None = None  # from the first to the last of them, each at noon

    @property
    def length(self) -> int:
        """Count the values, without NULL."""
        if self.days is not None:
            return self.days[1] - self.days[0] + 1
        return domain.number_of_items(self.expression.domain, MOST_DAYS) or 1

    def columns(self) -> dict[int, Column]:
        return {self.number: Column(self.number, self.expression.type)}

    def sql(self, used: Sequence[int], names: Mapping[int, str]) -> str:
        rows = f"SELECT {self._values()} AS {names[self.number]}, TRUE AS present"
        if not self.expression.nullable:
            return rows
        return f"({rows}) UNION ALL SELECT NULL::{read_type(self.expression.type)}, TRUE"

    def _values(self) -> str:
        kind = read_type(self.expression.type)
        if self.days is not None:
            first, last = self.days
            day = f"({_day(first)} + pg_catalog.generate_series(0, {last - first}))"
            return day if self.expression.type.kind == "date" else f"({day}::timestamp + {_NOON})::{kind}"
        match self.expression.domain:
            case Range(low=Fraction() as low, high=Fraction() as high, step=Fraction() as step) if (
                self.expression.type.kind in ("integer", "numeric") and step.denominator == 1
            ):
                ends = f"{-(-low // step) * step}::bigint, {high // step * step}::bigint, {step}::bigint"
                digits = f"(1000, {shown_digits(self.expression)})" if kind == "numeric" else ""
                return f"pg_catalog.generate_series({ends})::{kind}{digits}"
        return f"pg_catalog.unnest({array_sql(_texts(self.expression))}::text[])::{kind}"


Piece = PublicTables | ListedRows


def tables_of(cover: Cover) -> Iterator[PublicTables]:
    """Each public table by itself, and the partners of outer joins together."""
    for table in cover.public:
        yield PublicTables((table,))
    for partner in cover.partners:
        inner = partner.cover
        owned = {number for scan in inner.public for number in types_of(scan)}
        if inner.public:
            within = tuple(condition for condition in inner.conditions if is_over(condition, owned))
            yield PublicTables(inner.public, within, optional=True, on=partner.conditions)
        yield from (replace(table, optional=True) for table in tables_of(Cover(partners=inner.partners)))


def groups_sql(
    pieces: Sequence[Piece],
    conditions: Sequence[Expression],
    chosen: Mapping[int, Values],
    keys: Sequence[Expression],
    names: Mapping[int, str],
    limit: int,
) -> str:
    """All combinations of the keys' values over rows of these pieces that meet the conditions."""
    sources, names_of = [], dict[int, str]()
    for place, piece in enumerate(pieces):
        used = [number for number in piece.columns() if number in names]
        sources.append(f"({piece.sql(used, names)}) AS t{place}")
        names_of |= {number: f"t{place}.{names[number]}" for number in used}
    where = [expression_sql(condition, names_of) for condition in conditions]
    for place, piece in enumerate(pieces):
        ties = piece.on if isinstance(piece, PublicTables) else ()
        where += [f"({expression_sql(tie, names_of)} OR t{place}.present IS NULL)" for tie in ties]
    where += [_one_of(names_of[number], values, pieces, number) for number, values in chosen.items()]
    shown = ", ".join(f"{expression_sql(key, names_of)} AS k{place}" for place, key in enumerate(keys))
    test = f" WHERE {' AND '.join(where)}" if where else ""
    rows = f" FROM {' CROSS JOIN '.join(sources)}" if sources else ""  # constants need none
    return f"SELECT DISTINCT {shown}{rows}{test} LIMIT {limit}"


def _one_of(name: str, among: Values, pieces: Sequence[Piece], number: int) -> str:
    column = next(columns[number] for piece in pieces if number in (columns := piece.columns()))
    texts = [text for item in among.items if (text := text_of(item, column.type.plain(), "UTC")) is not None]
    return f"({name} = ANY ({array_sql(texts)}::{read_type(column.type)}[])) IS NOT FALSE"


def _table_sql(
    scan: Scan, columns: Mapping[int, Column], read: Sequence[int], names: Mapping[int, str], *, on_real: bool
) -> str:
    """The rows of a public table, its values read as what they mean."""
    real = dict(scan.names)
    cells = [
        f"(r.cells)[{place}]::{read_type(columns[number].type)} AS {names[number]}"
        for place, number in enumerate(read, start=1)
    ]
    rows = rows_sql(scan.table, [real[number] for number in read], on_real=on_real)
    return f"SELECT {', '.join(cells) or 'TRUE'} FROM {rows} AS r(cells)"


def rows_sql(table: TableName, columns: Sequence[str], *, on_real: bool) -> str:
    """Columns of a public table as texts, an array for each row: an item of FROM."""
    if on_real:
        texts = ", ".join(f"{quoted_name(column)}::pg_catalog.text" for column in columns)
        return f"(SELECT ARRAY[{texts}]::pg_catalog.text[] FROM {qualified(table)})"
    return (
        f"pg_catalog.noisegate_public_rows({quoted_text(qualified(table))}::pg_catalog.regclass, "
        f"{array_sql(columns)}::name[])"
    )


def read_type(sql_type: Type) -> str:
    """The type of a value; a character(n) and a name are read as text, as they are inside."""
    return TEXT.sql if sql_type.base in ("bpchar", "name") else sql_type.plain().sql


def array_sql(texts: Sequence[str]) -> str:
    """An array of texts as one constant."""
    cells = ('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return quoted_text("{" + ",".join(cells) + "}")


def _day(days: int) -> str:
    return f"'{text_of(Fraction(days), Type('date'))}'::date"


def _texts(expression: Expression) -> list[str]:
    items = domain.items_of(expression.domain, MOST_DAYS) or ()
    kind = expression.type if expression.type.kind == "enum" else expression.type.plain()
    if kind.kind == "numeric":
        kind = replace(kind, scale=shown_digits(expression))
    return [text for item in items if (text := text_of(item, kind, "UTC")) is not None]


def listed(number: int, expression: Expression, limit: int) -> ListedRows | None:
    """The list of an expression's values, if it is known and not too long to be written."""
    items = domain.items_of(expression.domain, limit)
    if items is None or expression.type.kind in ("float", "interval", "other", "unknown", "uuid"):
        return None
    if expression.type.kind == "numeric" and shown_digits(expression) is None:
        return None  # what is computed of it may be its text
    made = ListedRows(number, expression)
    is_series = expression.type.kind in ("integer", "numeric") and isinstance(expression.domain, Range)
    if not is_series and (len(texts := _texts(expression)) < len(items) or sum(map(len, texts)) > _LONGEST_LIST):
        return None
    return made


def every_day(number: int, column: Column, time_zone: str) -> ListedRows | None:
    """All days between a column's bounds, each as one moment of it."""
    span = domain.range_of(column.domain)
    if span.low is None or span.high is None:
        return None
    match column.type.kind:
        case "date":
            ends: tuple[int | None, int | None] = int(span.low), int(span.high)
        case "timestamp":
            ends = int(span.low // DAY), int(span.high // DAY)
        case _:
            local = [to_local(int(bound), time_zone) for bound in (span.low, span.high)]
            ends = (local[0] and local[0] // DAY, local[1] and local[1] // DAY)
    first, last = ends
    if first is None or last is None or not 0 <= last - first < MOST_DAYS:
        return None
    return ListedRows(number, column, (first, last))
