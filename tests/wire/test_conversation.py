"""The conversation up to a login, in every order that a client could think of."""

import secrets
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scramp import ScramClient

from proxy.wire.authentication import AuthenticationSASL, NegotiateProtocolVersion, ScramExchange
from proxy.wire.buffer import FrameBuffer
from proxy.wire.codec import ProtocolViolation
from proxy.wire.conversation import (
    MAX_LOGIN_BYTES,
    Cancel,
    Conversation,
    Event,
    Identified,
    Left,
    LoggedIn,
    Send,
    StartTls,
)
from proxy.wire.frontend import Query, SASLInitialResponse, SASLResponse, Sync, Terminate
from proxy.wire.scram import PLAIN, PLUS, BadPassword, Verifier
from proxy.wire.startup import CancelRequest, GSSENCRequest, LoginRefused, SSLRequest, StartupMessage
from tests.wire.messages import BackendMessage, decode_backend
from tests.wire.strategies import cut

ADA, STRANGER = (Verifier.of_password(word, bytes(16)) for word in ("rosebud", secrets.token_hex()))
END_POINT = bytes(32)
HELLO = b"\x16\x03\x01 and so on"


class Caller:
    """A client: sends bytes, reads replies, keeps what happened."""

    def __init__(self, *, has_tls: bool = False, needs_tls: bool = False) -> None:
        self.conversation = Conversation(has_tls=has_tls, needs_tls=needs_tls)
        self.events: list[Event] = []
        self.ended: Exception | None = None

    def say(self, *pieces: bytes) -> list[Event]:
        before = len(self.events)
        try:
            for piece in pieces:
                for event in self.conversation.receive(piece):
                    self._note(event)
        except (ProtocolViolation, LoginRefused) as error:
            self.ended = error
        return self.events[before:]

    def _note(self, event: Event) -> None:
        if isinstance(event, Identified):
            verifier = ADA if event.startup.user == "ada" else STRANGER
            exchange = ScramExchange(event.startup.user, (verifier, STRANGER), self.conversation.end_point)
            for following in self.conversation.begin(exchange):
                self.events.append(following)
        else:
            self.events.append(event)

    def ask(self, *pieces: bytes) -> list[BackendMessage]:
        """Say, and read the messages of the reply."""
        replies = FrameBuffer(10_000)
        replies.feed(b"".join(event.data for event in self.say(*pieces) if isinstance(event, Send)))
        return [decode_backend(frame.raw) for frame in replies.frames()]

    def log_in(
        self, user: str = "ada", password: str = "rosebud", mechanism: bytes = PLAIN, *, minor: int = 0
    ) -> list[Event]:
        self.say(StartupMessage({"user": user, "database": "shop"}, minor).encode())
        binding = ("tls-server-end-point", END_POINT) if mechanism == PLUS else None
        scram = ScramClient([mechanism.decode()], "x", password, channel_binding=binding)
        words = scram.get_client_first().encode()
        (answer,) = self.ask(SASLInitialResponse(mechanism, words).encode())
        scram.set_server_first(answer.data.decode())  # type: ignore[union-attr]
        return self.say(SASLResponse(scram.get_client_final().encode()).encode())


def test_the_right_password_logs_in() -> None:
    last = Caller().log_in()

    assert [type(event) for event in last] == [Send, LoggedIn]


def test_over_tls_channel_binding_is_offered_first_and_works() -> None:
    caller = Caller(has_tls=True, needs_tls=True)

    assert caller.say(SSLRequest().encode()) == [StartTls()]
    caller.conversation.secured(END_POINT)
    last = caller.log_in(mechanism=PLUS)

    assert isinstance(last[-1], LoggedIn)
    offer = next(event for event in caller.events if isinstance(event, Send))
    assert AuthenticationSASL.decode(offer.data).mechanisms == (PLUS, PLAIN)


def test_a_client_may_begin_with_the_handshake_if_it_names_postgresql() -> None:
    named, unnamed = Caller(has_tls=True, needs_tls=True), Caller(has_tls=True)

    assert named.say(HELLO) == [StartTls(beginning=HELLO)]
    named.conversation.secured(END_POINT, "postgresql")
    assert isinstance(named.log_in(mechanism=PLUS)[-1], LoggedIn)
    assert unnamed.say(HELLO) == [StartTls(beginning=HELLO)]
    for protocol in (None, "h2"):
        with pytest.raises(ProtocolViolation):
            unnamed.conversation.secured(END_POINT, protocol)


@pytest.mark.parametrize("before", [GSSENCRequest().encode(), b"\0"])
def test_a_handshake_is_the_first_thing_that_a_client_says_or_none(before: bytes) -> None:
    caller = Caller(has_tls=True)

    assert StartTls(beginning=HELLO) not in caller.say(before, HELLO)

    assert isinstance(caller.ended, ProtocolViolation)


def test_a_wrong_password_and_an_unknown_user_end_alike() -> None:
    wrong, unknown = Caller(), Caller()

    wrong.log_in(password="raspberry")
    unknown.log_in(user="eve")

    assert isinstance(wrong.ended, BadPassword)
    assert isinstance(unknown.ended, BadPassword)
    assert str(wrong.ended).replace("ada", "eve") == str(unknown.ended)
    assert [type(event) for event in wrong.events] == [type(event) for event in unknown.events]


def test_bytes_in_clear_behind_a_request_for_tls_end_the_conversation_before_the_handshake() -> None:
    injected = StartupMessage({"user": "ada"}).encode()
    together, after = Caller(has_tls=True), Caller(has_tls=True)

    assert together.say(SSLRequest().encode() + injected) == []
    after.say(SSLRequest().encode(), injected)

    assert isinstance(together.ended, ProtocolViolation)
    assert isinstance(after.ended, ProtocolViolation)


def test_encryption_that_we_do_not_have_is_declined_and_the_client_may_go_on() -> None:
    caller = Caller()

    assert caller.say(GSSENCRequest().encode() + SSLRequest().encode()) == [Send(b"N"), Send(b"N")]
    assert isinstance(caller.log_in()[-1], LoggedIn)


@pytest.mark.parametrize("request_", [SSLRequest(), GSSENCRequest()])
def test_encryption_is_asked_for_once(request_: SSLRequest | GSSENCRequest) -> None:
    caller = Caller()

    caller.say(request_.encode(), request_.encode())

    assert isinstance(caller.ended, ProtocolViolation)


def test_a_startup_in_clear_is_refused_where_tls_is_needed() -> None:
    caller = Caller(has_tls=True, needs_tls=True)

    caller.say(StartupMessage({"user": "ada"}).encode())

    assert isinstance(caller.ended, LoginRefused)
    assert "TLS" in caller.ended.message


def test_a_cancel_request_needs_no_login_with_tls_or_without() -> None:
    request = CancelRequest(7, b"four")
    plain, secure = Caller(), Caller(has_tls=True, needs_tls=True)

    assert plain.say(request.encode()) == [Cancel(request)]
    secure.say(SSLRequest().encode())
    secure.conversation.secured(None)
    assert secure.say(request.encode()) == [Cancel(request)]


def test_nothing_follows_a_cancel_request() -> None:
    caller = Caller()

    caller.say(CancelRequest(7, b"four").encode() + StartupMessage({"user": "ada"}).encode())

    assert len(caller.events) == 1


def test_a_newer_version_and_unknown_options_are_negotiated_in_front_of_the_request_for_a_password() -> None:
    caller = Caller()

    replies = caller.ask(StartupMessage({"user": "ada"}, 9999, {"_pq_.shiny": "on"}).encode())

    assert replies == [NegotiateProtocolVersion(2, (b"_pq_.shiny",)), AuthenticationSASL((PLAIN,))]


def test_an_older_version_is_kept_where_only_options_are_unknown() -> None:
    replies = Caller().ask(StartupMessage({"user": "ada"}, 0, {"_pq_.shiny": "on"}).encode())

    assert replies[0] == NegotiateProtocolVersion(0, (b"_pq_.shiny",))


@pytest.mark.parametrize("message", [Query(b"select 1"), Sync(), SASLInitialResponse(PLAIN, None)])
def test_nothing_but_proof_is_heard_before_the_login(message: Query | Sync | SASLInitialResponse) -> None:
    caller = Caller()

    caller.say(StartupMessage({"user": "ada"}).encode(), message.encode())

    assert isinstance(caller.ended, ProtocolViolation)


def test_a_client_may_leave_while_it_is_asked_for_its_password() -> None:
    caller = Caller()

    assert caller.say(StartupMessage({"user": "ada"}).encode(), Terminate().encode())[-1] == Left()


def test_a_long_message_before_the_login_is_refused_from_its_header() -> None:
    caller = Caller()

    caller.say(StartupMessage({"user": "ada"}).encode(), b"p" + MAX_LOGIN_BYTES.to_bytes(4, "big"))

    assert isinstance(caller.ended, ProtocolViolation)


def test_what_follows_the_proof_is_kept_for_the_session() -> None:
    caller = Caller()
    caller.log_in()

    caller.say(Query(b"select 1").encode())

    frame = caller.conversation.buffer.next_frame()
    assert frame is not None
    assert frame.raw == Query(b"select 1").encode()


@given(garbage=st.binary(max_size=200), has_tls=st.booleans(), data=st.data())
def test_garbage_never_logs_in_and_never_crashes(garbage: bytes, has_tls: bool, data: st.DataObject) -> None:
    caller = Caller(has_tls=has_tls)

    caller.say(*data.draw(cut(garbage)))

    assert not any(isinstance(event, LoggedIn) for event in caller.events)


class AnyOrder(RuleBasedStateMachine):
    """Messages in any order, cut anywhere: only the right proof in the right place logs in."""

    @initialize(has_tls=st.booleans(), needs_tls=st.booleans())
    def begin(self, has_tls: bool, needs_tls: bool) -> None:
        self.caller = Caller(has_tls=has_tls, needs_tls=needs_tls)
        self.needs_tls = needs_tls
        self.is_secure = False
        self.started = 0
        self.proved = False
        self.is_right = False
        self.scram: ScramClient | None = None

    def say(self, data: bytes, ends: Iterable[int] = ()) -> list[Event]:
        if self.caller.ended is not None or any(isinstance(event, Cancel | Left) for event in self.caller.events):
            return []  # the socket is closed by now
        cuts = sorted({min(end, len(data)) for end in ends})
        pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        return self.caller.say(*pieces)

    @rule(ends=st.lists(st.integers(0, 100), max_size=3))
    def start(self, ends: list[int]) -> None:
        was_refused = self.caller.ended is not None
        events = self.say(StartupMessage({"user": "ada"}).encode(), ends)
        if events and isinstance(events[0], Send) and not was_refused:
            self.started += 1
            assert self.is_secure or not self.needs_tls

    @rule(request=st.sampled_from([SSLRequest(), GSSENCRequest()]))
    def encrypt(self, request: SSLRequest | GSSENCRequest) -> None:
        if StartTls() in self.say(request.encode()):
            assert not self.is_secure
            self.caller.conversation.secured(END_POINT)
            self.is_secure = True

    @rule(mechanism=st.sampled_from([PLAIN, PLUS]), password=st.sampled_from(["rosebud", "raspberry"]))
    def first_words(self, mechanism: bytes, password: str) -> None:
        binding = ("tls-server-end-point", END_POINT) if mechanism == PLUS else None
        scram = ScramClient([mechanism.decode()], "x", password, channel_binding=binding)
        words = SASLInitialResponse(mechanism, scram.get_client_first().encode())
        events = self.say(words.encode())
        if events and isinstance(events[0], Send) and self.scram is None:
            self.scram, self.is_right = scram, password == "rosebud"
            scram.set_server_first(events[0].data[9:].decode())

    @precondition(lambda self: self.scram is not None)
    @rule()
    def prove(self) -> None:
        assert self.scram is not None
        if not self.proved:
            self.proved = True
            proof = SASLResponse(self.scram.get_client_final().encode())
            events = self.say(proof.encode())
            logged_in = any(isinstance(event, LoggedIn) for event in events)
            assert not logged_in or self.is_right

    @rule(message=st.sampled_from([Query(b"select 1"), Sync(), Terminate(), SASLResponse(b"c=biws,r=x,p=AAAA")]))
    def something_else(self, message: Query | Sync | Terminate | SASLResponse) -> None:
        self.say(message.encode())

    @rule(garbage=st.binary(max_size=20))
    def garbage(self, garbage: bytes) -> None:
        self.say(garbage)

    @invariant()
    def nobody_is_in_without_the_right_proof(self) -> None:
        logins = sum(isinstance(event, LoggedIn) for event in self.caller.events)
        assert logins <= int(self.proved and self.is_right)
        assert logins <= self.started <= 1


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)
