"""The operator's port: /metrics for Prometheus, /healthz and /readyz for the supervisor of the proxy.

So small a part of HTTP/1.1 that there is nothing to configure: GET and HEAD, one answer a connection.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from proxy.console.vitals import OK, Vitals
from proxy.log import event
from proxy.metrics import REGISTRY
from proxy.server.admission import PendingLogins

_MOST_BYTES: Final = 16 * 1024  # of a request's head
_MOST_OPEN: Final = 64  # connections; of more one has to go, so that nobody takes all open files of the proxy
_MOST_AT_ONCE: Final = 32  # answers
_READ_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 10.0
_PLAIN: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    status: HTTPStatus
    body: bytes
    type: str = _PLAIN


class OperatorPort:
    """Listens, and answers from what there is: before the database has been seen, that it has not been."""

    def __init__(self, host: str, port: int, find_vitals: Callable[[], Vitals | None]) -> None:
        self._host, self.port, self._find_vitals = host, port, find_vitals
        self._server: asyncio.Server | None = None
        self._doorway = PendingLogins(_MOST_OPEN)
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)

    async def start(self) -> None:
        """Listen; raises OSError."""
        self._server = await asyncio.start_server(self._serve, self._host, self.port, limit=_MOST_BYTES)
        self.port = int(self._server.sockets[0].getsockname()[1])
        event("operator_port", port=self.port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        turn_out = writer.transport.abort
        self._doorway.enter(turn_out, str((writer.get_extra_info("peername") or ("",))[0]))
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_READ_SECONDS):
                    method, path = await _read_request(reader)
                self._doorway.spoke(turn_out)
                async with asyncio.timeout(_ANSWER_SECONDS):
                    async with self._places:
                        reply = await self._reply(method, path)
                    if writer.transport.is_closing():  # turned out, or gone by itself
                        return
                    writer.write(_encoded(reply, with_body=method != "HEAD"))
                    writer.close()
                    await writer.wait_closed()
        finally:
            turn_out()
            self._doorway.leave(turn_out)

    async def _reply(self, method: str, path: str) -> Reply:
        if method not in ("GET", "HEAD"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED if path else HTTPStatus.BAD_REQUEST)
        match path:
            case "/healthz":
                return Reply(HTTPStatus.OK, b"ok\n")
            case "/readyz":
                return await self._ready()
            case "/metrics":
                vitals = self._find_vitals()
                gauges = b"" if vitals is None else generate_latest(await vitals.gauges())
                return Reply(HTTPStatus.OK, generate_latest(REGISTRY) + gauges, CONTENT_TYPE_LATEST)
            case _:
                return _plain(HTTPStatus.NOT_FOUND)

    async def _ready(self) -> Reply:
        vitals = self._find_vitals()
        parts = {"database": "not_seen_yet"} if vitals is None else await vitals.health()
        is_ready = all(word == OK for word in parts.values())
        body = json.dumps({"ready": is_ready, **parts}).encode() + b"\n"
        return Reply(HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE, body, "application/json")


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, str]:
    """Method and path; empty ones where it is no request."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return "", ""
    parts = head.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return "", ""
    return parts[0], parts[1].partition("?")[0]


def _plain(status: HTTPStatus) -> Reply:
    return Reply(status, f"{status.phrase}\n".encode())


def _encoded(reply: Reply, *, with_body: bool) -> bytes:
    lines = (
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}",
        f"Content-Type: {reply.type}",
        f"Content-Length: {len(reply.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (reply.body if with_body else b"")
