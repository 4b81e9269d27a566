"""Typed expressions over the columns of a relation: what they are, what they can be, and how SQL says them.

An expression fails on no row, whatever values its columns have: its own text sees to that. It is the work of the
registry in `functions`, which makes all of them: each operation brings a template whose text is ours, never the
analyst's. `domain` tells what values there can be, conditions and CHECKs included, and is advice; a guard is left out
only by what is `sure`. Hashes are of numbers, texts and templates alone, for a plan asks for hundreds: little differs
in the rest alone.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from itertools import chain
from typing import Final

from rules.frozen import frozen, replace
from rules.values.domain import ANYTHING, TRUTHS, Domain, Values
from rules.values.enforced import UNSURE, Sure, between, of_type
from rules.values.types import BOOLEAN, Type
from rules.values.value import Span, Value


@frozen
class Column:
    """A column of a relation, known by its number: names belong to the analyst's text, numbers to the tree."""

    id: int
    type: Type = field(hash=False)
    domain: Domain = field(default=ANYTHING, hash=False)  # holds of the values as they are
    declared: Domain = field(default=ANYTHING, hash=False)  # by the rules: enforced where it is needed, never believed
    nullable: bool = field(default=True, hash=False)
    name: str = field(default="", hash=False)  # for messages
    filled: bool = field(default=False, hash=False)  # by the rules never NULL: enforced where it makes groups
    other: bool = field(default=False, hash=False)  # by the rules what is not as declared makes a group too
    collated: bool = field(default=False, hash=False)  # by a collation of the table's, and read by the database's
    total: bool = field(default=False, hash=False)  # of a unit's rows: what is declared is how much of it is summed

    @property
    def sure(self) -> Sure:
        return of_type(self.type)


@frozen
class Constant:
    """A typed constant with its canonical text; None is NULL."""

    type: Type = field(hash=False)
    text: str | None
    value: Value | Span | None = field(default=None, hash=False)

    @property
    def domain(self) -> Domain:
        if self.text is None:
            return Values(())
        return ANYTHING if self.value is None or isinstance(self.value, Span) else Values((self.value,))

    @property
    def nullable(self) -> bool:
        return self.text is None

    @property
    def sure(self) -> Sure:
        """NULL is none of the values that it is bounded by; zero stands for it."""
        if self.text is None:
            return Sure(Fraction(0), Fraction(0), 0)
        if not isinstance(self.value, Fraction):
            return UNSURE
        digits = None if self.type.kind == "float" else len(self.text.partition(".")[2])
        return Sure(self.value, self.value, digits)


@frozen
class Apply:
    """An operation of the registry: `sql` is a template of our own with {0}, {1}, … for its arguments."""

    name: str = field(hash=False)
    sql: str
    arguments: tuple["Expression", ...]
    type: Type = field(hash=False)
    domain: Domain = field(default=ANYTHING, hash=False)
    nullable: bool = field(default=True, hash=False)
    held: Sure = field(default=UNSURE, hash=False)  # what the text itself holds it within
    strict: bool = field(default=True, hash=False)  # NULL where one of its arguments is
    passes: bool = field(default=False, hash=False)  # its first argument as it is, or NULL
    is_short: bool = field(default=False, hash=False)  # a text no longer than its first argument, which is short

    @property
    def sure(self) -> Sure:
        """The width of a result's type is PostgreSQL's own, its precision is not."""
        by_type = of_type(self.type.plain())
        sure = between(self.held, by_type.low, by_type.high)
        return sure if by_type.digits is None else replace(sure, digits=by_type.digits)


@frozen
class Literal:
    """A string in the analyst's text whose type is still open (PostgreSQL's "unknown")."""

    text: str


Expression = Column | Constant | Apply
Operand = Expression | Literal

# Comparisons, and what says the same from the other side.
MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

TRUE = Constant(BOOLEAN, "true", True)
FALSE = Constant(BOOLEAN, "false", False)


def null_of(sql_type: Type) -> Constant:
    return Constant(sql_type, None)


def condition(name: str, sql: str, *arguments: Expression, nullable: bool | None = None, strict: bool = True) -> Apply:
    """Make a boolean operation; it can be NULL where one of its arguments can, unless `nullable` says otherwise."""
    may_be_null = any(argument.nullable for argument in arguments) if nullable is None else nullable
    return Apply(name, sql, arguments, BOOLEAN, TRUTHS, may_be_null, strict=strict)


def all_of(conditions: tuple[Expression, ...]) -> Expression:
    """The conjunction; TRUE of none. In one order, and each once, so that equal questions are equal."""
    if len(conditions) > 1:
        conditions = tuple(sorted(dict.fromkeys(conditions), key=spelling))
    match conditions:
        case ():
            return TRUE
        case (only,):
            return only
    holes = " AND ".join(f"{{{place}}}" for place in range(len(conditions)))
    return condition("and", f"({holes})", *conditions, strict=False)


def spelling(expression: Expression) -> str:
    """A text by which expressions can be put in order."""
    match expression:
        case Column(id=number):
            return f"c{number}"
        case Constant(type=kind, text=text):
            return f"{kind.base} {text}"
        case Apply(sql=sql, arguments=arguments):
            return f"{sql}({', '.join(map(spelling, arguments))})"


def is_true(expression: Expression) -> bool:
    """Return whether it is the constant. Mostly it is of another class, which is told sooner than that it differs."""
    return expression is TRUE or (type(expression) is Constant and expression == TRUE)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The conditions that must all be true for this one to be true."""
    if type(expression) is not Apply or expression.name != "and":
        return (expression,)
    if not any(type(argument) is Apply and argument.name == "and" for argument in expression.arguments):
        return expression.arguments
    return tuple(chain.from_iterable(map(conjuncts, expression.arguments)))


def columns_in(expression: Expression) -> Iterator[Column]:
    """Every use of a column, in the order of the text. Without calls within calls: a chain of 700 ORs is deep."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if type(part) is Column:
            yield part
        elif type(part) is Apply:
            waiting.extend(reversed(part.arguments))


def is_collated(expression: Expression) -> bool:
    """Return whether it is a text of columns that have a collation of their own."""
    return expression.type.kind == "text" and any(column.collated for column in columns_in(expression))


def has_column(expression: Expression) -> bool:
    """Return whether a column is used; the shallowest is looked for first, which in a chain is near."""
    waiting = deque([expression])
    while waiting:
        match waiting.popleft():
            case Column():
                return True
            case Apply(arguments=arguments):
                waiting.extend(arguments)
    return False


def ids_in(*expressions: Expression) -> frozenset[int]:
    """The numbers of the columns that are used. Planning asks for them some two hundred times: each call counts."""
    numbers: set[int] = set()
    waiting = [*expressions]
    while waiting:
        expression = waiting.pop()
        if type(expression) is Apply:
            waiting += expression.arguments
        elif type(expression) is Column:
            numbers.add(expression.id)
    return frozenset(numbers)
