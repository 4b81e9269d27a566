"""An operator's session: PostgreSQL's protocol, simple and extended, over the commands of the console."""

import asyncio
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from proxy.console.commands import Console, Rows
from proxy.console.language import Command, commands_of, completions
from proxy.log import event
from proxy.session.errors import SHUTDOWN, error_response, fatal
from proxy.session.interfaces import ClientPort, Login
from proxy.wire.backend import (
    FAILED,
    IDLE,
    IN_TRANSACTION,
    BindComplete,
    CloseComplete,
    CommandComplete,
    DataRow,
    EmptyQueryResponse,
    ErrorResponse,
    Field,
    NoData,
    ParameterDescription,
    ParameterStatus,
    ParseComplete,
    ReadyForQuery,
    RowDescription,
)
from proxy.wire.codec import ProtocolViolation
from proxy.wire.frontend import STATEMENT, Bind, Close, Describe, Execute, Flush, Parse, Query, Sync, Terminate
from rules.refusal import Interrupted, NotSupported, Refusal

DATABASE: Final = "noisegate"
_TEXT_OID: Final = 25
_FIRST_ID: Final = 2**30  # above every process id, so that no session of an analyst has the same
_REPORTED: Final = {
    "server_version": "16.0",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
}


Thing = TypeVar("Thing")


class InFailedTransaction(Refusal):
    """A command after one that failed, inside BEGIN and COMMIT."""

    sqlstate = "25P02"  # in_failed_sql_transaction


class NoSuchName(Refusal):
    """A prepared statement or a portal that there is not."""

    sqlstate = "26000"  # invalid_sql_statement_name


@dataclass(frozen=True, slots=True)
class _Portal:
    command: Command | None
    formats: tuple[int, ...]


class ConsoleSession:
    """Handles messages one after the other; see `proxy.session.interfaces.Session`."""

    is_inside_message = False

    def __init__(self, console: Console, login: Login, client: ClientPort) -> None:
        self._console, self._client, self._operator = console, client, login.user
        self._state, self._skipping, self._is_draining = IDLE, False, False
        self._statements: dict[bytes, Command | None] = {}
        self._portals: dict[bytes, _Portal] = {}
        self._frames: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue()
        reports = b"".join(
            ParameterStatus(name, value).encode()
            for name, value in (_REPORTED | {"session_authorization": login.user}).items()
        )
        key = login.backend_key(_FIRST_ID + secrets.randbelow(_FIRST_ID))
        client.write(reports + key + ReadyForQuery().encode())
        self._pausing: asyncio.Task[Rows] | None = None
        self._task = asyncio.create_task(self._work())

    def admits(self, kind: bytes, size: int) -> bool:
        self._client.close(fatal("54000", "a message to the console has at most 64 KiB"))
        return False

    def frame(self, kind: bytes, raw: bytes) -> None:
        self._frames.put_nowait((kind, raw))

    def pause_writing(self) -> None:
        self._client.pause_reading()

    def resume_writing(self) -> None:
        self._client.resume_reading()

    def cancel(self) -> None:
        """Commands are short, but for PAUSE: what it waits for is waited for no more."""
        if self._pausing is not None:
            self._pausing.cancel()

    def drain(self) -> None:
        self._client.close(fatal(*SHUTDOWN))

    def closed(self) -> None:
        self._task.cancel()

    async def _work(self) -> None:
        while True:
            kind, raw = await self._frames.get()
            try:
                await self._handle(kind, raw)
            except Refusal as refusal:
                self._fail(error_response(refusal), is_simple=kind == Query.kind)
            except Exception as error:  # noqa: BLE001 - the last resort: logged without its text, and the session ends
                self._client.close(error_response(error, "FATAL").encode())
                return

    def _fail(self, error: ErrorResponse, *, is_simple: bool) -> None:
        self._state = IDLE if self._state == IDLE else FAILED
        self._client.write(error.encode() + (ReadyForQuery(self._state).encode() if is_simple else b""))
        self._skipping = not is_simple

    async def _handle(self, kind: bytes, raw: bytes) -> None:
        if kind == Terminate.kind:
            self._client.close()
        elif kind == Sync.kind:
            self._skipping = False
            self._client.write(ReadyForQuery(self._state).encode())
        elif kind == Query.kind:
            await self._query(Query.decode(raw).sql)
        elif kind != Flush.kind and not self._skipping:
            await self._extended(kind, raw)

    async def _query(self, text: bytes) -> None:
        commands = commands_of(_decoded(text))
        if not commands:
            self._client.write(EmptyQueryResponse().encode())
        for command in commands:
            rows, tag = await self._run(command)
            columns = _described(command.columns, ()) if command.columns else b""
            self._client.write(columns + _encoded(rows) + CommandComplete(tag.encode()).encode())
        self._client.write(ReadyForQuery(self._state).encode())

    async def _extended(self, kind: bytes, raw: bytes) -> None:
        if kind == Parse.kind:
            self._parse(Parse.decode(raw))
        elif kind == Bind.kind:
            self._bind(Bind.decode(raw))
        elif kind == Describe.kind:
            self._describe(Describe.decode(raw))
        elif kind == Close.kind:
            closing = Close.decode(raw)
            (self._statements if closing.target == STATEMENT else self._portals).pop(closing.name, None)
            self._client.write(CloseComplete().encode())
        elif kind == Execute.kind:
            await self._execute(Execute.decode(raw))
        else:
            raise ProtocolViolation(f"message {kind!r} is not for the console")

    def _parse(self, parse: Parse) -> None:
        commands = commands_of(_decoded(parse.sql))
        if len(commands) > 1:
            raise NotSupported("a prepared statement has one command")
        self._statements[parse.statement] = commands[0] if commands else None
        self._client.write(ParseComplete().encode())

    def _bind(self, bind: Bind) -> None:
        if bind.parameters:
            raise NotSupported("commands of the console have no parameters", hint="Write the value into the command.")
        self._portals[bind.portal] = _Portal(_known(self._statements, bind.statement), bind.result_formats)
        self._client.write(BindComplete().encode())

    def _describe(self, describe: Describe) -> None:
        if describe.target == STATEMENT:
            command, formats = _known(self._statements, describe.name), tuple[int, ...]()
            self._client.write(ParameterDescription(()).encode())
        else:
            portal = _known(self._portals, describe.name)
            command, formats = portal.command, portal.formats
        columns = command.columns if command is not None else ()
        self._client.write(_described(columns, formats) if columns else NoData().encode())

    async def _execute(self, execute: Execute) -> None:
        command = _known(self._portals, execute.portal).command
        if command is None:
            self._client.write(EmptyQueryResponse().encode())
            return
        rows, tag = await self._run(command)
        self._client.write(_encoded(rows) + CommandComplete(tag.encode()).encode())

    async def _run(self, command: Command) -> tuple[Sequence[Sequence[str | None]], str]:
        """Rows and tag of one command. BEGIN and COMMIT change only the state that clients see."""
        match command.verb:
            case "COMMIT" | "ROLLBACK":
                tag = "ROLLBACK" if self._state == FAILED else command.verb
                self._state = IDLE
                return (), tag
            case _ if self._state == FAILED:
                raise InFailedTransaction(
                    "current transaction is aborted, commands ignored until end of transaction block"
                )
            case "BEGIN":
                self._state = IN_TRANSACTION
                return (), "BEGIN"
            case "SET":
                return (), "SET"
            case "COMPLETE":
                words = completions(*command.arguments)
                return words, f"SELECT {len(words)}"
        event("console", operator=self._operator, command=" ".join((command.verb, *command.arguments)))
        work = self._console.run(command, self._operator)
        return await (self._cancellable(work) if command.verb == "PAUSE" else work), command.verb

    async def _cancellable(self, work: Coroutine[None, None, Rows]) -> Rows:
        """Run it until it is done or cancelled; a cancel of this very task says that the operator has gone."""
        self._pausing = asyncio.create_task(work)
        try:
            return await self._pausing
        except asyncio.CancelledError:
            if self._task.cancelling():
                raise
            raise Interrupted("canceling statement due to user request", hint="It is paused all the same.") from None
        finally:
            self._pausing = None


def _known(things: Mapping[bytes, Thing], name: bytes) -> Thing:
    if name not in things:
        raise NoSuchName(f'"{name.decode("utf-8", "replace")}" does not exist')
    return things[name]


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise NotSupported("the console reads UTF-8") from None


def _described(columns: Sequence[str], formats: tuple[int, ...]) -> bytes:
    """All columns are texts, which are the same in both formats."""
    column_formats = formats * len(columns) if len(formats) == 1 else formats or (0,) * len(columns)
    fields = (
        Field(name.encode(), 0, 0, _TEXT_OID, -1, -1, form) for name, form in zip(columns, column_formats, strict=True)
    )
    return RowDescription(tuple(fields)).encode()


def _encoded(rows: Sequence[Sequence[str | None]]) -> bytes:
    return b"".join(DataRow(tuple(None if cell is None else cell.encode() for cell in row)).encode() for row in rows)
