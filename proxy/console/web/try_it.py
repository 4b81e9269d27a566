"""Try it: explain a statement as one of the analysts, with its cost and how far noise would move the answer.

Nothing is asked of the real database and nothing is spent: each look is an EXPLAIN in a session of that analyst inside
the proxy. It is the session that a client of that name would have: the same parser, planner, twin and refusals.
Statements go by the extended protocol, whose Parse takes one statement, and each begins with our EXPLAIN: so nothing is
run.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from proxy.console.web.pages import Page
from proxy.console.web.pictures import Line, Point, lines, log_axis
from proxy.log import event
from proxy.session.interfaces import Login
from proxy.session.interfaces import Session as AnySession
from proxy.session.sessions import Sessions
from proxy.wire.backend import DataRow, ErrorResponse, NoticeResponse, ReadyForQuery
from proxy.wire.buffer import FrameBuffer
from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync, Terminate
from rules.refusal import BadSetting, Interrupted, NotSupported, Refusal, Unavailable
from rules.sql.limits import MOST_BYTES
from rules.sql.session_settings import SettingLimits

PREFIX: Final = "EXPLAIN (FORMAT JSON) "
_SYNTAX_ERROR: Final = "42601"
_ONLY_QUERIES: Final = {
    "C": NotSupported.sqlstate,
    "M": "only queries can be tried here",
    "H": "Type a SELECT, VALUES, TABLE or WITH, without EXPLAIN. Other statements are for psql or another client.",
}
_SECONDS: Final = 20
_MOST_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply: a plan as EXPLAIN's JSON, or an error in the fields of the protocol."""

    plan: dict[str, object] | None
    error: dict[str, str]
    notices: tuple[str, ...] = ()


class _Client:
    """The client's side, in memory."""

    def __init__(self) -> None:
        self._buffer = FrameBuffer(_MOST_BYTES)
        self.rows: list[bytes] = []
        self.error: dict[str, str] = {}
        self.notices: list[str] = []
        self._ready, self._is_read = asyncio.Event(), asyncio.Event()
        self._is_read.set()
        self._is_closed = False

    def write(self, data: bytes) -> None:
        self._buffer.feed(data)
        for frame in self._buffer.frames():
            match frame.kind:
                case DataRow.kind:
                    self.rows.append(DataRow.decode(frame.raw).values[0] or b"")
                case ErrorResponse.kind:
                    self.error = dict(ErrorResponse.decode(frame.raw).fields)
                case NoticeResponse.kind:
                    self.notices.append(NoticeResponse.decode(frame.raw).fields.get("M", ""))
                case ReadyForQuery.kind:
                    self._ready.set()

    def pause_reading(self) -> None:
        self._is_read.clear()

    def resume_reading(self) -> None:
        self._is_read.set()

    def close(self, farewell: bytes = b"") -> None:
        if farewell:
            self.write(farewell)
        self._is_closed = True
        self._ready.set()
        self._is_read.set()

    async def is_read(self) -> None:
        """Wait until the session takes the next message."""
        await self._is_read.wait()

    async def ready(self) -> None:
        """Wait for the end of an answer; raises a Refusal where none comes."""
        await self._ready.wait()
        if self._is_closed and not self.error:
            raise Unavailable("the session ended before it answered", hint="Try again in a moment.")

    def forget(self) -> None:
        self._ready.clear()
        self.rows.clear()
        self.notices.clear()
        self.error = {}


class Asking:
    """Explains statements as one analyst."""

    def __init__(self, session: AnySession, client: _Client) -> None:
        self._session, self._client = session, client

    async def explain(self, sql: str, epsilon: Decimal | None = None) -> Reply:
        """The plan of a statement, or why there is none. Positions count in the statement itself."""
        if epsilon is not None:
            setting = await self._send(Query(f"SET noisegate.epsilon = {epsilon:f}".encode()).encode())
            if setting.error:
                return setting
        written = sql.replace("\0", " ")
        running = (Bind(b"", b"", (), (), ()).encode(), Execute(b"").encode(), Sync().encode())
        reply = await self._send(_parse(PREFIX + written), *running)
        if reply.error.get("C") == _SYNTAX_ERROR:  # of the statement, or only of an EXPLAIN before it
            alone = await self._send(_parse(written), Sync().encode())
            return alone if alone.error else Reply(None, _ONLY_QUERIES)
        if reply.error.get("P"):
            moved = max(1, int(reply.error["P"]) - len(PREFIX))
            return Reply(None, {**reply.error, "P": str(moved)}, reply.notices)
        return reply

    async def _send(self, *messages: bytes) -> Reply:
        self._client.forget()
        try:
            async with asyncio.timeout(_SECONDS):
                for raw in messages:
                    await self._client.is_read()
                    self._session.frame(raw[:1], raw)
                await self._client.ready()
        except TimeoutError:
            raise Interrupted(f"no plan was found within {_SECONDS} seconds") from None
        client = self._client
        plan = json.loads(b"".join(client.rows)) if client.rows and not client.error else None
        return Reply(_plan_of(plan), client.error, tuple(client.notices))


def _parse(text: str) -> bytes:
    return Parse(b"", text.encode("utf-8", "replace"), ()).encode()


def _plan_of(plan_entry: object) -> dict[str, object] | None:
    """The tree of a document as EXPLAIN writes it."""
    match plan_entry:
        case [{"Plan": dict() as plan}, *_]:
            return plan
    return None


@asynccontextmanager
async def asking_as(analyst: str, sessions: Sessions, database: str) -> AsyncIterator[Asking]:
    """A session of this analyst, until the block is left; raises a Refusal."""
    client = _Client()
    parameters = {"client_encoding": "UTF8", "application_name": "noisegate console"}
    login = Login(analyst, database, parameters, "console", lambda _process_id: b"")
    session = await sessions.open(login, client)
    try:
        yield Asking(session, client)
    finally:
        raw = Terminate().encode()
        session.frame(raw[:1], raw)
        session.closed()


def facts_of(plan: dict[str, object]) -> Sequence[tuple[str, str]]:
    """The lines of one node of a plan, without the nodes below it."""
    shown = ((name, value) for name, value in plan.items() if name not in ("Node Type", "Plans"))
    return [(name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)) for name, value in shown]


_MOST_PLACES: Final = 12  # behind the point of an ε
_POINTS: Final = 5  # of the line from little ε to much
_ERROR: Final = "error of "
_MARGIN: Final = re.compile(r"\+/- ([\d.,]+(?:e[-+]?\d+)?)(?: (in a group of [\d,]+ rows|rows))?")
_PRIVATE: Final = "Private Answer"


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """The error of one column: in words at the ε that was asked for, and as a line over others."""

    name: str
    words: str
    picture: Markup | None


@dataclass(frozen=True, slots=True)
class Tried:
    """The outcome of a statement."""

    told: Reply
    is_private: bool
    cost: Sequence[tuple[str, str]]
    blocks: Sequence[Sequence[tuple[str, str]]]
    expected: Sequence[ExpectedAnswer]
    marked: tuple[str, str, str] | None  # the statement before, at and after the place of an error


async def show(page: Page) -> Response:
    return _rendered(page, {"sql": "", "analyst": "", "epsilon": ""}, None)


async def ask(page: Page) -> Response:
    """Explain a statement as an analyst."""
    form = await page.form()
    vitals = page.house.console.vitals
    rulebook, limits = vitals.service.rulebook, vitals.service.limits
    form_fields = {name: form[name].strip() for name in ("sql", "analyst", "epsilon")}
    form_fields["sql"] = form_fields["sql"].rstrip("; \r\n")
    if form_fields["analyst"] not in rulebook.budgets.analysts:
        raise BadSetting(f'there is no analyst "{form_fields["analyst"][:60]}"')
    if len(form_fields["sql"].encode()) > MOST_BYTES:
        raise BadSetting(f"the statement is longer than {MOST_BYTES // 1024} KiB")
    if not form_fields["sql"]:
        return _rendered(page, form_fields, None)
    event("console", operator=page.user, command="EXPLAIN", analyst=form_fields["analyst"])
    try:
        epsilon = _epsilon(form_fields["epsilon"], limits)
        async with asking_as(form_fields["analyst"], vitals.sessions, rulebook.catalog.database) as asking:
            tried = await _tried(asking, form_fields["sql"], epsilon, limits)
    except Refusal as refusal:
        fields = {"C": refusal.sqlstate, "M": refusal.message, "H": refusal.hint, "D": refusal.detail}
        reply = Reply(None, {code: text for code, text in fields.items() if text})
        tried = Tried(reply, False, (), (), (), None)
    return _rendered(page, form_fields, tried)


def _rendered(page: Page, fields: Mapping[str, str], tried: Tried | None) -> Response:
    service = page.house.console.vitals.service
    limits = service.limits
    return page.render(
        "try.html",
        asked=fields,
        tried=tried,
        analysts=sorted(service.rulebook.policy.analysts),
        default=f"{limits.epsilon:f}",
        most=f"{limits.max_epsilon:f}",
    )


def _epsilon(text: str, limits: SettingLimits) -> Decimal:
    if not text:
        return limits.epsilon
    try:
        epsilon = Decimal(text)
    except InvalidOperation:
        raise BadSetting(f'ε is a number, not "{text[:40]}"') from None
    if not (epsilon.is_finite() and 0 < epsilon <= limits.max_epsilon and epsilon.adjusted() > -_MOST_PLACES):
        raise BadSetting(f"ε is a number above 0, and at most {limits.max_epsilon:f}")
    return epsilon


async def _tried(asking: Asking, sql: str, epsilon: Decimal, limits: SettingLimits) -> Tried:
    reply = await asking.explain(sql, epsilon)
    if reply.plan is None:
        return Tried(reply, False, (), (), (), _marked(sql, reply.error.get("P", "")))
    if reply.plan.get("Node Type") != _PRIVATE:
        return Tried(reply, False, (), (), (), None)
    margins = {epsilon: _margins(reply)}
    for tried in _epsilons(limits):
        if tried != epsilon:
            margins[tried] = _margins(await asking.explain(sql, tried))
    blocks = [facts_of(block) for block in _blocks(reply)]
    errors = [(name.removeprefix(_ERROR), value) for block in blocks for name, value in block if _is_error(name)]
    pictures = [_picture(name, epsilon, number, margins) for number, (name, _) in enumerate(errors)]
    expected = [ExpectedAnswer(*error, picture) for error, picture in zip(errors, pictures, strict=True)]
    return Tried(reply, True, facts_of(reply.plan), blocks, expected, None)


def _is_error(name: str) -> bool:
    return name.startswith(_ERROR)


def _marked(sql: str, position: str) -> tuple[str, str, str] | None:
    """The statement around the place of an error; positions count characters from 1."""
    if not position.isdecimal() or not 0 < int(position) <= len(sql):
        return None
    at = int(position) - 1
    word = re.match(r"\w+|.", sql[at:], re.DOTALL)
    end = at + (len(word[0]) if word else 1)
    return sql[:at], sql[at:end], sql[end:]


def _blocks(told: Reply) -> Iterator[dict[str, object]]:
    below = (told.plan or {}).get("Plans")
    for block in below if isinstance(below, list) else ():
        if isinstance(block, dict):
            yield block


def _margins(told: Reply) -> list[tuple[float, str] | None]:
    """The first error that each line tells, and in what it is."""
    facts = (fact for block in _blocks(told) for fact in facts_of(block))
    return [_margin(value) for name, value in facts if _is_error(name)]


def _margin(words: str) -> tuple[float, str] | None:
    match = _MARGIN.search(words)
    return None if match is None else (float(match[1].replace(",", "")), match[2] or "")


def _epsilons(limits: SettingLimits) -> list[Decimal]:
    """From little to the most that a statement may have, evenly in powers."""
    low, high = float(max(limits.min_epsilon, limits.max_epsilon / 100)), float(limits.max_epsilon)
    steps = [low * (high / low) ** (number / (_POINTS - 1)) for number in range(_POINTS)]
    inner = [Decimal(f"{step:.2g}") for step in steps]
    return [min(limits.max_epsilon, max(limits.min_epsilon, decimal)) for decimal in inner]


def _picture(
    name: str, epsilon: Decimal, number: int, points_of: Mapping[Decimal, Sequence[tuple[float, str] | None]]
) -> Markup | None:  # fmt: skip
    """The error over ε, with a dot where it was asked."""
    at = {decimal: margins[number] for decimal, margins in sorted(points_of.items()) if number < len(margins)}
    points = [
        Point(float(decimal), margin[0]) for decimal, margin in at.items() if margin is not None and margin[0] > 0
    ]
    here = at.get(epsilon)
    if len(points) < 2 or here is None:
        return None
    x, y = log_axis([point.x for point in points]), log_axis([point.y for point in points])
    unit = f"± {here[1]}".strip()
    title = f"Expected error of {name}: {unit} {here[0]:.4g} at ε {epsilon:f}; less ε means a larger error"
    return lines(title, [Line(points)], x, y, Point(float(epsilon), here[0]), "ε of the statement")


PAGES: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/try": show}
ACTIONS: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/try": ask}
