"""The packets before login."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import codec
from proxy.wire.codec import ProtocolViolation
from proxy.wire.startup import (
    CancelRequest,
    GSSENCRequest,
    LoginRefused,
    SSLRequest,
    StartupMessage,
    StartupPacket,
    decode_startup,
)

_texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=10)
_names = _texts.filter(bool).filter(lambda name: name not in ("user", "replication") and not name.startswith("_pq_."))
startup_messages = st.builds(
    lambda user, parameters, minor, options: StartupMessage({"user": user} | parameters, minor, options),
    _texts.filter(bool),
    st.dictionaries(_names, _texts, max_size=5),
    st.integers(0, 2**16 - 1),
    st.dictionaries(_texts.map(lambda name: f"_pq_.{name}"), _texts, max_size=3),
)
packets: st.SearchStrategy[StartupPacket] = st.one_of(
    startup_messages,
    st.sampled_from([SSLRequest(), GSSENCRequest()]),
    st.builds(CancelRequest, st.integers(-(2**31), 2**31 - 1), st.binary(min_size=4, max_size=256)),
)


def startup(*pairs: bytes, version: int = 3 << 16) -> bytes:
    return codec.int32(version) + b"".join(text + b"\0" for text in pairs) + b"\0"


@given(packet=packets)
def test_every_first_packet_is_understood(packet: StartupPacket) -> None:
    assert decode_startup(packet.encode()[4:]) == packet


@given(garbage=st.binary(max_size=100) | st.binary(max_size=60).map(lambda body: codec.int32(3 << 16) + body))
def test_garbage_is_a_packet_or_is_refused(garbage: bytes) -> None:
    try:
        decode_startup(garbage)
    except (ProtocolViolation, LoginRefused):
        return


@pytest.mark.parametrize(
    "packet",
    [
        startup(b"user", b"ada", b"user", b"eve"),
        startup(b"user", b"ada", b"search_path", b"a", b"search_path", b"b"),
        startup(b"user", b"ada") + b"more",
        startup(b"user", b"ada")[:-1],
        startup(b"user"),
        startup(b"user", b"\xff"),
        codec.int32(SSLRequest.code) + b"x",
        codec.int32(CancelRequest.code) + codec.int32(1) + bytes(3),
        codec.int32(CancelRequest.code) + codec.int32(1) + bytes(257),
    ],
)
def test_what_could_be_read_in_two_ways_is_a_violation(packet: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        decode_startup(packet)


@pytest.mark.parametrize(
    ("packet", "sqlstate"),
    [
        (startup(), "28000"),
        (startup(b"user", b""), "28000"),
        (startup(b"user", b"ada", b"replication", b"database"), "42501"),
        (startup(b"user", b"ada", b"replication", b"TRUE"), "42501"),
        (startup(b"user", b"ada", version=2 << 16), "0A000"),
        (startup(b"user", b"ada", version=4 << 16), "0A000"),
    ],
)
def test_what_is_understood_but_not_offered_says_why(packet: bytes, sqlstate: str) -> None:
    with pytest.raises(LoginRefused) as caught:
        decode_startup(packet)
    assert caught.value.sqlstate == sqlstate


def test_a_session_gets_the_settings_and_the_user_is_the_default_database() -> None:
    packet = startup(b"user", b"ada", b"replication", b"off", b"options", b"-c a=b", b"_pq_.x", b"1")

    message = decode_startup(packet)

    assert isinstance(message, StartupMessage)
    assert (message.user, message.database) == ("ada", "ada")
    assert message.settings == {"options": "-c a=b"}
    assert message.protocol_options == {"_pq_.x": "1"}


@pytest.mark.parametrize(
    ("asked", "agreed", "negotiated"), [(0, 0, False), (2, 2, False), (3, 2, True), (9999, 2, True)]
)
def test_a_newer_minor_version_is_answered_with_ours(asked: int, agreed: int, *, negotiated: bool) -> None:
    message = decode_startup(startup(b"user", b"ada", version=3 << 16 | asked))

    assert isinstance(message, StartupMessage)
    assert (message.agreed_minor, message.needs_negotiation) == (agreed, negotiated)
