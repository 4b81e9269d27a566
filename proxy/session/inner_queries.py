"""Inner queries that must be answered before the statement around them can be planned.

Each is a private statement of its own on half of what the rest may spend: described and compared on the twin, charged,
noised, and computed there. Its rows come back as text and enter the statement around it as constants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from proxy.execute.service import Answer
from proxy.session.errors import check_of_text
from proxy.session.literals import text_arrays
from proxy.session.private_session import PrivateSession, Run
from proxy.session.replies import TwinRefusal, encoded, parse_under
from proxy.session.twin_probe import TEXT_ARRAY_OID
from proxy.wire.backend import DataRow, Field, RowDescription
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute
from rules.bind.inner_answers import FREE, InnerAnswer, stand_in
from rules.planner.plan import NeedsInner, Plan, PublicQuery, Request
from rules.refusal import NotSupported, TooComplex

Rows = tuple[tuple[str | None, ...], ...]

_INNER: Final = b"_ng_inner"
_MOST_INNER: Final = 8
_MOST_READINGS: Final = 20
_MOST_ROWS: Final = 10_000


@dataclass(slots=True)
class Whole:
    """The statement as the client has sent it, and which parts of it are still to be answered, once that is known."""

    place: int | None
    request: Request
    parts: Sequence[Plan] = ()


async def plan_with_inner(
    private: PrivateSession, place: int | None, request: Request, run: Run, part_of: Whole | None = None
) -> tuple[Plan, Request, tuple[str, ...]]:
    """Plan, once all inner queries are answered; return how it was asked for then, and notices of those queries."""
    notices: tuple[str, ...] = ()
    queries, read = 0, 0
    whole = part_of or Whole(place, request)
    while queries <= _MOST_INNER and read <= _MOST_READINGS:
        made = await private.plan(place, request)
        if isinstance(made, Plan):
            return made, request, notices
        queries, read = (queries, read + 1) if made.inner.use in FREE else (queries + 1, read)
        request, more_notices = await _with_answer(private, made, request, run, whole)
        notices += more_notices
        if part_of is None:
            whole.request = request
    raise TooComplex(f"more than {_MOST_INNER} subqueries would have to run first")


async def _with_answer(
    private: PrivateSession, needed: NeedsInner, request: Request, run: Run, whole: Whole
) -> tuple[Request, tuple[str, ...]]:
    """The request with the rows of an inner query, and with what is left to spend."""
    columns = await _describe(private, needed, run)
    types = await private.values.names_of(tuple((column.type, column.modifier) for column in columns), sync=run.sync)
    names = tuple(column.name.decode(private.relay.codec) for column in columns)
    if needed.public is not None:
        rows = await _public_rows(private, needed.public, len(columns), request.time_zone, run)
        if needed.inner.use != "bounds":  # a scan has no order, and equal questions are to have equal lists
            rows = tuple(sorted(rows, key=lambda row: [(cell is None, cell or "") for cell in row]))
        return replace(request, released=(*request.released, InnerAnswer(needed.inner, names, types, rows))), ()
    half = replace(request, epsilon=request.epsilon / 2, delta=request.delta / 2)
    inner_request = replace(half, text=needed.text, released=(), firsts=(), explains=needed.is_shown, is_inner=True)
    plan, inner_request, inner_notices = await plan_with_inner(private, None, inner_request, run, whole)
    rest = half if plan.blocks else request
    if plan.blocks and run.settings.within is not None:
        raise NotSupported(
            "noisegate.within cannot be promised where one answer is needed for another",
            hint="RESET noisegate.within, and SET noisegate.epsilon instead.",
        )
    firsts = (*request.firsts, *inner_request.firsts, plan)
    shown = replace(half, released=(*request.released, stand_in(needed.inner, names, types)), firsts=firsts)
    if plan.blocks and needed.is_shown:
        return shown, ()
    if plan.blocks:
        await _look_ahead(private, plan, run, whole, shown if request is whole.request else whole.request)
    await private.compare(plan, columns, run)
    answer = await private.answer(plan, run, is_first=True)
    rows = await _rows(private, plan, answer, len(columns), run, is_reading=needed.inner.use == "reading")
    known = InnerAnswer(needed.inner, names, types, rows, answer.origin)
    notices = (*inner_notices, *(f"inner query: {notice}" for notice in answer.notices))
    return replace(rest, released=(*request.released, known)), notices


async def _look_ahead(private: PrivateSession, part: Plan, run: Run, whole: Whole, request: Request) -> None:
    """Before a part is paid: plan all others as EXPLAIN does, so that what is refused anyway costs nothing.

    The request is that of the whole, with a stand-in for the part if it is one of the whole itself.
    """
    if not whole.parts:
        plan, shown, _ = await plan_with_inner(private, whole.place, replace(request, explains=True), run)
        whole.parts = (*shown.firsts, plan)
    whole.parts = whole.parts[1:]
    await private.service.check_affordable(
        part, whole.parts, analyst=private.analyst, session=private.session, reuse=run.settings.reuse
    )


async def _describe(private: PrivateSession, needed: NeedsInner, run: Run) -> tuple[Field, ...]:
    codec = private.relay.codec
    messages = run.under.taken(parse_under(_INNER, encoded(needed.text, codec), run.parameters.types), codec)
    try:
        replies = await private.relay.ask(
            *messages, Describe(STATEMENT, _INNER), Close(STATEMENT, _INNER), sync=run.sync
        )
    except TwinRefusal as error:
        check_of_text(error)
        raise NotSupported(  # it was read as a part of the whole, so it needs the row around it
            "a correlated subquery over protected rows can refer to the outer query only by =",
            hint="Write the subquery as a CTE grouped by the columns it depends on, and join it.",
        ) from None
    (_, columns) = replies[-2]
    return RowDescription.decode(columns.raw).fields


async def _public_rows(private: PrivateSession, query: PublicQuery, width: int, time_zone: str, run: Run) -> Rows:
    """Rows of public tables that the twin does not have."""
    reading = private.service.read_public(
        query, width, analyst=private.analyst, zone=time_zone, seconds=run.seconds_left
    )
    with private.kept_awake(run):
        return await private.interruptible(reading)


async def _rows(
    private: PrivateSession, plan: Plan, answer: Answer, width: int, run: Run, *, is_reading: bool
) -> Rows:  # fmt: skip
    """The outer statement of an inner query, run on the twin. One that reads literals reads them when it is run."""
    codec = private.relay.codec
    columns = [f"c{number}" for number in range(width)]
    shown = ", ".join(f"pg_catalog.noisegate_canon(a.{column})" for column in columns)
    outer = f"({plan.outer_with_parameters()}) AS a({', '.join(columns)})"
    text = f"SELECT {shown} FROM {outer} LIMIT {_MOST_ROWS + 1}"
    types = run.parameters.types + (TEXT_ARRAY_OID,) * len(answer.columns)
    values = [*run.parameters.values, *await text_arrays(answer.columns)]
    bind = Bind(_INNER, _INNER, (), tuple(None if value is None else encoded(value, codec) for value in values))
    parse, runs = parse_under(_INNER, encoded(text, codec), types), (bind, Execute(_INNER))
    begins = run.under.taken((*parse, *runs), codec) if is_reading else (*run.under.taken(parse, codec), *runs)
    replies = await private.relay.ask(*begins, Close(PORTAL, _INNER), Close(STATEMENT, _INNER), sync=run.sync)
    frames = replies[begins.index(runs[1])]
    rows = [DataRow.decode(frame.raw).values for frame in frames if frame.kind == DataRow.kind]
    if len(rows) > _MOST_ROWS:
        raise TooComplex(f"a subquery returns more than {_MOST_ROWS} rows", hint="Add LIMIT to the subquery.")
    return tuple(tuple(None if value is None else value.decode(codec) for value in row) for row in rows)
