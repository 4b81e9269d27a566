"""A private plan: what will run inside, how it is noised, and the analyst's query around it.

A plan depends on the statement, the rules, the catalog and the session's settings, never on a row. It is made in a
worker and travels to the session as plain frozen values.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

Text = str | None  # a value as PostgreSQL prints it; None is NULL


@dataclass(frozen=True, slots=True)
class Measure:
    """One integer column of the inner statement, over all groups: one vector, one draw of noise."""

    name: str  # canonical: equal blocks and equal names mean equal numbers
    sensitivity: int  # L1, over all groups together, for one unit
    epsilon: Decimal


@dataclass(frozen=True, slots=True)
class Count:
    """A count: the measure itself, not below zero where a select item shows it bare."""

    measure: int  # which of the block's measures
    shown_bare: bool = False


@dataclass(frozen=True, slots=True)
class Sum:
    """(measure) · step, printed with exactly `digits` after the point."""

    measure: int
    step: Fraction
    digits: int


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of a clamped column from centred halves: mid + (halves / 2 · step) / count, within [low, high]."""

    halves: int  # measure: Σ (2q − (Lo+Hi))
    count: int  # measure: rows with a value
    step: Fraction
    low: Fraction
    high: Fraction
    digits: int


Output = Count | Sum | Average  # widened as aggregates are added; each is computed from noised integers alone


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One grouping column of an answer."""

    type: str  # what the outer statement casts it to
    name: str


@dataclass(frozen=True, slots=True)
class PublicGroups:
    """Groups known from the query and the rules; all are answered, in this order. () without GROUP BY: one group."""

    rows: tuple[tuple[Text, ...], ...]


@dataclass(frozen=True, slots=True)
class PrivateGroups:
    """Groups found in the data: those whose noisy number of units reaches a threshold."""

    measure: int  # the units per group
    threshold: int
    delta: Decimal
    # Columns whose values are known beforehand are completed from the list, never from the data.


Groups = PublicGroups | PrivateGroups


@dataclass(frozen=True, slots=True)
class Block:
    """One private aggregate: an inner statement whose rows are keys (as text) and then measures (as int8)."""

    canonical: str  # equal canonical text means equal block: the key of reuse
    sql: str
    keys: tuple[KeyColumn, ...]
    groups: Groups
    measures: tuple[Measure, ...]
    outputs: tuple[Output, ...]
    output_types: tuple[str, ...]
    tables: tuple[str, ...]
    explanation: tuple[tuple[str, str], ...] = ()  # for EXPLAIN: (what, how)


@dataclass(frozen=True, slots=True)
class Plan:
    """Blocks to answer, and the outer statement over their columns.

    The outer statement is text with holes: a number n ≤ `parameters` is the client's $n; the holes after that are the
    blocks' columns as text[]: first block's keys, first block's outputs, second block's keys …
    """

    blocks: tuple[Block, ...]
    outer: tuple[str | int, ...]
    parameters: int
    epsilon: Decimal
    delta: Decimal
    notices: tuple[str, ...] = ()

    def outer_with_parameters(self) -> str:
        """The outer statement with $n for every hole."""
        return "".join(part if isinstance(part, str) else f"${part}" for part in self.outer)


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that a plan depends on besides the rules and the catalog."""

    text: str  # one statement: a query, or DECLARE or COPY around one
    search_path: tuple[str, ...]  # the effective one, as current_schemas(true) says
    parameter_types: tuple[str, ...] = ()  # format_type of each, as the twin inferred them
    parameters: tuple[Text, ...] = ()  # canonical text of each
    epsilon: Decimal = Decimal("0.1")
    delta: Decimal = Decimal(0)
    rows_per_unit: int | None = None  # lowered for the session
    groups_per_unit: int | None = None
    time_zone: str = "UTC"
    now: str = ""  # the statement's clock, ISO with offset
