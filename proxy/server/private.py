"""The path of a private statement through the twin: described as written, planned, compared, and only then answered.

Each step is one exchange with the twin. In the extended protocol none of them holds a Sync, which would end the
client's implicit transaction; in the simple protocol each ends with one.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, TypeVar

from proxy.query.service import Answer
from proxy.server.asked import Answered, Asked, Parameters
from proxy.server.first import Firsts, Run
from proxy.server.literals import text_arrays
from proxy.server.probe import TEXT_ARRAY_OID, Moment, decode_probe, prepare_probe, run_probe
from proxy.server.relay import Message, Relay, TwinError
from proxy.server.reports import moved, nowhere, refusal_report
from proxy.server.service_port import StatementService
from proxy.server.temporary import read_through
from proxy.wire.backend import IN_TRANSACTION, DataRow, Field, ParameterDescription, RowDescription
from proxy.wire.buffer import Frame
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Parse
from rules.refusal import Interrupted, Misfit, Mismatch, NotAllowed, NotSupported, Refusal, Untranslatable
from rules.relation.functions.guard import Styles
from rules.rewrite.plan import First, Plan, Request
from rules.sql.commands import Settings, read_settings
from rules.sql.statement import Kind, Statement

ORIGINAL: Final = b"_ng_original"
OUTER: Final = b"_ng_outer"
_CANON: Final = b"_ng_canon"
_TYPES: Final = b"_ng_types"

_OID_ARRAY_OID: Final = 1028
_MOST_PARAMETERS: Final = 1600  # columns of a row in PostgreSQL
_MOST_MATCHED: Final = 50
_SPARE_SECONDS: Final = 0.1  # for us to be quicker than the twin's own time-outs
_TYPES_SQL: Final = (
    b"SELECT pg_catalog.format_type(t, NULL) FROM pg_catalog.unnest($1) WITH ORDINALITY AS o(t, n) ORDER BY n"
)

Result = TypeVar("Result")


class Private(Firsts):
    """Answers the private statements of one session."""

    def __init__(self, relay: Relay, service: StatementService, *, analyst: str, session: str, timeout_seconds: float):
        self._relay, self._service = relay, service
        self._analyst, self._session = analyst, session
        self._timeout_seconds = timeout_seconds
        self._has_probe = False
        self._type_names: dict[int, str] = {}  # as they are written under the search path
        self._search_path: tuple[str, ...] = ()
        self._matched: set[tuple[bytes, tuple[int, ...], tuple[tuple[bytes, int, int], ...]]] = set()
        self._running: asyncio.Task[Any] | None = None

    def forget(self) -> None:
        """All prepared statements are gone, ours too."""
        self._has_probe = False

    async def check_settings(self) -> None:
        """Refuse settings that no statement could be answered with; for those that a client brings at its startup."""
        replies = await self._relay.ask(*prepare_probe(), *run_probe((), self._relay.codec), sync=True)
        self._has_probe = True
        read_settings(decode_probe(replies[3], self._relay.codec).settings, self._service.limits)

    def cancel(self) -> bool:
        """Stop what runs outside the twin; False: nothing does."""
        if self._running is None:
            return False
        self._running.cancel()
        return True

    async def answer(self, asked: Asked, *, sync: bool, since: float | None = None) -> Answered | None:
        """Answer, or return None for a statement that the twin may have as it is.

        Raises Refusal, or TwinError when the twin refused one of our messages (and, without `sync`, now skips).
        """
        since = since or self._relay.batch_since or asyncio.get_running_loop().time()
        if asked.explains is not None:
            asked = replace(asked, types=await self._types_of(asked.explains, sync=sync))
        moment, described = await self._look(asked, sync=sync)
        if moment.search_path != self._search_path:
            self._type_names, self._search_path = {}, moment.search_path
        views, read = await read_through(moment, self._relay, sync=sync)
        if not any(relation and self._service.is_protected(*relation) for relation in (*moment.relations, *read)):
            return None
        if asked.around is None or described is None:
            raise _without_answer(asked.statement)
        types, columns = described
        if not _fits(asked, types, columns):
            return None
        moment.check_plain()
        settings = read_settings(moment.settings, self._service.limits)
        parameters = await self._parameters(asked, types, sync=sync)
        run = Run(parameters, settings, self._end(moment, since), sync)
        request = _request(asked.around.query, moment, settings, parameters, self._service)
        request = replace(request, views=views)
        plan, _, told = await self._planned(asked.place, request, run)
        is_parsed = await self._compare(plan, types, columns, sync=sync)
        answer = await self._answer(plan, run)
        notices = told + answer.notices if _wants_notices(moment, settings) else ()
        arrays = await text_arrays(answer.columns)
        return Answered(plan, asked.around, columns, parameters, arrays, notices, is_parsed)

    async def _look(
        self, asked: Asked, *, sync: bool
    ) -> tuple[Moment, tuple[tuple[int, ...], tuple[Field, ...]] | None]:
        """The moment, and the types of parameters and columns as PostgreSQL itself finds them."""
        messages: list[Message] = []
        if asked.around is not None:
            messages += self._describe_original(asked)
        describe_at = len(messages) - 1 - (asked.name is None)
        if not self._has_probe:
            messages += prepare_probe()
        row_at = len(messages) + 1
        messages += run_probe(asked.statement.relations, self._relay.codec)
        try:
            replies = await self._relay.ask(*messages, sync=sync)
        except TwinError as error:
            place = asked.place
            if asked.name is not None or place == 0:
                raise
            raise TwinError(moved(error.raw, nowhere if place is None else lambda position: position + place)) from None
        self._has_probe = True
        moment = decode_probe(replies[row_at], self._relay.codec)
        return moment, None if asked.around is None else _described(replies[describe_at])

    async def _types_of(self, name: bytes, *, sync: bool) -> tuple[int, ...]:
        """The types of a prepared statement's parameters."""
        ((parameters, *_),) = await self._relay.ask(Describe(STATEMENT, name), sync=sync)
        return ParameterDescription.decode(parameters.raw).types

    def _describe_original(self, asked: Asked) -> list[Message]:
        if asked.name is not None:
            return [Describe(STATEMENT, asked.name)]
        assert asked.around is not None
        text = self._encoded(asked.around.query)
        return [*_parse(ORIGINAL, text, asked.types), Describe(STATEMENT, ORIGINAL), Close(STATEMENT, ORIGINAL)]

    async def _parameters(self, asked: Asked, types: tuple[int, ...], *, sync: bool) -> Parameters:
        """The values as text that means the same in every session."""
        if len(types) > _MOST_PARAMETERS:
            raise NotSupported(f"more than {_MOST_PARAMETERS} parameters are not supported")
        names = await self._names_of(types, sync=sync)
        if asked.bind is not None and (types or asked.bind.portal):
            values = await self._canonical(_bound_canon(asked.bind, types), sync=sync)
        elif types and asked.bind is None:
            values = await self._canonical(self._written_canon(asked.arguments, names), sync=sync)
        else:
            values = ()
        return Parameters(types, names, values)

    async def _names_of(self, types: tuple[int, ...], *, sync: bool) -> tuple[str, ...]:
        unknown = tuple(dict.fromkeys(oid for oid in types if oid not in self._type_names))
        if unknown:
            question = f"{{{','.join(map(str, unknown))}}}".encode()
            ask: list[Message] = [*_parse(_TYPES, _TYPES_SQL, (_OID_ARRAY_OID,)), Bind(_TYPES, _TYPES, (), (question,))]
            replies = await self._relay.ask(
                *ask, Execute(_TYPES), Close(PORTAL, _TYPES), Close(STATEMENT, _TYPES), sync=sync
            )
            rows = [DataRow.decode(frame.raw).values[0] or b"" for frame in replies[3] if frame.kind == DataRow.kind]
            self._type_names.update(zip(unknown, (row.decode(self._relay.codec) for row in rows), strict=True))
        return tuple(self._type_names[oid] for oid in types)

    def _written_canon(self, arguments: tuple[str, ...], names: tuple[str, ...]) -> list[Message]:
        items = (f"noisegate.canon(({argument})::{name})" for argument, name in zip(arguments, names, strict=True))
        text = self._encoded(f"SELECT {', '.join(items)}")
        bind = Bind(_CANON, _CANON)
        return [*_parse(_CANON, text), bind, Execute(_CANON), Close(PORTAL, _CANON), Close(STATEMENT, _CANON)]

    async def _canonical(self, messages: list[Message], *, sync: bool) -> tuple[str | None, ...]:
        try:
            replies = await self._relay.ask(*messages, sync=sync)
        except TwinError as error:
            raise TwinError(moved(error.raw, nowhere)) from None
        values = DataRow.decode(replies[3][0].raw).values
        return tuple(None if value is None else value.decode(self._relay.codec) for value in values)

    async def _plan(self, place: int | None, request: Request) -> Plan | First:
        try:
            return await self._interruptible(self._service.plan(request, self._analyst))
        except Refusal as refusal:
            raise _placed(refusal, place) from None

    async def _compare(self, plan: Plan, types: tuple[int, ...], columns: tuple[Field, ...], *, sync: bool) -> bool:
        """Before anything is charged: the outer statement must look to PostgreSQL as the original does.

        Returns whether the twin has the outer statement as OUTER now. What has matched before is not asked again.
        """
        text = self._encoded(plan.outer_with_parameters())
        key = blake2b(text, digest_size=16).digest(), types, tuple(shape(columns))
        if key in self._matched:
            return False
        arrays = (TEXT_ARRAY_OID,) * (max(_holes(plan), default=plan.parameters) - plan.parameters)
        mismatch = Mismatch("this statement is not read by the proxy as PostgreSQL reads it, so nothing was run")
        messages = [*_parse(OUTER, text, types + arrays), Describe(STATEMENT, OUTER)]
        try:
            replies = await self._relay.ask(*messages, *([Close(STATEMENT, OUTER)] if sync else ()), sync=sync)
        except TwinError:
            raise TwinError(refusal_report(mismatch, self._relay.codec)) from None
        if plan.parameters != len(types) or shape(_described(replies[2])[1]) != shape(columns):
            raise mismatch
        if len(self._matched) >= _MOST_MATCHED:
            self._matched.clear()
        self._matched.add(key)
        return not sync

    async def _check_affordable(self, first: Plan, rest: Plan, run: Run) -> None:
        await self._service.check_affordable(
            first, rest, analyst=self._analyst, session=self._session, reuse=run.settings.reuse
        )

    async def _answer(self, plan: Plan, run: Run) -> Answer:
        left = run.ends - asyncio.get_running_loop().time()
        if left <= 0:
            raise Interrupted("canceling statement due to statement timeout")
        work = self._service.answer(
            plan, analyst=self._analyst, session=self._session, timeout_seconds=left, reuse=run.settings.reuse
        )
        return await self._interruptible(work)

    async def _interruptible(self, work: Coroutine[Any, Any, Result]) -> Result:
        self._running = task = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise Interrupted("canceling statement due to user request") from None
        finally:
            self._running = None

    def _end(self, moment: Moment, since: float) -> float:
        """By the least of the client's time-outs and ours, so that we say 57014 before the twin ends the session."""
        limits = [moment.seconds("statement_timeout"), moment.seconds("transaction_timeout")]
        if self._relay.state == IN_TRANSACTION:
            limits.append(moment.seconds("idle_in_transaction_session_timeout"))
        ours = asyncio.get_running_loop().time() + self._timeout_seconds
        return min([ours, *(since + limit - _SPARE_SECONDS for limit in limits if limit is not None)])

    def _encoded(self, text: str) -> bytes:
        return encoded(text, self._relay.codec)


def encoded(text: str, codec: str) -> bytes:
    """Text of ours for the twin, which reads it in the client's encoding."""
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        raise Untranslatable(
            "the answer has characters that your client_encoding does not have", hint="SET client_encoding = 'UTF8';"
        ) from None


def _parse(name: bytes, text: bytes, types: tuple[int, ...] = ()) -> list[Message]:
    """Parse under a name of ours, which an exchange that failed may have left behind."""
    return [Close(STATEMENT, name), Parse(name, text, types)]


def _bound_canon(bind: Bind, types: tuple[int, ...]) -> list[Message]:
    """The client's own values through canon, bound to its own portal: wrong values and a portal that exists already
    fail with PostgreSQL's own words."""
    items = ", ".join(f"noisegate.canon(${number})" for number in range(1, len(types) + 1))
    values = Bind(bind.portal, _CANON, bind.parameter_formats, bind.parameters, ())
    text = f"SELECT {items}".encode()
    ends = Close(PORTAL, bind.portal), Close(STATEMENT, _CANON)
    return [*_parse(_CANON, text, types), values, Execute(bind.portal), *ends]


def _described(replies: list[Frame]) -> tuple[tuple[int, ...], tuple[Field, ...]]:
    """Types of parameters and columns; a statement without result has no columns."""
    types = ParameterDescription.decode(replies[0].raw).types
    columns = RowDescription.decode(replies[1].raw).fields if replies[1].kind == RowDescription.kind else ()
    return types, columns


def _fits(asked: Asked, types: tuple[int, ...], columns: tuple[Field, ...]) -> bool:
    """Whether there are as many values as parameters; if not, the twin says so in its own words.

    It would count the formats of columns only after it has looked at privileges, so that is done here.
    """
    if asked.bind is None:
        return not types or len(asked.arguments) == len(types)  # EXECUTE ignores values where there are no parameters
    formats = len(asked.bind.result_formats)
    fits = len(asked.bind.parameters) == len(types)
    if fits and asked.statement.kind is Kind.QUERY and formats not in (0, 1, len(columns)):
        raise Misfit(f"bind message has {formats} result formats but query has {len(columns)} columns")
    return fits


def shape(columns: tuple[Field, ...]) -> list[tuple[bytes, int, int]]:
    """What a client sees of columns: names and types."""
    return [(column.name, column.type, column.modifier) for column in columns]


def _holes(plan: Plan) -> list[int]:
    return [part for part in plan.outer if isinstance(part, int)]


def _request(
    query: str, moment: Moment, settings: Settings, parameters: Parameters, service: StatementService
) -> Request:
    return Request(
        text=query,
        search_path=moment.search_path,
        parameter_types=parameters.type_names,
        parameters=parameters.values,
        epsilon=settings.epsilon,
        delta=service.limits.delta,
        rows_per_unit=settings.rows_per_unit,
        groups_per_unit=settings.groups_per_unit,
        rows_auto=settings.rows_auto,
        sums_auto=settings.sums_auto,
        confidence=settings.confidence,
        time_zone=moment.setting("TimeZone"),
        now=moment.now,
        styles=Styles(moment.setting("DateStyle"), moment.setting("IntervalStyle")),
    )


def _placed(refusal: Refusal, place: int | None) -> Refusal:
    """A refusal that points into what the client sent, or nowhere."""
    if place is not None:
        return refusal.moved(place)
    return type(refusal)(refusal.message, detail=refusal.detail, hint=refusal.hint)


def _wants_notices(moment: Moment, settings: Settings) -> bool:
    return settings.notices and moment.setting("client_min_messages") not in ("warning", "error")


def _without_answer(statement: Statement) -> Refusal:
    """Why a statement that names protected tables but holds no query of its own is refused."""
    if statement.kind is Kind.EXPLAIN:
        analyze = " ANALYZE" if statement.analyze else ""
        return NotSupported(
            f"EXPLAIN{analyze} of a statement that reads protected tables is not supported",
            hint="EXPLAIN without ANALYZE tells what it would cost and how exact it would be, and runs nothing.",
        )
    return NotAllowed(
        "only the answer of a query can be copied here, never a table",
        hint="Write COPY (SELECT …) TO STDOUT, with aggregates such as count(*) over protected rows.",
    )
