"""Messages in both roles: what is written is read, and what lies is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import codec
from proxy.wire.backend import BackendKeyData, DataRow, ErrorResponse, RowDescription
from proxy.wire.buffer import FrameBuffer
from proxy.wire.codec import ProtocolViolation
from proxy.wire.frontend import Bind, CopyData, Parse, PasswordMessage, SASLInitialResponse, SASLResponse
from tests.wire.messages import FRONTEND, BackendMessage, FrontendMessage, decode_backend, decode_frontend
from tests.wire.strategies import backend_messages, cut, frontend_messages, texts, values


@given(sent=st.lists(frontend_messages, max_size=6), data=st.data())
def test_what_a_client_says_is_understood_however_its_bytes_are_cut(
    sent: list[FrontendMessage], data: st.DataObject
) -> None:
    buffer = FrameBuffer(10_000)
    received = []

    for piece in data.draw(cut(b"".join(message.encode() for message in sent))):
        buffer.feed(piece)
        received += [decode_frontend(frame.raw) for frame in buffer.frames()]

    assert received == sent
    assert buffer.pending == 0


@given(sent=st.lists(backend_messages, max_size=6), data=st.data())
def test_what_a_server_says_is_understood_however_its_bytes_are_cut(
    sent: list[BackendMessage], data: st.DataObject
) -> None:
    buffer = FrameBuffer(10_000)
    received = []

    for piece in data.draw(cut(b"".join(message.encode() for message in sent))):
        buffer.feed(piece)
        received += [decode_backend(frame.raw) for frame in buffer.frames()]

    assert received == sent


@given(mechanism=texts, data=values, password=texts)
def test_what_proves_a_client_is_understood(mechanism: bytes, data: bytes | None, password: bytes) -> None:
    initial = SASLInitialResponse(mechanism, data)

    assert SASLInitialResponse.decode(initial.encode()) == initial
    assert PasswordMessage.decode(PasswordMessage(password).encode()).password == password


@given(kind=st.sampled_from(sorted(FRONTEND)), body=st.binary(max_size=60))
def test_a_body_of_garbage_from_a_client_is_a_message_or_a_violation_and_never_anything_else(
    kind: bytes, body: bytes
) -> None:
    raw = codec.frame(kind, body)
    try:
        message = decode_frontend(raw)
    except ProtocolViolation:
        return
    assert message.encode() == raw


@given(kind=st.binary(min_size=1, max_size=1), body=st.binary(max_size=60))
def test_a_body_of_garbage_from_a_server_is_a_message_or_a_violation_and_never_anything_else(
    kind: bytes, body: bytes
) -> None:
    raw = codec.frame(kind, body)
    try:
        message = decode_backend(raw)
    except ProtocolViolation:
        return
    assert message.encode() == raw


@given(message=frontend_messages, extra=st.binary(min_size=1, max_size=5))
def test_bytes_behind_the_end_of_a_message_are_a_violation(message: FrontendMessage, extra: bytes) -> None:
    if isinstance(message, CopyData | SASLResponse):
        return  # all bytes are its own
    raw = message.encode()

    with pytest.raises(ProtocolViolation):
        decode_frontend(codec.frame(raw[:1], raw[5:], extra))


@given(message=frontend_messages, data=st.data())
def test_a_message_that_stops_early_is_a_violation(message: FrontendMessage, data: st.DataObject) -> None:
    if isinstance(message, CopyData | SASLResponse):
        return
    raw = message.encode()
    if len(raw) == codec.HEADER_SIZE:
        return
    end = data.draw(st.integers(codec.HEADER_SIZE, len(raw) - 1))

    with pytest.raises(ProtocolViolation):
        decode_frontend(codec.frame(raw[:1], raw[codec.HEADER_SIZE : end]))


def test_a_count_that_lies_is_refused_before_anything_is_made_for_it() -> None:
    many_nulls = codec.uint16(65_535) + b"\xff" * 40

    for kind in (b"P", b"B"):
        with pytest.raises(ProtocolViolation):
            decode_frontend(codec.frame(kind, b"\0\0", many_nulls))
    with pytest.raises(ProtocolViolation):
        DataRow.decode(codec.frame(b"D", many_nulls))
    with pytest.raises(ProtocolViolation):
        RowDescription.decode(codec.frame(b"T", many_nulls))


def test_a_length_below_null_is_no_value() -> None:
    with pytest.raises(ProtocolViolation):
        DataRow.decode(codec.frame(b"D", codec.uint16(1), codec.int32(-2)))


def test_65535_parameters_are_understood() -> None:
    message = Bind(b"", b"", (1,), (b"x",) * 65_535)

    assert Bind.decode(message.encode()) == message
    assert Parse.decode(Parse(b"", b"", (23,) * 65_535).encode()).types == (23,) * 65_535


def test_formats_that_do_not_match_the_parameters_are_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        Bind.decode(Bind(b"", b"", (0, 1), (b"x",)).encode())


def test_the_format_of_a_parameter_follows_from_none_one_or_as_many_codes() -> None:
    parameters = (b"x", b"y")

    assert [Bind(b"", b"", (), parameters).format_of(n) for n in (0, 1)] == [0, 0]
    assert [Bind(b"", b"", (1,), parameters).format_of(n) for n in (0, 1)] == [1, 1]
    assert [Bind(b"", b"", (0, 1), parameters).format_of(n) for n in (0, 1)] == [0, 1]


def test_a_nul_inside_a_text_is_never_written() -> None:
    with pytest.raises(ValueError, match="NUL"):
        Parse(b"", b"select 1\0; select 2").encode()


def test_a_nul_inside_sql_is_a_violation_and_no_end() -> None:
    with pytest.raises(ProtocolViolation):
        decode_frontend(codec.frame(b"Q", b"select 1\0; select 2\0"))


def test_a_field_of_an_error_stands_once() -> None:
    with pytest.raises(ProtocolViolation):
        ErrorResponse.decode(codec.frame(b"E", b"Ma\0Mb\0\0"))


@pytest.mark.parametrize("size", [0, 3, 257])
def test_a_cancel_key_has_4_to_256_bytes(size: int) -> None:
    with pytest.raises(ProtocolViolation):
        BackendKeyData.decode(BackendKeyData(1, bytes(size)).encode())
