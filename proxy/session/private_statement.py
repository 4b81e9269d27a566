"""The path of a private statement through the twin: described as written, planned, compared, and only then answered.

Each step is one exchange with the twin. In the extended protocol none of them holds a Sync, which would end the
client's implicit transaction; in the simple protocol each ends with one.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Final, TypeVar

from proxy.execute.service import Answer
from proxy.metrics import PRIVATE, stage
from proxy.session.accuracy import Accuracy, unaffordable
from proxy.session.classify import ODD_ENCODING, without_answer
from proxy.session.errors import SCHEMA_CHANGED, check_of_text, moved, notice_report, nowhere, placed, refusal_report
from proxy.session.interfaces import StatementService
from proxy.session.literals import known_arrays
from proxy.session.parsed_under import parsed_under
from proxy.session.prerequisites import Run, told_of_parts
from proxy.session.private_request import OUTER, Answered, ParameterValues, PrivateRequest, request_of, settings_of
from proxy.session.progress import progress_shown
from proxy.session.recent_refusals import log_refusal
from proxy.session.rehearsal import Rehearsal
from proxy.session.relay import Relay
from proxy.session.replies import Message, TwinRefusal, described, encoded, parse_under, shape
from proxy.session.twin_probe import (
    PROBE_ROW,
    QUIET,
    TEXT_ARRAY_OID,
    SessionState,
    SyntheticRows,
    decode_probe,
    read_through,
    run_probe,
)
from proxy.wire.backend import Field
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute
from rules.accounting.budgets import PaidIn
from rules.mechanisms.release_plan import Block
from rules.planner.plan import NeedsInner, Plan, Request, TemporaryView
from rules.refusal import BudgetSpent, Interrupted, Mismatch, Refusal
from rules.release.release import Noised
from rules.sql.session_settings import SettingLimits, read_settings
from rules.sql.statement import EnclosedQuery, Statement
from rules.sql.system_views import setting_rows

ORIGINAL: Final = b"_ng_original"
_CLOSING: Final = b"_ng_closing"
CANCELLED: Final = Interrupted("canceling statement due to user request")
_MOST_MATCHED: Final = 50
_SPARE_SECONDS: Final = 0.1  # for us to be quicker than the twin's own time-outs

Result = TypeVar("Result")
Signature = tuple[tuple[int, ...], tuple[Field, ...]]  # types of parameters, and columns


@dataclass(frozen=True, slots=True)
class AtWork:
    """A statement that is being answered, for operators."""

    since: float  # on the event loop's clock
    shape: str  # its text without constants


class Private(Accuracy):
    """Answers the private statements of one session."""

    def __init__(self, relay: Relay, service: StatementService, *, analyst: str, session: str, timeout_seconds: float):
        self._relay, self._service, self._values = relay, service, ParameterValues(relay)
        self._analyst, self._session = analyst, session
        self._timeout_seconds = timeout_seconds
        self._matched: set[tuple[bytes, tuple[int, ...], tuple[tuple[bytes, int, int], ...]]] = set()
        self._running: asyncio.Task[Any] | None = None
        self.is_cancelled = False  # what the client has sent last, in whatever step it is
        self._began = 0  # changes of the twin when the statement began
        self.at_work: AtWork | None = None
        self._synthetic, self._rehearsal = SyntheticRows(service, analyst), Rehearsal(relay, self._values)
        self._last: tuple[str, ...] = ()  # the rows of noisegate.last
        self._paid_in: PaidIn | None = None  # the answers that this and cursors on the twin may hold

    @property
    def _limits(self) -> SettingLimits:
        return self._service.limits_of(self._analyst)

    async def check_settings(self) -> None:
        """Refuse settings of a client's startup that no statement could be answered with."""
        replies = await self._relay.ask(*run_probe((), self._relay.codec), sync=True)
        read_settings(decode_probe(replies[PROBE_ROW], self._relay.codec).settings, self._limits)

    def cancel(self) -> bool:
        """Stop what runs outside the twin, or is about to; False: nothing runs there now."""
        self.is_cancelled = True
        if self._running is None:
            return False
        self._running.cancel()
        return True

    @property
    def holds_unpaid(self) -> bool:
        """Return whether what is held of answers was paid in another period, or role, than the analyst pays in now."""
        return self._paid_in is not None and self._paid_in != self._service.paid_in(self._analyst)

    async def close_unpaid(self, *, sync: bool) -> None:
        """Close all cursors and portals, for their rows would be told once more, at no charge; raises TwinRefusal."""
        bind, ends = Bind(_CLOSING, _CLOSING), (Close(PORTAL, _CLOSING), Close(STATEMENT, _CLOSING))
        await self._relay.ask(*parse_under(_CLOSING, b"CLOSE ALL"), bind, Execute(_CLOSING), *ends, sync=sync)
        self._last, self._paid_in = (), None

    async def answer(self, private: PrivateRequest, *, sync: bool, since: float | None = None) -> Answered | None:
        """Answer, or return None for a statement that the twin may have as it is.

        Raises Refusal, or TwinRefusal when the twin refused one of our messages (and, without `sync`, now skips).
        """
        since = since or self._relay.batch_since or asyncio.get_running_loop().time()
        self._synthetic.check(private.statement)
        with stage("describe"):
            moment, signature = await self._look(private, sync=sync)
        self._values.follow_search_path(moment.search_path)
        told_rows = self._synthetic.told(private.statement, moment)
        views, read = await read_through(moment, self._relay, sync=sync)
        if not self._reads_protected((*moment.relations, *read)):
            self._relay.client.write(b"".join(notice_report(row, self._relay.codec) for row in told_rows))
            return None
        self._relay.is_private = True
        if private.around is None or signature is None:
            raise without_answer(private.statement, self._find_place(private, moment))
        types, columns = signature
        if not private.fits(types, columns):
            return None
        run = await self._run(private, moment, signature, since, sync=sync)
        request = self._request(private.statement, private.around, moment, run, views)
        wants_notices = run.settings.notices and moment.setting("client_min_messages") not in QUIET
        every = run.settings.progress if wants_notices else None
        self._paid_in = self._paid_in or self._service.paid_in(self._analyst)  # which may end before the answer comes
        shown = progress_shown(self._relay, private.statement.text, every=every, since=since, ends=run.ends)
        with shown, told_of_parts(run):
            plan, told, known = await self._planned_as_asked(private.place, request, run, columns)
            with stage("compare"):
                is_parsed = await self._compare(plan, columns, run)
            answer = known or await self._answer(plan, run)
        self._last = answer.last or self._last
        notices = told_rows + told + answer.notices if wants_notices else ()
        PRIVATE.observe(asyncio.get_running_loop().time() - since)
        texts = await known_arrays(answer.columns)
        return Answered(plan, private.around, columns, run.parameters, texts, notices, is_parsed, run.is_older)

    async def _run(
        self, private: PrivateRequest, moment: SessionState, signature: Signature, since: float, *, sync: bool
    ) -> Run:
        """The settings and values of a statement that the twin would take."""
        types, columns = signature
        settings = settings_of(private, moment, self._limits)
        await self._rehearsal.of(private, columns, sync=sync)
        parameters = await self._values.of(private, types, sync=sync)
        own, under = partial(self._own_rows, moment), parsed_under(private.literals, moment)
        return Run(parameters, settings, self._end(moment, since), sync, own, under)

    def _own_rows(self, moment: SessionState) -> dict[str, tuple[str, ...]]:
        """The rows of system views that are this session's own."""
        return {"last": self._last, "settings": setting_rows(moment.settings, self._limits)}

    def _request(
        self,
        statement: Statement,
        around: EnclosedQuery,
        moment: SessionState,
        run: Run,
        views: tuple[TemporaryView, ...],
    ) -> Request:
        rows = self._service.preview_rows(self._analyst) if run.settings.previews == "synopsis" else ()
        return request_of(
            *(around.query, statement, moment, run.settings, run.parameters),
            parsed_under=run.under.older,
            views=views,
            preview_rows=rows,
            closed=self._service.public.closed,
        )

    def _reads_protected(self, relations: Iterable[tuple[str, str] | None]) -> bool:
        return any(relation and self._service.is_protected(*relation) for relation in relations)

    def _find_place(self, private: PrivateRequest, moment: SessionState) -> int | None:
        """Where the client has written the first protected table."""
        if private.name is not None or private.explains is not None:
            return None
        pairs = zip(private.statement.relations, moment.relations, strict=False)
        places = (written.position for written, found in pairs if found and self._service.is_protected(*found))
        return next((place + private.statement.start for place in places if place is not None), None)

    async def _look(self, private_request: PrivateRequest, *, sync: bool) -> tuple[SessionState, Signature | None]:
        """The moment, and the types of parameters and columns as PostgreSQL itself finds them."""
        if not self._relay.lexis.is_admitted:
            raise ODD_ENCODING
        if private_request.explains is not None:
            types = await self._values.types_of(private_request.explains, sync=sync)
            private_request = replace(private_request, types=types)
        self._began = self._relay.changes.number()
        messages: list[Message] = []
        if private_request.around is not None:
            messages += self._describe_original(private_request)
        describe_at = len(messages) - 1 - (private_request.name is None)
        row_at = len(messages) + PROBE_ROW
        messages += run_probe(private_request.statement.relations, self._relay.codec)
        try:
            replies = await self._relay.ask(*messages, sync=sync)
        except TwinRefusal as error:
            place = private_request.place
            if private_request.name is not None or place == 0:
                raise
            raise TwinRefusal(
                moved(error.raw, nowhere if place is None else lambda position: position + place)
            ) from None
        moment = decode_probe(replies[row_at], self._relay.codec)
        return moment, None if private_request.around is None else described(replies[describe_at])

    def _describe_original(self, private_request: PrivateRequest) -> list[Message]:
        if private_request.name is not None:
            return [Describe(STATEMENT, private_request.name)]
        assert private_request.around is not None
        return [
            *parse_under(ORIGINAL, self._encoded(private_request.around.query), private_request.types),
            Describe(STATEMENT, ORIGINAL),
            Close(STATEMENT, ORIGINAL),
        ]

    async def _plan(self, place: int | None, request: Request) -> Plan | NeedsInner:
        if (known := self._service.find_plan(request)) is not None:
            return known
        try:
            return await self._interruptible(self._service.plan(request, self._analyst))
        except Refusal as refusal:
            raise placed(refusal, place) from None

    async def _compare(self, plan: Plan, columns: tuple[Field, ...], run: Run) -> bool:
        """Before anything is charged: the outer statement must look to PostgreSQL as the original does.

        Returns whether the twin has the outer statement as OUTER now. What has matched before is asked again only where
        it has to be there.
        """
        types, sync = run.parameters.types, run.sync
        key = _digest(plan.outer, self._relay.codec), types, tuple(shape(columns))
        if key in self._matched and not run.is_older:
            return False
        text = self._encoded(plan.outer_with_parameters())
        holes = (part for part in plan.outer if isinstance(part, int))
        arrays = (TEXT_ARRAY_OID,) * (max(holes, default=plan.parameters) - plan.parameters)
        is_left = run.is_older or not sync
        ends = () if is_left else (Close(STATEMENT, OUTER),)
        messages = run.under.taken(parse_under(OUTER, text, types + arrays), self._relay.codec)
        try:
            replies = await self._relay.ask(*messages, Describe(STATEMENT, OUTER), *ends, sync=sync)
        except TwinRefusal as error:
            check_of_text(error)
            mismatch = self._mismatch()
            log_refusal(self._analyst, mismatch, fingerprint=plan.fingerprint)
            raise TwinRefusal(refusal_report(mismatch, self._relay.codec)) from None
        if plan.parameters != len(types) or shape(described(replies[len(messages)])[1]) != shape(columns):
            raise self._mismatch()
        if len(self._matched) >= _MOST_MATCHED:
            self._matched.clear()
        self._matched.add(key)
        return is_left

    def _mismatch(self) -> Refusal:
        if self._relay.changes.since(self._began):
            return SCHEMA_CHANGED
        return Mismatch("the proxy and PostgreSQL parse this statement differently, so it was not run")

    async def _check_affordable(self, first: Plan, rest: Sequence[Plan], run: Run) -> None:
        await self._service.check_affordable(
            first, rest, analyst=self._analyst, session=self._session, reuse=run.settings.reuse
        )

    async def _released(self, plan: Plan, run: Run) -> Sequence[tuple[Block, Noised]] | None:
        if not run.settings.reuse:
            return None
        return await self._service.find_released(
            plan.blocks or plan.foreseen, analyst=self._analyst, session=self._session, time_zone=plan.time_zone
        )

    async def _answer(self, plan: Plan, run: Run, *, is_first: bool = False) -> Answer:
        left = run.ends - asyncio.get_running_loop().time()
        if left <= 0:
            raise Interrupted("canceling statement due to statement timeout")
        ask, reuse = partial(self._service.answer, analyst=self._analyst, session=self._session), run.settings.reuse
        known = self._service.find_answer(plan, analyst=self._analyst, session=self._session) if reuse else None
        if known is not None:
            return known
        work = ask(plan, timeout_seconds=left, reuse=reuse, is_first=is_first, own=run.own)
        self.at_work = AtWork(asyncio.get_running_loop().time(), plan.shape)
        try:
            async with asyncio.timeout(left + _SPARE_SECONDS) as limit:
                with self._kept_awake(run):
                    return await self._interruptible(work)
        except BudgetSpent as refusal:
            raise unaffordable(refusal, run.settings.within) from None
        except (Interrupted, TimeoutError):
            if not limit.expired():
                raise
            raise Interrupted("canceling statement due to statement timeout") from None
        finally:
            self.at_work = None

    def check_cancelled(self) -> None:
        """Refuse to go on with what the client has cancelled."""
        if self.is_cancelled:
            raise CANCELLED

    async def _interruptible(self, work: Coroutine[Any, Any, Result]) -> Result:
        if self.is_cancelled:  # while the twin described it, say: nothing is charged yet
            work.close()
            raise CANCELLED
        self._running = task = asyncio.ensure_future(work)
        try:
            return await task
        except (asyncio.CancelledError, Interrupted):
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # the client has left, and nobody is to be told
                raise asyncio.CancelledError from None
            if not task.cancelled():
                raise
            raise CANCELLED from None
        finally:
            self._running = None

    def _end(self, moment: SessionState, since: float) -> float:
        """By the least of the client's time-outs and ours, so that we say 57014 before the twin ends the session."""
        limits = [moment.seconds("statement_timeout"), moment.seconds("transaction_timeout")]
        ours = asyncio.get_running_loop().time() + self._timeout_seconds
        return min([ours, *(since + limit - _SPARE_SECONDS for limit in limits if limit is not None)])

    def _encoded(self, text: str) -> bytes:
        return encoded(text, self._relay.codec)


@lru_cache(maxsize=256)
def _digest(outer: tuple[str | int, ...], codec: str) -> bytes:
    """Of an outer statement as the twin reads it."""
    text = "\0".join(part if isinstance(part, str) else f"${part}" for part in outer)
    return blake2b(encoded(text, codec), digest_size=16).digest()
