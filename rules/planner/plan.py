"""A private plan: what will run inside, how it is noised, and the analyst's query around it.

A plan depends on the statement, the rules, the catalog and the session's settings, never on a row. It is made in a
worker and travels to the session as plain frozen values.
"""

from collections.abc import Callable
from dataclasses import field
from decimal import Decimal
from functools import wraps
from typing import Concatenate, Final, ParamSpec

from rules.accounting.store import BudgetRequest
from rules.bind.inner_answers import InnerAnswer, InnerQuery
from rules.catalog import TableName
from rules.frozen import frozen, replace
from rules.functions.function import PLAIN, LiteralSettings, Styles
from rules.mechanisms.additive import mechanisms_of
from rules.mechanisms.noised_outputs import (
    Text,
)
from rules.mechanisms.release_plan import (
    Block,
)
from rules.release.margins import Result
from rules.release.marks import Mark
from rules.sql.session_settings import CONFIDENCE, EmptyGroups, MarkKind, PreviewKind
from rules.sql.tree import Node, bodies, holders, items, strings
from rules.values.time_zones import ZoneUse, noting_zones


@frozen
class Plan:
    """Blocks to answer, and the outer statement over their columns.

    The outer statement is text with holes: a number n ≤ `parameters` is the client's $n; the holes after that are the
    blocks' columns as text[]: first block's keys, first block's outputs, second block's keys … Then come the marks, and
    last the rows of virtual relations, a text[] each.
    """

    blocks: tuple[Block, ...]
    outer: tuple[str | int, ...]
    parameters: int
    epsilon: Decimal
    delta: Decimal
    notices: tuple[str, ...] = ()
    time_zone: str = "UTC"  # of the session: the inner statements run in it
    generation: int = 0  # of the rules and the catalog that it was made by; set by the service
    depends_on_time: bool = False  # now() and its like stand inside: the plan is good for this statement only
    zones: tuple[ZoneUse, ...] = ()  # that its lists and bounds rest on
    system_views: tuple[str, ...] = ()  # virtual relations, in the order of their holes
    spoken: tuple[tuple[str, ...], ...] = ()  # for EXPLAIN: how the analyst wrote each block's outputs
    foreseen: tuple[Block, ...] = ()  # blocks that are explained; what they would cost now fills one more hole
    results: tuple[Result, ...] = ()  # the columns that have noise
    marks: tuple[Mark, ...] = ()  # the columns whose numbers are marked; a hole for each comes after the blocks'
    fingerprint: str = ""  # of the statement, for log and ledger
    shape: str = ""  # the query without its constants, cut to MOST_SHAPE, for the ledger
    wanted: BudgetRequest | None = None  # more budget: what becomes of it fills one more hole
    is_inner: bool = False  # whether another statement needs the answer: with another answer that is another question
    size: int = 0  # about so many bytes of memory keep it; set by the service

    @property
    def is_told(self) -> bool:
        """Return whether a part of its answer is told by ledger and rules at that moment."""
        return bool(self.system_views or self.foreseen or self.wanted)

    @property
    def rho(self) -> Decimal | None:
        """Return what a fresh answer costs where some noise has no pure ε; None: ε says it."""
        costs = [cost for block in self.blocks for cost in mechanisms_of(block)]
        return (
            None if all(cost.epsilon is not None for cost in costs) else sum((cost.rho for cost in costs), Decimal(0))
        )

    def outer_with_parameters(self) -> str:
        """The outer statement with $n for every hole."""
        return "".join(part if isinstance(part, str) else f"${part}" for part in self.outer)


@frozen
class PublicQuery:
    """A query over public tables alone, for the real database: the twin does not hold the rows of all of them."""

    sql: str
    tables: tuple[TableName, ...]
    date_order: str = "MDY"  # in which it writes dates


@frozen
class NeedsInner:
    """An inner query that must be answered before its statement can be planned: protected rows meet its rows."""

    inner: InnerQuery
    text: str  # a statement of its own
    is_shown: bool = False  # the whole is only explained, so nothing is to be answered
    public: PublicQuery | None = None  # what answers it in the place of the twin
    depends_on_time: bool = False  # the statement's clock stands inside: another time needs another one


@frozen
class TemporaryView:
    """A temporary view of the session, and its query as PostgreSQL prints it, with the names of tables in full."""

    schema: str
    name: str
    definition: str


@frozen
class PreviewRows:
    """Synthetic rows of a protected table, which the twin has and the analyst who asks may read."""

    table: TableName
    source: TableName
    columns: tuple[str, ...]  # that these rows have
    order: tuple[str, ...]  # by which they come


@frozen
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
    rows_auto: bool | None = None  # whether the rows that count are chosen privately; None: as the rules say
    sums_auto: bool | None = None  # whether the bounds of sums are
    cut: bool = False  # whether a lower bound of what is cut is bought
    other: bool = False  # whether values that are not as the rules declare make a group too
    confidence: Decimal = CONFIDENCE  # of error bars
    mark: MarkKind = "off"  # of numbers that noise could have made
    empty_groups: EmptyGroups = "hide"  # of groups whose numbers could be noise alone
    previews: PreviewKind | None = None  # None: as the rules say for all
    time_zone: str = "UTC"
    now: str = field(default="", compare=False)  # the statement's clock, ISO with offset: a plan that reads it says so
    styles: Styles = PLAIN
    parsed_under: LiteralSettings | None = None  # by which its literals are read, where it was prepared under others
    views: tuple[TemporaryView, ...] = ()  # that the statement reads; their schema comes first in the search path
    preview_rows: tuple[PreviewRows, ...] = ()  # of a synopsis, where previews show one
    released: tuple[InnerAnswer, ...] = ()  # what was answered first
    firsts: tuple[Plan, ...] = ()  # how, for EXPLAIN
    closed: tuple[TableName, ...] = ()  # public tables of which the twin has no rows
    explains: bool = False  # whether nothing is asked but how it would be
    is_inner: bool = False  # whether another statement needs the answer
    fingerprint: str = field(default="", compare=False)  # of the text, where reading it has told
    shape: str = field(default="", compare=False)  # the query without its constants, where reading it has told


Others = ParamSpec("Others")
Planning = Callable[Concatenate[Request, Others], Plan | NeedsInner]


def telling_zones(make: Planning[Others]) -> Planning[Others]:
    """Planning, after which each plan knows its zones."""

    @wraps(make)
    def made(request: Request, /, *args: Others.args, **kwargs: Others.kwargs) -> Plan | NeedsInner:
        with noting_zones() as notes:
            plan = make(request, *args, **kwargs)
        return replace(plan, zones=notes.uses(request.time_zone)) if isinstance(plan, Plan) else plan

    return made


_CLOCKS = frozenset(("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"))
CLOCK_WORDS: Final = _CLOCKS | {"age", "SQLValueFunction"}  # a statement without them reads no clock


def reads_clock(query: Node) -> bool:
    """Return whether the moment of the statement stands anywhere in it."""
    return bool(holders(query, "SQLValueFunction")) or any(map(_is_clock, bodies(query, "FuncCall")))


def _is_clock(body: Node) -> bool:
    function = strings(body.get("funcname"))[-1]
    return function in _CLOCKS or (function == "age" and len(items(body, "args")) == 1)
