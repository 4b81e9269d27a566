"""Compare by x IN (SELECT y …), (a, b) IN (SELECT c, d …) and x < ANY (SELECT y …), with what a NULL leaves open.

x < ANY (…) is true if some row makes it true, NULL if none does and some leaves it open, else false; IN is = ANY, and
ALL is NOT … ANY by the opposite sign. So each is made of two tests that are never NULL: whether a row makes it true,
and whether a row does not make it false.
"""

from fractions import Fraction

from rules.frozen import frozen
from rules.functions import comparison
from rules.functions.function import EvalContext
from rules.functions.registry import operate
from rules.refusal import NotSupported
from rules.sql import syntax as s
from rules.values.expression import FALSE, Column, Constant, Expression, Literal, Operand, all_of

MOST_COMPARED = 500  # rows of an answer that are compared one by one


@frozen
class Members:
    """The values that are looked for, and the sign."""

    values: tuple[Operand, ...]
    sign: str

    def is_open(self, columns: tuple[Column, ...]) -> bool:
        """Return whether a NULL may leave it open."""
        return any(not isinstance(value, Literal) and value.nullable for value in (*self.values, *columns))

    def true(self, columns: tuple[Column, ...], setting: EvalContext) -> tuple[Expression, ...]:
        return tuple(comparison.compare(self.sign, *pair, setting) for pair in zip(self.values, columns, strict=True))

    def not_false(self, columns: tuple[Column, ...], setting: EvalContext) -> tuple[Expression, ...]:
        """A pair that is never NULL is compared as it is: such an equality may link units."""
        return tuple(
            comparison.test("is not false", expression, setting) if expression.nullable else expression
            for expression in self.true(columns, setting)
        )


def written(test: s.InQuery) -> tuple[s.Expression, ...]:
    """The values on the left side: one, or those of a row."""
    match test.argument:
        case s.Operator(name="row", arguments=values):
            if len(values) > 1 and test.sign != "=":
                hint = "Compare the columns one by one in EXISTS (SELECT 1 … WHERE …)."
                raise NotSupported(f"a row can be compared with a subquery only by =, not by {test.sign}", hint=hint)
            return values
    return (test.argument,)


def among(
    values: tuple[Operand, ...], test: s.InQuery, rows: tuple[tuple[Constant, ...], ...], setting: EvalContext
) -> Expression:
    """The test against rows that are known: those of an answer."""
    if test.sign == "=" and len(values) == 1:
        return comparison.in_list(values[0], tuple(row[0] for row in rows), setting, negated=test.negated)
    rows = _furthest(rows, test.sign)
    if len(rows) > MOST_COMPARED:
        raise NotSupported(f"{test.sign} ANY over a subquery of more than {MOST_COMPARED} rows is not supported")
    expression: Expression = FALSE
    if rows:
        expressions = (_alike(values, row, test.sign, setting) for row in rows)
        expression = comparison.either(*expressions, setting=setting) if len(rows) > 1 else next(expressions)
    return comparison.negation(expression, setting) if test.negated else expression


def _alike(values: tuple[Operand, ...], row: tuple[Constant, ...], sign: str, setting: EvalContext) -> Expression:
    return all_of(tuple(operate(sign, pair, setting) for pair in zip(values, row, strict=True)))


def _furthest(rows: tuple[tuple[Constant, ...], ...], sign: str) -> tuple[tuple[Constant, ...], ...]:
    """Of the numbers that x is less than any of, the largest says it all; a NULL says what it leaves open."""
    known = [row for row in rows if row[0].text is not None]
    numbers = {row[0].value: row for row in known if isinstance(row[0].value, Fraction)}
    if sign not in ("<", "<=", ">", ">=") or len(numbers) == 0 or any(row[0].value not in numbers for row in known):
        return rows
    last = (max if sign.startswith("<") else min)(value for value in numbers if isinstance(value, Fraction))
    return (numbers[last], *[row for row in rows if row[0].text is None][:1])
