"""One client's socket after its login: order, backpressure, failures, the end."""

import asyncio
import gc
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest.mock import AsyncMock, create_autospec

import pytest

from proxy.server.accounts import Accounts
from proxy.server.listener import Client
from proxy.server.server_context import ServerContext
from proxy.session.errors import fatal
from proxy.session.interfaces import ClientPort, Login, Session
from proxy.settings import ServerSettings
from proxy.twin.embedded import Cluster
from proxy.wire import codec
from proxy.wire.authentication import AuthenticationOk
from proxy.wire.backend import BackendKeyData, CommandComplete, ErrorResponse, ReadyForQuery
from proxy.wire.frontend import Flush, Query, Sync, Terminate
from proxy.wire.startup import StartupMessage
from rules.refusal import Unavailable
from tests.server.bare_client import BareClient
from tests.server.relay import Relay, eventually, running_relay

FLOOD = codec.frame(b"d", bytes(1_000)) * 20_000


@dataclass
class Puppet:
    """A session that answers each Query with its text, and obeys a few."""

    login: Login
    client: ClientPort
    heard: list[str] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)

    def admits(self, kind: bytes, size: int) -> bool:
        self.heard.append(f"{kind.decode()} of {size}")
        return size <= 100_000

    def frame(self, kind: bytes, raw: bytes) -> None:
        self.frames.append(raw)
        match kind, raw[codec.HEADER_SIZE : -1]:
            case b"Q", b"fail":
                raise LookupError("a row of Alice")
            case b"Q", b"flood":
                self.client.write(FLOOD)
            case b"Q", b"pause":
                self.client.pause_reading()
            case b"Q", b"bounce":
                self.client.pause_reading()
                self.client.resume_reading()
            case b"Q", b"leave":
                self.client.close(fatal("57P01", "so long"))
                self.client.write(ReadyForQuery().encode())
            case b"Q", text:
                self.client.write(CommandComplete(text).encode())
            case b"X", _:
                self.client.close()

    @property
    def is_inside_message(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.heard.append("pause")

    def resume_writing(self) -> None:
        self.heard.append("resume")

    def cancel(self) -> None:
        self.heard.append("cancel")

    def drain(self) -> None:
        self.heard.append("drain")

    def closed(self) -> None:
        self.heard.append("closed")


@dataclass
class Stage:
    """A proxy whose sessions are puppets."""

    relay: Relay
    puppets: list[Puppet]

    def do(self, act: str) -> None:
        """Call something of the last client's port, on its event loop."""

        async def call() -> None:
            getattr(self.puppets[-1].client, act)()

        self.relay.call(call())


@pytest.fixture
def stage(cluster: Cluster) -> Iterator[Stage]:
    puppets: list[Puppet] = []

    async def open_session(login: Login, client: ClientPort) -> Session:
        match login.parameters.get("application_name"):
            case "nowhere":
                raise Unavailable("the twin is unavailable")
            case "broken":
                raise LookupError("a row of Alice")
            case "slow":
                await asyncio.sleep(60)
            case _:
                await asyncio.sleep(0.05)
        client.write(login.backend_key(7) + ReadyForQuery().encode())
        puppets.append(Puppet(login, client))
        return puppets[-1]

    settings = ServerSettings(port=0, drain_timeout_seconds=0.2)
    with running_relay(cluster, settings, open_session=open_session) as relay:
        yield Stage(relay, puppets)


def query(text: str) -> bytes:
    return Query(text.encode()).encode()


def test_a_login_is_answered_in_the_order_that_clients_rely_on(stage: Stage) -> None:
    with BareClient(stage.relay, search_path="a") as client:
        kinds = [type(message) for message in client.messages_until(ReadyForQuery)]

        assert kinds == [AuthenticationOk, BackendKeyData, ReadyForQuery]
        login = stage.puppets[0].login
        assert (login.user, login.database, login.peer) == ("ada", "shop", "127.0.0.1")
        assert login.parameters == {"search_path": "a"}


def test_frames_that_come_while_the_session_is_being_opened_are_its_first(stage: Stage) -> None:
    sent = query("one") + Flush().encode() + query("two")
    with BareClient(stage.relay, behind_the_proof=sent) as client:
        messages = [*client.messages_until(ReadyForQuery), client.message(), client.message()]

        assert messages[-2:] == [CommandComplete(b"one"), CommandComplete(b"two")]
        assert b"".join(stage.puppets[0].frames) == sent


def test_frames_reach_the_session_whole_however_they_are_cut(stage: Stage) -> None:
    sent = query("x" * 3_000) + Sync().encode() + b"?" + codec.int32(7) + b"odd"
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        for start in range(0, len(sent), 700):
            client.send(sent[start : start + 700])
            time.sleep(0.002)

        assert eventually(lambda: len(stage.puppets[0].frames) == 3)
        assert b"".join(stage.puppets[0].frames) == sent


def test_a_session_that_pauses_gets_no_frame_until_it_resumes(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(query("one") + query("pause") + query("two") + query("three"))
        assert client.message() == CommandComplete(b"one")
        time.sleep(0.1)
        assert len(stage.puppets[0].frames) == 2

        stage.do("resume_reading")

        assert [client.message(), client.message()] == [CommandComplete(b"two"), CommandComplete(b"three")]


def test_who_leaves_while_his_session_pauses_is_noticed_at_once(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(query("pause") + query("one"))
        assert eventually(lambda: len(stage.puppets[0].frames) == 1)

    assert eventually(lambda: stage.puppets[0].heard == ["closed"])


def test_a_session_may_pause_and_resume_while_it_is_given_a_frame(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(query("bounce") + query("one") + query("bounce") + query("two"))

        assert [client.message(), client.message()] == [CommandComplete(b"one"), CommandComplete(b"two")]


def test_a_session_that_pauses_stops_the_client_from_sending_without_end(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(query("pause"))
        client.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            for _ in range(1_000):
                client.send(query("x" * 50_000))

        assert len(stage.puppets[0].frames) == 1


def test_a_client_that_does_not_read_makes_the_session_wait_and_reading_goes_on_later(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(query("flood"))
        assert eventually(lambda: stage.puppets[0].heard == ["pause"])

        rows = [client.frame() for _ in range(20_000)]

        assert all(row is not None and row.kind == b"d" for row in rows)
        assert eventually(lambda: stage.puppets[0].heard == ["pause", "resume"])


def test_a_session_ends_its_client_with_a_last_message_and_nothing_after_it(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(query("leave"))

        (last,) = client.rest()

        assert isinstance(last, ErrorResponse)
        assert last.sqlstate == "57P01"
        assert eventually(lambda: stage.puppets[0].heard == ["closed"])


def test_goodbye_is_the_sessions_business(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(Terminate().encode())

        assert client.rest() == []
        assert eventually(lambda: stage.puppets[0].heard == ["closed"])


def test_an_error_of_our_own_is_one_constant_text_and_no_log_quotes_it(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("noisegate"), "propagate", True)
    with caplog.at_level(logging.INFO, logger="noisegate"), BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(query("fail") + query("one"))

        (last,) = client.rest()

        assert isinstance(last, ErrorResponse)
        assert last.fields == {"S": "FATAL", "V": "FATAL", "C": "XX000", "M": "internal error of the proxy"}
        assert eventually(lambda: stage.puppets[0].heard == ["closed"])
    assert "Alice" not in caplog.text
    assert any(json.loads(line).get("kind") == "LookupError" for line in caplog.messages)


def test_a_frame_that_is_too_long_ends_the_session(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(b"Q" + codec.int32(1 << 30))

        (last,) = client.rest()

        assert isinstance(last, ErrorResponse)
        assert (last.fields["V"], last.sqlstate) == ("FATAL", "08P01")
        assert eventually(lambda: stage.puppets[0].heard == ["closed"])


@pytest.mark.parametrize(("name", "sqlstate"), [("nowhere", "57P03"), ("broken", "XX000")])
def test_a_session_that_cannot_be_opened_is_told_and_its_seat_is_free(stage: Stage, name: str, sqlstate: str) -> None:
    with BareClient(stage.relay, application_name=name) as client:
        *_, last = client.rest()

    assert isinstance(last, ErrorResponse)
    assert (last.fields["S"], last.sqlstate) == ("FATAL", sqlstate)
    assert eventually(lambda: not len(stage.relay.listener))
    assert len(stage.relay.context.seats) == 0


def test_who_leaves_while_the_session_is_being_opened_leaves_nothing_behind(stage: Stage) -> None:
    for name in ("slow", "quick"):
        BareClient(stage.relay, application_name=name).socket.close()

    assert eventually(lambda: not len(stage.relay.listener))
    assert (len(stage.relay.context.seats), len(stage.relay.context.keys)) == (0, 0)
    assert all(puppet.heard == ["closed"] for puppet in stage.puppets)


@pytest.mark.extended
def test_a_reader_that_never_reads_cannot_keep_its_session_from_ending(stage: Stage) -> None:
    with BareClient(stage.relay) as client:
        client.messages_until(ReadyForQuery)
        client.send(query("flood") + query("leave"))

        assert eventually(lambda: "closed" in stage.puppets[0].heard, seconds=8)


def test_shutting_down_asks_sessions_first_and_then_ends_them(stage: Stage) -> None:
    with BareClient(stage.relay) as client, BareClient(stage.relay, application_name="slow") as opening:
        client.messages_until(ReadyForQuery)

        stage.relay.call(stage.relay.listener.stop())

        assert stage.puppets[0].heard == ["drain", "closed"]
        for messages in (client.rest(), opening.rest()):
            assert isinstance(messages[-1], ErrorResponse)
            assert messages[-1].sqlstate == "57P01"
        with pytest.raises(ConnectionRefusedError):
            stage.relay.socket()


async def test_who_leaves_in_the_turn_in_which_he_came_leaves_nothing_behind(recwarn: pytest.WarningsRecorder) -> None:
    """Strangers could fill standard error with warnings."""
    accounts = Accounts({}, b"nobody's to guess")
    context = ServerContext.build(
        ServerSettings(), database="shop", accounts=accounts, tls=None, open_session=AsyncMock()
    )
    transport = create_autospec(asyncio.Transport, instance=True)
    transport.get_extra_info.return_value = ("127.0.0.1", 5432)
    client = Client(context, lambda _: None)
    client.connection_made(transport)

    client.data_received(StartupMessage({"user": "ada", "database": "shop"}).encode())
    client.connection_lost(None)
    await asyncio.sleep(0)
    del client
    gc.collect()

    assert [str(warning.message) for warning in recwarn] == []
