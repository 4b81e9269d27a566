"""What families of functions are made with: the context of an expression, and facts registered beside the code.

The context is what an expression depends on besides its columns: time zone, clock, styles, and what the real database
can. The facts of each function are known by its name, and read by everything else.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from rules.frozen import frozen, replace
from rules.refusal import NotSupported
from rules.values.expression import Expression, Operand
from rules.values.types import Type


@frozen
class Styles:
    """The styles in which the session writes and reads dates and intervals, and writes doubles."""

    date: str = "ISO"  # German, SQL or Postgres, or ISO, with the order of day and month
    interval: str = "postgres"
    has_short_floats: bool = False  # by extra_float_digits below 1: rounded, not the shortest text that is the number


PLAIN = Styles()


@frozen
class LiteralSettings:
    """The settings by which PostgreSQL reads dates, times and intervals in the literals of a text that it parses."""

    time_zone: str = "UTC"
    date_style: str = "ISO, MDY"
    interval_style: str = "postgres"


@frozen
class LiteralText:
    """A literal as PostgreSQL itself reads it, in canonical text; None where it cannot."""

    type: str
    literal: str
    text: str | None


@frozen
class EvalContext:
    """All that an expression depends on besides its columns. In a key, declared values are enforced on texts too."""

    time_zone: str = "UTC"
    now: datetime | None = None
    as_key: bool = False
    styles: Styles = PLAIN
    readings: tuple[LiteralText, ...] = ()
    server_version: int = 180000  # of the real database: what runs there has to be known there
    time_zones: frozenset[str] | None = None  # that are known there
    encoding: str = "UTF8"  # of the texts there
    parsed_under: LiteralSettings | None = None  # where the text was parsed before these styles and this zone were set

    @property
    def literals(self) -> LiteralSettings:
        """Return the settings by which literals of the text are read."""
        return self.parsed_under or LiteralSettings(self.time_zone, self.styles.date, self.styles.interval)

    def of_execution(self) -> "EvalContext":
        """For a text that PostgreSQL reads when the statement runs. Nothing has been read on the twin for that."""
        return self if self.parsed_under is None else replace(self, parsed_under=None, readings=())


@frozen
class UnreadLiterals:
    """Literals that PostgreSQL must read before the planner can go on, and the type that they are read as."""

    texts: tuple[str, ...]
    type: Type


class Needed(Exception):
    """Ends binding at the first thing that must be known before; `rules.bind.correlated_subquery` makes it a value."""

    def __init__(self, what: object) -> None:
        super().__init__(what)
        self.what = what


Operands = tuple[Operand, ...]
Maker = Callable[[Operands, EvalContext], Expression]
NamedMaker = Callable[[str, Operands, EvalContext], Expression]


@frozen
class Function:
    """One function of PostgreSQL over protected rows: it fails on no row, whatever values its arguments have."""

    name: str
    least: int  # arguments
    most: int
    make: Maker
    since: int  # the first major version of PostgreSQL that has it
    examples: tuple[str, ...]  # over the columns of tests/properties/worst.py, where each is tried on the worst values


FUNCTIONS: dict[str, Function] = {}


def listed(examples: str) -> tuple[str, ...]:
    """The examples in a text, as `function` takes them."""
    return tuple(example.strip() for line in examples.strip().splitlines() for example in line.split(" | "))


def function(
    name: str, *, arguments: int | tuple[int, int], examples: str, since: int = 13
) -> Callable[[Maker], Maker]:
    """Register what makes a function. Examples stand between bars, or each on a line."""
    least, most = arguments if isinstance(arguments, tuple) else (arguments, arguments)

    def register(make: Maker) -> Maker:
        FUNCTIONS[name] = Function(name, least, most, make, since, listed(examples))
        return make

    return register


def function_of_name(
    name: str, *, arguments: int | tuple[int, int], examples: str, since: int = 13, same_as: str = ""
) -> Callable[[NamedMaker], NamedMaker]:
    """Register one of several functions that are made alike: their maker is given the name first.

    PostgreSQL has two names for some; `same_as` is the one that is written.
    """

    def register(make: NamedMaker) -> NamedMaker:
        function(name, arguments=arguments, examples=examples, since=since)(partial(make, same_as or name))
        return make

    return register


def check_unicode(name: str, setting: EvalContext) -> None:
    """In other encodings some letters have no code or no capital, and PostgreSQL then fails on the rows with these."""
    if setting.encoding != "UTF8":
        hint = "Only listed functions, which fail on no row, read protected rows; apply it to the aggregated result."
        raise NotSupported(
            f"{name} needs a database with encoding UTF8, and the real database has {setting.encoding}", hint=hint
        )
