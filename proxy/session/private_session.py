"""The private statements of one session: what it keeps of them, and the steps that the parts of a statement share.

Each step is one exchange with the twin. In the extended protocol none of them holds a Sync, which would end the
client's implicit transaction; in the simple protocol each ends with one.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, TypeVar

from proxy.execute.service import Answer, Service
from proxy.execute.system_views import OwnRows
from proxy.session.errors import SCHEMA_CHANGED, check_of_text, placed, refusal_report
from proxy.session.private_request import OUTER, Parameters, ParameterValues, ParsedUnder
from proxy.session.recent_refusals import log_refusal
from proxy.session.relay import Relay
from proxy.session.replies import Expected, TwinRefusal, described, encoded, parse_under, shape, swallow
from proxy.session.twin_probe import PROBE_ROW, TEXT_ARRAY_OID, SyntheticRows, decode_probe, run_probe
from proxy.wire.backend import Field
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Sync
from rules.accounting.budgets import PaidIn
from rules.planner.plan import NeedsInner, Plan, Request
from rules.refusal import LONGER, BudgetSpent, Interrupted, Mismatch, Refusal
from rules.sql.session_settings import AnalystSettings, SettingLimits, Within, read_settings

CANCELLED: Final = Interrupted("canceling statement due to user request")
SPARE_SECONDS: Final = 0.1  # for us to be quicker than the twin's own time-outs
_OVERDUE: Final = "canceling statement due to statement timeout"
_AWAKE: Final = b"_ng_awake"
_CLOSING: Final = b"_ng_closing"
_MOST_MATCHED: Final = 50

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Run:
    """What all parts of one statement share."""

    parameters: Parameters
    settings: AnalystSettings
    ends: float  # when the event loop's clock says that it has taken too long
    sync: bool
    own: OwnRows  # of the session
    under: ParsedUnder
    changes: int  # of the twin, before the statement was described
    charged: list[Answer] = field(default_factory=list)  # the parts that were charged before the rest

    @property
    def is_older(self) -> bool:
        """Return whether the statement was prepared under other settings, by which its literals are read."""
        return self.under.older is not None

    @property
    def seconds_left(self) -> float:
        return self.ends - asyncio.get_running_loop().time()

    @contextmanager
    def noting_parts(self) -> Iterator[None]:
        """A refusal of the rest does not say that nothing was charged where a part was."""
        try:
            yield
        except Refusal as refusal:
            if not self.charged:
                raise
            raise refusal.after_a_part() from None


@dataclass(frozen=True, slots=True)
class AtWork:
    """A statement that is being answered, for operators."""

    since: float  # on the event loop's clock
    shape: str  # its text without constants


class PrivateSession:
    """What `answer_private` knows of one session."""

    def __init__(self, relay: Relay, service: Service, *, analyst: str, session: str, timeout_seconds: float):
        self.relay, self.service, self.values = relay, service, ParameterValues(relay)
        self.analyst, self.session, self.timeout_seconds = analyst, session, timeout_seconds
        self.synthetic = SyntheticRows(service, analyst)
        self.last: tuple[str, ...] = ()  # the rows of noisegate.last
        self.at_work: AtWork | None = None
        self.is_cancelled = False  # what the client has sent last, in whatever step it is
        self._running: asyncio.Task[Any] | None = None
        self._paid_in: PaidIn | None = None  # the answers that this and cursors on the twin may hold
        self._matched: set[tuple[bytes, tuple[int, ...], tuple[tuple[bytes, int, int], ...]]] = set()

    @property
    def limits(self) -> SettingLimits:
        return self.service.limits_of(self.analyst)

    async def check_settings(self) -> None:
        """Refuse settings of a client's startup that no statement could be answered with."""
        replies = await self.relay.ask(*run_probe((), self.relay.codec), sync=True)
        read_settings(decode_probe(replies[PROBE_ROW], self.relay.codec).settings, self.limits)

    # Cancelling

    def hear(self) -> None:
        """The client has sent another message: what was cancelled was an earlier one."""
        self.is_cancelled = False

    def cancel(self) -> bool:
        """Stop what runs outside the twin, or is about to; False: nothing runs there now."""
        self.is_cancelled = True
        if self._running is None:
            return False
        self._running.cancel()
        return True

    def check_cancelled(self) -> None:
        """Refuse to go on with what the client has cancelled."""
        if self.is_cancelled:
            raise CANCELLED

    async def interruptible(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do what a cancel stops."""
        if self.is_cancelled:  # while the twin described it, say: nothing is charged yet
            work.close()
            raise CANCELLED
        self._running = task = asyncio.ensure_future(work)
        try:
            return await task
        except (asyncio.CancelledError, Interrupted):
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # the client has left, and nobody reads a reply
                raise asyncio.CancelledError from None
            if not task.cancelled():
                raise
            raise CANCELLED from None
        finally:
            self._running = None

    @contextmanager
    def kept_awake(self, run: Run) -> Iterator[None]:
        """Hold the twin inside a batch, which has no transaction, while the statement runs elsewhere.

        After a Sync it would be idle, and end the session by the time-outs for that.
        """
        if not run.sync:
            yield
            return
        self.relay.send(Close(STATEMENT, _AWAKE).encode(), Expected(Close.kind, swallow))
        self.relay.flush()
        try:
            yield
        finally:
            self.relay.sync(expected=Expected(Sync.kind, swallow))

    # What was paid for

    def pay_now(self) -> None:
        """What the session holds from now on is paid in the running period, which may end before the answer comes."""
        self._paid_in = self._paid_in or self.service.paid_in(self.analyst)

    def keep_last(self, answer: Answer) -> None:
        """Keep the rows of noisegate.last."""
        self.last = answer.last or self.last

    @property
    def holds_unpaid(self) -> bool:
        """Return whether held answers were paid in another period, or role, than the analyst pays in now."""
        return self._paid_in is not None and self._paid_in != self.service.paid_in(self.analyst)

    async def close_unpaid(self, *, sync: bool) -> None:
        """Close all cursors and portals: their rows would be shown once more, at no charge; raises TwinRefusal."""
        bind, ends = Bind(_CLOSING, _CLOSING), (Close(PORTAL, _CLOSING), Close(STATEMENT, _CLOSING))
        await self.relay.ask(*parse_under(_CLOSING, b"CLOSE ALL"), bind, Execute(_CLOSING), *ends, sync=sync)
        self.last, self._paid_in = (), None

    # The steps that all parts of a statement take

    async def plan(self, place: int | None, request: Request) -> Plan | NeedsInner:
        """Plan, or find what must be answered before; a refusal points into what the client has sent."""
        if (known := self.service.find_plan(request)) is not None:
            return known
        try:
            return await self.interruptible(self.service.plan(request, self.analyst))
        except Refusal as refusal:
            raise placed(refusal, place) from None

    async def compare(self, plan: Plan, columns: tuple[Field, ...], run: Run) -> bool:
        """Before anything is charged: the outer statement must look to PostgreSQL as the original does.

        Returns whether the twin has the outer statement as OUTER now. What has matched before is asked again only where
        it has to be there.
        """
        types, codec = run.parameters.types, self.relay.codec
        key = _digest(plan.outer, codec), types, tuple(shape(columns))
        if key in self._matched and not run.is_older:
            return False
        text = encoded(plan.outer_with_parameters(), codec)
        holes = (part for part in plan.outer if isinstance(part, int))
        arrays = (TEXT_ARRAY_OID,) * (max(holes, default=plan.parameters) - plan.parameters)
        is_left = run.is_older or not run.sync
        ends = () if is_left else (Close(STATEMENT, OUTER),)
        messages = run.under.taken(parse_under(OUTER, text, types + arrays), codec)
        try:
            replies = await self.relay.ask(*messages, Describe(STATEMENT, OUTER), *ends, sync=run.sync)
        except TwinRefusal as error:
            check_of_text(error)
            refusal = self._mismatch(run)
            log_refusal(self.analyst, refusal, fingerprint=plan.fingerprint)
            raise TwinRefusal(refusal_report(refusal, codec)) from None
        if plan.parameters != len(types) or shape(described(replies[len(messages)])[1]) != shape(columns):
            raise self._mismatch(run)
        if len(self._matched) >= _MOST_MATCHED:
            self._matched.clear()
        self._matched.add(key)
        return is_left

    def _mismatch(self, run: Run) -> Refusal:
        if self.relay.changes.since(run.changes):
            return SCHEMA_CHANGED
        return Mismatch("the proxy and PostgreSQL parse this statement differently, so it was not run")

    async def answer(self, plan: Plan, run: Run, *, is_first: bool = False) -> Answer:
        """Answer what is planned and compared: one that was given before, or `Service.answer` in the time that is left.

        The rest of its statement depends on one that `is_first`.
        """
        if run.seconds_left <= 0:
            raise Interrupted(_OVERDUE, hint=LONGER)
        service, analyst, session = self.service, self.analyst, self.session
        if run.settings.reuse and (known := service.find_answer(plan, analyst=analyst, session=session)) is not None:
            return known
        left = run.seconds_left
        work = service.answer(
            plan, analyst=analyst, session=session, timeout_seconds=left, reuse=run.settings.reuse,
            is_first=is_first, own=run.own,
        )  # fmt: skip
        self.at_work = AtWork(asyncio.get_running_loop().time(), plan.shape)
        try:
            async with asyncio.timeout(left + SPARE_SECONDS) as limit:
                with self.kept_awake(run):
                    answer = await self.interruptible(work)
        except BudgetSpent as refusal:
            raise _unaffordable(refusal, run.settings.within) from None
        except (Interrupted, TimeoutError):
            if not limit.expired():
                raise
            raise Interrupted(_OVERDUE, hint=LONGER) from None
        finally:
            self.at_work = None
        if is_first and not answer.is_free:
            run.charged.append(answer)
        return answer


def _unaffordable(refusal: BudgetSpent, within: Within | None) -> BudgetSpent:
    """Tell a refusal of a charge under noisegate.within, where less of the session's own ε does not help."""
    if within is None or not refusal.hint.startswith("SET noisegate.epsilon"):
        return refusal
    hint = f"Allow more error; or RESET noisegate.within, then {refusal.hint}"
    return BudgetSpent(refusal.message, detail=refusal.detail, hint=hint)


@lru_cache(maxsize=256)
def _digest(outer: tuple[str | int, ...], codec: str) -> bytes:
    """Of an outer statement as the twin reads it."""
    text = "\0".join(part if isinstance(part, str) else f"${part}" for part in outer)
    return blake2b(encoded(text, codec), digest_size=16).digest()
