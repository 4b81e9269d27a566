"""Typed expressions over the columns of a relation: what they are, what they can be, and how SQL says them.

An expression cannot fail on any row. That is the work of the registry in `functions`, which makes all of them: each
operation brings a template whose text is ours, never the analyst's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rules.relation.domain import ANYTHING, TRUTHS, Domain, Values
from rules.relation.types import BOOLEAN, Type
from rules.relation.value import Span, Value


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation, known by its number: names belong to the analyst's text, numbers to the tree."""

    id: int
    type: Type
    domain: Domain = ANYTHING  # holds of the values as they are
    declared: Domain = ANYTHING  # what the rules say of them: enforced where it is needed, never believed
    nullable: bool = True
    name: str = ""  # for messages


@dataclass(frozen=True, slots=True)
class Constant:
    """A typed constant with its canonical text; None is NULL."""

    type: Type
    text: str | None
    value: Value | Span | None = None

    @property
    def domain(self) -> Domain:
        if self.text is None:
            return Values(())
        return ANYTHING if self.value is None or isinstance(self.value, Span) else Values((self.value,))

    @property
    def nullable(self) -> bool:
        return self.text is None


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation of the registry: `sql` is a template of our own with {0}, {1}, … for its arguments."""

    name: str
    sql: str
    arguments: tuple["Expression", ...]
    type: Type
    domain: Domain = ANYTHING
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Literal:
    """A string in the analyst's text whose type is still open (PostgreSQL's "unknown")."""

    text: str


Expression = Column | Constant | Apply
Operand = Expression | Literal

TRUE = Constant(BOOLEAN, "true", True)
FALSE = Constant(BOOLEAN, "false", False)


def null_of(given: Type) -> Constant:
    return Constant(given, None)


def condition(name: str, sql: str, *arguments: Expression, nullable: bool | None = None) -> Apply:
    """A boolean operation; NULL when an argument is, unless told otherwise."""
    may_be_null = any(each.nullable for each in arguments) if nullable is None else nullable
    return Apply(name, sql, arguments, BOOLEAN, TRUTHS, may_be_null)


def all_of(conditions: tuple[Expression, ...]) -> Expression:
    """The conjunction; TRUE of none. In one order, and each once, so that equal questions are equal."""
    conditions = tuple(sorted(dict.fromkeys(conditions), key=_spelling))
    match conditions:
        case ():
            return TRUE
        case (only,):
            return only
    holes = " AND ".join(f"{{{place}}}" for place in range(len(conditions)))
    return condition("and", f"({holes})", *conditions)


def _spelling(given: Expression) -> str:
    match given:
        case Column(id=number):
            return f"c{number}"
        case Constant(type=kind, text=text):
            return f"{kind.base} {text}"
        case Apply(sql=sql, arguments=arguments):
            return f"{sql}({', '.join(map(_spelling, arguments))})"


def conjuncts(given: Expression) -> Iterator[Expression]:
    """The conditions that must all be true for this one to be true."""
    if isinstance(given, Apply) and given.name == "and":
        for each in given.arguments:
            yield from conjuncts(each)
    else:
        yield given


def columns_in(given: Expression) -> Iterator[Column]:
    """Every use of a column, in the order of the text."""
    match given:
        case Column():
            yield given
        case Apply(arguments=arguments):
            for each in arguments:
                yield from columns_in(each)


def ids_in(*given: Expression) -> frozenset[int]:
    return frozenset(column.id for each in given for column in columns_in(each))
