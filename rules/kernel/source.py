"""The rows that are counted, as the first common table expression of every bounded statement.

Its columns are the unit `u`, the keys `g1`, `g2`, …, the cases of pivots `p1`, … and the values of measures `v1`, …
Units are NOT NULL here, labels are in their list, and found keys are short: what is counted, capped and scaled later is
the rows that pass these tests and no others.

Products of decimal columns, from the integers that stand for their factors.

A report sums a price, a discount, price · (1 − discount), and more of the kind. As numerics each of these reads, clamps
and multiplies anew. Here each column becomes an integer once, as it does for a sum of its own, and the products are
bigints. They are clamped last like every summand, so no amount rests on this; that the integers are those of numeric
arithmetic follows from the column's own type, which has no more digits than the steps in which it is counted.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import prod

from rules.kernel import measures as m
from rules.kernel.added import hashed, is_short, key_text
from rules.kernel.expressions import key_wrap
from rules.kernel.keys import Bins, Found, Key, KeySql, Listed, listed_sql
from rules.kernel.rows import Item, Rows
from rules.kernel.summand import LARGEST, Lattice, Summand, clamped
from rules.refusal import NotSupported
from rules.values.expression import Apply, Column, Constant, Expression, is_true
from rules.values.types import INT4

Pivots = tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class Term:
    """One measure over columns of the rows: its value, and the condition under which a row has one."""

    number: int
    measure: m.Measure
    value: str
    where: str

    @property
    def name(self) -> str:
        """Of the measure in a part of a statement."""
        return f"x{self.number}"

    @property
    def summed(self) -> str:
        """Of what the rows of one unit and group add up to."""
        return f"s{self.number}"

    @property
    def total(self) -> str:
        """Σq, or the number of rows: an aggregate over rows."""
        match self.measure:
            case m.Count() | m.Values() | m.Units():
                return f"count({self.value}){self.filtered}"
        return f"coalesce(sum({self.value}){self.filtered}, 0)"

    @property
    def filtered(self) -> str:
        return f" FILTER (WHERE {self.where})" if self.where else ""


@dataclass(frozen=True, slots=True)
class Source:
    """The counted rows, and how keys and measures are named in them."""

    sql: str
    keys: tuple[Key, ...]
    terms: tuple[Term, ...]
    has_identity: bool  # or `u` is missing
    is_shared: bool  # some measures are made of the same columns
    is_steady: bool  # the rows are the same whenever they are read within a statement

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"g{place}" for place in range(1, len(self.keys) + 1))

    @property
    def once(self) -> str:
        """The rows as an item of FROM. Where columns are shared each is computed once, in a sub-select of its own:
        without OFFSET, which does nothing else, PostgreSQL would compute them wherever they are read. It is written as
        a text, for PostgreSQL lets no parallel plan read behind an offset of which it does not know that it is none,
        and it casts a number first."""
        return "(SELECT * FROM r OFFSET '0') AS r" if self.is_shared else "r"

    @property
    def shown(self) -> tuple[str, ...]:
        """The keys as they leave: places in lists, and texts."""
        named = zip(self.keys, self.names, strict=True)
        return tuple(key_text(name) if isinstance(key, Found) else name for key, name in named)

    def hashed(self, *more: str) -> str:
        """A hash of unit, keys and more: seeded by the unit, or else all units would keep the same groups."""
        seed = hashed("u", "0")
        for key, name in zip(self.keys, self.names, strict=True):
            seed = hashed(name, seed, key.expression.type if isinstance(key, Found) else INT4)
        return reduce(lambda seed, column: hashed(column, seed), more, seed)


class Columns:
    """The columns that are read: each expression once."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._aliases: dict[tuple[Expression, str], str] = {}
        self.has_products = False

    def read(self, expression: Expression, wrap: str = "{0}") -> str:
        """The name of a column with this expression, seen from the rows that are counted."""
        return self._aliases.setdefault((expression, wrap), f"v{len(self._aliases) + 1}")

    def summand(self, summand: Summand) -> str:
        """The integer of a summand: the name of a column, or a product of several."""
        factors = factors_of(summand, self._rows.is_stored)
        if factors:
            self.has_products = True
            product = " * ".join(factor.sql(self.summand(factor.summand)) for factor in factors)
            if (steps := _steps(summand, factors)) > 1:
                product = f"({product} + {steps // 2}) / {steps}"
            return clamped(product, summand.lattice)
        return self.read(summand.expression, summand.wrap(is_stored=self._rows.is_stored(summand.expression)))

    def condition(self, expression: Expression) -> str:
        """A condition as SQL; nothing where it is always true."""
        if expression.type.kind != "boolean":
            raise NotSupported(f"the condition must be of type boolean, not {expression.type.sql}")
        return "" if is_true(expression) else self.read(expression)

    @property
    def items(self) -> list[Item]:
        return [Item(alias, expression, wrap) for (expression, wrap), alias in self._aliases.items()]


def source_of(
    rows: Rows,
    keys: Sequence[Key],
    measures: Sequence[m.Measure],
    pivots: Pivots,
    also: Callable[[Columns], None] | None = None,
) -> Source:
    """The counted rows with all that the measures need, and what else is to be read."""
    columns = Columns(rows)
    keyed = [_key(key, columns, f"l{place}") for place, key in enumerate(keys, start=1)]
    cases = [_cases(conditions, columns) for conditions in pivots]
    terms = tuple(
        Term(number, measure, *_value_and_condition(measure, columns, pivots))
        for number, measure in enumerate(measures)
    )
    if also is not None:
        also(columns)
    outputs = ["u"] if rows.has_identity else []
    outputs += [f"{key.value} AS g{place}" for place, key in enumerate(keyed, start=1)]
    outputs += [f"{case} AS p{place}" for place, case in enumerate(cases, start=1)]
    outputs += [item.alias for item in columns.items]
    source = " ".join([f"({rows.select(columns.items)}) AS s", *(join for key in keyed for join in key.joins)])
    conditions = ["u IS NOT NULL"] if rows.has_identity else []
    conditions += [key.condition for key in keyed if key.condition]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Source(
        f"SELECT {', '.join(outputs)} FROM {source}{where}",
        *(tuple(keys), terms, rows.has_identity, columns.has_products),
        is_steady=rows.are_steady(columns.items),
    )


def _key(key: Key, columns: Columns, name: str) -> KeySql:
    match key:
        case Listed(expressions=expressions):
            read = tuple(columns.read(expression, key_wrap(expression)) for expression in expressions)
            return listed_sql(key, read, name)
        case Found(expression=expression):
            column = columns.read(expression, key_wrap(expression))
            return KeySql(column, condition=is_short(expression.type, column))
        case Bins(summand=summand):
            column = columns.read(summand.expression, key.wrap)
            return KeySql(column, condition=f"{column} IS NOT NULL")


def _cases(conditions: Sequence[Expression], columns: Columns) -> str:
    """The first condition that is true, by its place: a row is in one case, whether they exclude each other or not."""
    tested = [columns.condition(condition) or "true" for condition in conditions]
    branches = " ".join(f"WHEN {condition} THEN {place}" for place, condition in enumerate(tested))
    return f"CASE {branches} END" if tested else "NULL::int4"


def _value_and_condition(measure: m.Measure, columns: Columns, pivots: Pivots) -> tuple[str, str]:
    where = _case(measure.case, pivots)
    match measure:
        case m.Count(condition=condition) | m.Units(condition=condition):
            return "*", " AND ".join(filter(None, [where, columns.condition(condition)]))
        case m.Values(summand=summand) | m.DistinctValues(summand=summand):
            return columns.summand(summand), where
        case m.Sum(summand=summand, centred=centred) | m.DistinctSum(summand=summand, centred=centred):
            return _value(summand, columns, centred=centred), where
        case m.Products(first=first, second=second):
            values = (_value(summand, columns, centred=True) for summand in (first, second))
            return " * ".join(f"({value})" for value in values), where
        case m.Distinct(expression=expression):
            return columns.read(expression, key_wrap(expression)), where


def _value(summand: Summand, columns: Columns, *, centred: bool) -> str:
    """q, or 2q − (low + high), both of which are bigints by the clamp; NULL stays NULL."""
    column = columns.summand(summand)
    return f"2 * {column} - ({summand.lattice.low + summand.lattice.high})" if centred else column


def _case(case: m.Case | None, pivots: Pivots) -> str:
    if case is None:
        return ""
    if not (0 <= case.pivot < len(pivots) and 0 <= case.number < len(pivots[case.pivot])):
        raise NotSupported("there is no such case of a pivot")
    return f"p{case.pivot + 1} = {int(case.number)}"


_MOST = 8  # factors
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_CLAMPED = "CASE WHEN {0} <> 'NaN' THEN least(greatest({0}, {1}), {2}) END"


@dataclass(frozen=True, slots=True)
class Factor:
    """constant + sign · q, in steps of a column's lattice."""

    summand: Summand
    constant: int = 0
    sign: int = 1

    @property
    def _ends(self) -> tuple[int, int]:
        lattice = self.summand.lattice
        return self.constant + self.sign * lattice.low, self.constant + self.sign * lattice.high

    @property
    def reach(self) -> int:
        return max(1, *map(abs, self._ends))

    @property
    def least(self) -> int:
        return min(self._ends)

    def sql(self, name: str) -> str:
        return f"({self.constant} {'+' if self.sign > 0 else '-'} {name})" if self.constant else name


def factors_of(summand: Summand, is_stored: Callable[[Expression], bool]) -> tuple[Factor, ...]:
    """Factors whose product is the summand's integer before its last clamp; none where it is no product that fits.

    In coarser steps than the product has, it is rounded by a division of integers, which rounds as PostgreSQL rounds a
    numeric where no factor is below zero.
    """
    factors = _factors(summand.expression, is_stored)
    if not 1 < len(factors) <= _MOST:
        return ()
    steps = _steps(summand, factors)
    is_whole = steps == 1 or (steps.denominator == 1 and min(factor.least for factor in factors) >= 0)
    fits = steps < LARGEST and prod(factor.reach for factor in factors) < LARGEST
    return factors if is_whole and fits else ()


def _steps(summand: Summand, factors: Sequence[Factor]) -> Fraction:
    """How many steps of the product are one of the summand."""
    return summand.lattice.step / prod(factor.summand.lattice.step for factor in factors)


def _factors(expression: Expression, is_stored: Callable[[Expression], bool]) -> tuple[Factor, ...]:
    match expression:
        case Apply(sql="({0} * {1})", arguments=(left, right)):
            one, two = _factors(left, is_stored), _factors(right, is_stored)
            return (*one, *two) if one and two else ()
        case Apply(sql="({0} + {1})" | "({0} - {1})" as sql, arguments=(Constant(text=text), other)):
            sign, decimals = 1 if "+" in sql else -1, _decimals(other, is_stored)
            number = _whole(text, decimals.lattice.step) if decimals else None
            return (Factor(decimals, number, sign),) if decimals and number else ()
        case _:
            decimals = _decimals(expression, is_stored)
            return (Factor(decimals),) if decimals else ()


def _decimals(expression: Expression, is_stored: Callable[[Expression], bool]) -> Summand | None:
    """A table's own numeric(p, s), clamped, in steps of its last digit."""
    match expression:
        case Apply(sql=sql, arguments=(Column(type=kind) as column, Constant() as least, Constant() as most)):
            if sql != _CLAMPED or kind.kind != "numeric" or kind.scale is None or not is_stored(column):
                return None
            step = Fraction(1, 10 ** max(kind.scale, 0))
            low, high = _whole(least.text, step), _whole(most.text, step)
            if low is not None and high is not None and -LARGEST <= low <= high <= LARGEST:
                return Summand(column, Lattice(step, low, high))
    return None


def _whole(text: str | None, step: Fraction) -> int | None:
    """A constant in steps, if it is a whole number of them. Of a text it is not known who wrote it: 1e999999999 has few
    signs and many digits."""
    if text is None or _DECIMAL.fullmatch(text) is None:
        return None
    number = Fraction(text) / step
    return int(number) if number.denominator == 1 else None
