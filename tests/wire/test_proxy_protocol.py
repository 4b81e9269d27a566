"""The header by which a load balancer says whose connection it passes on: read whole, or not believed."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.codec import ProtocolViolation
from proxy.wire.proxy_protocol import ProxyHeader

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"


def binary(command: int, family: int, rest: bytes) -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(rest)) + rest


V4 = socket.inet_aton("203.0.113.7") + socket.inet_aton("10.0.0.1") + struct.pack("!HH", 50000, 6543)
V6 = socket.inet_pton(socket.AF_INET6, "2001:db8::7") * 2 + struct.pack("!HH", 50000, 6543)
HEADERS = [
    (b"PROXY TCP4 203.0.113.7 10.0.0.1 50000 6543\r\n", "203.0.113.7"),
    (b"PROXY TCP6 2001:db8::7 2001:db8::1 50000 6543\r\n", "2001:db8::7"),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN ffff::1 ffff::1 65535 65535\r\n", None),
    (binary(0x21, 0x11, V4), "203.0.113.7"),
    (binary(0x21, 0x11, V4 + b"\x04\x00\x01x"), "203.0.113.7"),
    (binary(0x21, 0x21, V6), "2001:db8::7"),
    (binary(0x20, 0x00, b""), None),
]


@pytest.mark.parametrize(("header", "client"), HEADERS)
@given(cuts=st.lists(st.integers(1, 60), max_size=6), rest=st.binary(max_size=20))
def test_a_header_is_read_however_it_is_cut(header: bytes, client: str | None, cuts: list[int], rest: bytes) -> None:
    reader, begin = ProxyHeader(), 0
    for cut in sorted({cut for cut in cuts if cut < len(header)}):
        assert reader.feed(header[begin:cut]) is None
        begin = cut

    assert reader.feed(header[begin:] + rest) == (client, rest)


@pytest.mark.parametrize(
    "words",
    [
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        b"\x16\x03\x01\x02\x00",
        b"PROXY TCP4 203.0.113.7\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 50000\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 50000 x\r\n",
        b"PROXY TCP4 2001:db8::7 2001:db8::1 50000 6543\r\n",
        b"PROXY TCP4 203.0.113.999 10.0.0.1 50000 6543\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 50000 6543 " + b"x" * 80,
        b"PROXY UDP4 203.0.113.7 10.0.0.1 50000 6543\r\n",
        "PROXY TCP4 ２03.0.113.7 10.0.0.1 50000 6543\r\n".encode(),
        binary(0x22, 0x11, V4),
        binary(0x11, 0x11, V4),
        binary(0x21, 0x12, V4),
        binary(0x21, 0x31, b"/" * 216),
        binary(0x21, 0x21, V4),
        SIGNATURE + b"\x21\x11\xff\xff",
    ],
)
def test_what_is_no_header_ends_the_connection(words: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        ProxyHeader().feed(words)


@given(words=st.binary(max_size=300))
def test_no_bytes_are_taken_for_more_than_they_are(words: bytes) -> None:
    try:
        heard = ProxyHeader().feed(words)
    except ProtocolViolation:
        return
    if heard is not None:
        assert words.startswith((b"PROXY ", SIGNATURE))
        assert words.endswith(heard[1])
