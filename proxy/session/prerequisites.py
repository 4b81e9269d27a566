"""Inner queries that must be answered before the statement around them can be planned.

Each is a private statement of its own on half of what the rest may spend: described and compared on the twin, charged,
noised, and computed there. Its rows come back as text and enter the statement around it as constants.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from proxy.execute.service import Answer
from proxy.execute.system_views import OwnRows
from proxy.session.errors import check_of_text
from proxy.session.interfaces import StatementService
from proxy.session.literals import text_arrays
from proxy.session.parsed_under import ParsedUnder
from proxy.session.private_request import Parameters, ParameterValues
from proxy.session.relay import Relay
from proxy.session.replies import Expected, TwinRefusal, parse_under, swallow
from proxy.session.twin_probe import TEXT_ARRAY_OID
from proxy.wire.backend import DataRow, Field, RowDescription
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Sync
from rules.bind.inner_answers import FREE, InnerAnswer, stand_in
from rules.planner.plan import NeedsInner, Plan, PublicQuery, Request
from rules.refusal import NotSupported, Refusal, TooComplex
from rules.sql.session_settings import AnalystSettings

Result = TypeVar("Result")
Rows = tuple[tuple[str | None, ...], ...]

_FIRST: Final = b"_ng_first"
_MOST_FIRSTS: Final = 8
_MOST_READINGS: Final = 20
_MOST_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Run:
    """The settings that all parts of one statement share."""

    parameters: Parameters
    settings: AnalystSettings
    ends: float  # when the event loop's clock says that it has taken too long
    sync: bool
    own: OwnRows  # of the session
    under: ParsedUnder
    charged: list[Answer] = field(default_factory=list)  # the parts that were charged before the rest

    @property
    def is_older(self) -> bool:
        """Return whether the statement was prepared under other settings, by which its literals are read."""
        return self.under.older is not None


@contextmanager
def told_of_parts(run: Run) -> Iterator[None]:
    """A refusal of the rest does not say that nothing was charged where a part was."""
    try:
        yield
    except Refusal as refusal:
        if not run.charged:
            raise
        raise refusal.after_a_part() from None


@dataclass(slots=True)
class Ahead:
    """The statement that is asked, and which parts of it are still to be answered, once that is known."""

    place: int | None
    request: Request
    parts: Sequence[Plan] = ()


class Prerequisites(ABC):
    """Plans statements of one session, and answers what comes first."""

    _relay: Relay
    _values: ParameterValues
    _service: StatementService
    _analyst: str

    @abstractmethod
    async def _plan(self, place: int | None, request: Request) -> Plan | NeedsInner: ...

    @abstractmethod
    async def _compare(self, plan: Plan, columns: tuple[Field, ...], run: Run) -> bool: ...

    @abstractmethod
    async def _check_affordable(self, first: Plan, rest: Sequence[Plan], run: Run) -> None: ...

    @abstractmethod
    async def _answer(self, plan: Plan, run: Run, *, is_first: bool = False) -> Answer: ...

    @abstractmethod
    async def _interruptible(self, work: Coroutine[Any, Any, Result]) -> Result: ...

    @abstractmethod
    def _encoded(self, text: str) -> bytes: ...

    async def _planned(
        self, place: int | None, request: Request, run: Run, part_of: Ahead | None = None
    ) -> tuple[Plan, Request, tuple[str, ...]]:
        """The plan, once all that it needs is known; how it was asked for; what is to be told of the parts before."""
        notices: tuple[str, ...] = ()
        queries, read = 0, 0
        ahead = part_of or Ahead(place, request)
        while queries <= _MOST_FIRSTS and read <= _MOST_READINGS:
            made = await self._plan(place, request)
            if isinstance(made, Plan):
                return made, request, notices
            queries, read = (queries, read + 1) if made.inner.use in FREE else (queries + 1, read)
            request, more_notices = await self._with_answer(made, request, run, ahead)
            notices += more_notices
            if part_of is None:
                ahead.request = request
        raise TooComplex(f"more than {_MOST_FIRSTS} subqueries would have to run first")

    async def _with_answer(
        self, first: NeedsInner, request: Request, run: Run, ahead: Ahead
    ) -> tuple[Request, tuple[str, ...]]:
        """The request with the rows of an inner query, and with what is left to spend."""
        columns = await self._describe_first(first, run)
        types = await self._values.names_of(tuple((column.type, column.modifier) for column in columns), sync=run.sync)
        names = tuple(column.name.decode(self._relay.codec) for column in columns)
        if first.public is not None:
            rows = await self._public_rows(first.public, len(columns), request.time_zone, run)
            if first.inner.use != "bounds":  # a scan has no order, and equal questions are to have equal lists
                rows = tuple(sorted(rows, key=lambda row: [(cell is None, cell or "") for cell in row]))
            return replace(request, released=(*request.released, InnerAnswer(first.inner, names, types, rows))), ()
        half = replace(request, epsilon=request.epsilon / 2, delta=request.delta / 2)
        inner_request = replace(half, text=first.text, released=(), firsts=(), explains=first.is_shown, is_inner=True)
        plan, inner_request, inner_notices = await self._planned(None, inner_request, run, ahead)
        rest = half if plan.blocks else request
        if plan.blocks and run.settings.within is not None:
            raise NotSupported(
                "noisegate.within cannot be promised where one answer is needed for another",
                hint="RESET noisegate.within, and SET noisegate.epsilon instead.",
            )
        firsts = (*request.firsts, *inner_request.firsts, plan)
        shown = replace(half, released=(*request.released, stand_in(first.inner, names, types)), firsts=firsts)
        if plan.blocks and first.is_shown:
            return shown, ()
        if plan.blocks:
            await self._look_ahead(plan, run, ahead, shown if request is ahead.request else ahead.request)
        await self._compare(plan, columns, run)
        answer = await self._answer_first(plan, run)
        rows = await self._rows(plan, answer, len(columns), run, is_reading=first.inner.use == "reading")
        known = InnerAnswer(first.inner, names, types, rows, answer.origin)
        notices = (*inner_notices, *(f"inner query: {notice}" for notice in answer.notices))
        return replace(rest, released=(*request.released, known)), notices

    async def _answer_first(self, plan: Plan, run: Run) -> Answer:
        """Answer what the rest of the statement depends on."""
        answer = await self._answer(plan, run, is_first=True)
        if not answer.is_free:
            run.charged.append(answer)
        return answer

    async def _look_ahead(self, first: Plan, run: Run, ahead: Ahead, request: Request) -> None:
        """Before a part is paid: plan all others as EXPLAIN does, so that what is refused anyway costs nothing.

        The request is that of the whole, with a stand-in for the part if it is one of the whole itself.
        """
        if not ahead.parts:
            whole, shown, _ = await self._planned(ahead.place, replace(request, explains=True), run)
            ahead.parts = (*shown.firsts, whole)
        ahead.parts = ahead.parts[1:]
        await self._check_affordable(first, ahead.parts, run)

    async def _public_rows(self, query: PublicQuery, width: int, time_zone: str, run: Run) -> Rows:
        """Rows of public tables that the twin does not have."""
        left = run.ends - asyncio.get_running_loop().time()
        reading = self._service.read_public(query, width, analyst=self._analyst, zone=time_zone, seconds=left)
        with self._kept_awake(run):
            return await self._interruptible(reading)

    @contextmanager
    def _kept_awake(self, run: Run) -> Iterator[None]:
        """Hold the twin inside a batch, which has no transaction, while the statement runs elsewhere.

        After a Sync it would be idle, and end the session by the time-outs for that.
        """
        if not run.sync:
            yield
            return
        self._relay.send(Close(STATEMENT, _FIRST).encode(), Expected(Close.kind, swallow))
        self._relay.flush()
        try:
            yield
        finally:
            self._relay.sync(expected=Expected(Sync.kind, swallow))

    async def _describe_first(self, first: NeedsInner, run: Run) -> tuple[Field, ...]:
        parse = parse_under(_FIRST, self._encoded(first.text), run.parameters.types)
        messages = [*run.under.taken(parse, self._relay.codec), Describe(STATEMENT, _FIRST)]
        try:
            replies = await self._relay.ask(*messages, Close(STATEMENT, _FIRST), sync=run.sync)
        except TwinRefusal as error:
            check_of_text(error)
            raise _correlated() from None  # it was read as a part of the whole, so it needs the row around it
        (_, columns) = replies[-2]
        return RowDescription.decode(columns.raw).fields

    async def _rows(self, plan: Plan, answer: Answer, width: int, run: Run, *, is_reading: bool) -> Rows:
        """The outer statement of an inner query, run on the twin. One that reads literals reads them when it is run."""
        columns = [f"c{number}" for number in range(width)]
        shown = ", ".join(f"pg_catalog.noisegate_canon(a.{column})" for column in columns)
        outer = f"({plan.outer_with_parameters()}) AS a({', '.join(columns)})"
        text = f"SELECT {shown} FROM {outer} LIMIT {_MOST_ROWS + 1}"
        types = run.parameters.types + (TEXT_ARRAY_OID,) * len(answer.columns)
        values = [*run.parameters.values, *await text_arrays(answer.columns)]
        bind = Bind(_FIRST, _FIRST, (), tuple(None if value is None else self._encoded(value) for value in values))
        parse, runs = parse_under(_FIRST, self._encoded(text), types), (bind, Execute(_FIRST))
        codec = self._relay.codec
        begins = run.under.taken((*parse, *runs), codec) if is_reading else (*run.under.taken(parse, codec), *runs)
        replies = await self._relay.ask(*begins, Close(PORTAL, _FIRST), Close(STATEMENT, _FIRST), sync=run.sync)
        given = replies[begins.index(runs[1])]
        rows = [DataRow.decode(frame.raw).values for frame in given if frame.kind == DataRow.kind]
        if len(rows) > _MOST_ROWS:
            raise TooComplex(f"a subquery returns more than {_MOST_ROWS} rows", hint="Add LIMIT to the subquery.")
        return tuple(tuple(None if value is None else value.decode(codec) for value in row) for row in rows)


def _correlated() -> Refusal:
    return NotSupported(
        "a correlated subquery over protected rows can refer to the outer query only by =",
        hint="Write the subquery as a CTE grouped by the columns it depends on, and join it.",
    )
