"""HAProxy's PROXY protocol, versions 1 and 2: the words in front of a connection by which a gateway says whose it is.

https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt; sections 2.1 and 2.2.
"""

import socket
import struct
from ipaddress import ip_address
from typing import Final

from proxy.wire.codec import ProtocolViolation

_LONGEST_LINE: Final = 107  # of version 1, with its end
_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_FIXED: Final = struct.Struct("!12sBBH")  # signature, version and command, family and transport, length of the rest
_LONGEST_REST: Final = 4096  # addresses, and what else the gateway says, which is passed over
_LOCAL, _PROXIED = 0x20, 0x21  # version 2, and who speaks: the gateway itself, or a client through it
_FAMILIES: Final = {0x11: (socket.AF_INET, 4, 12), 0x21: (socket.AF_INET6, 16, 36)}  # TCP; sizes of address and of all


class ProxyHeader:
    """Takes the bytes of a connection until the header is whole."""

    def __init__(self) -> None:
        self._bytes = b""

    def feed(self, data: bytes) -> tuple[str | None, bytes] | None:
        """The client's address (None: the gateway speaks for itself) and what follows the header; None: more is needed.

        A connection without a header, or with one that cannot be read, is none that may be believed.
        """
        self._bytes += data
        if _starts(self._bytes, _SIGNATURE):
            return self._binary()
        if _starts(self._bytes, b"PROXY "):
            return self._line()
        raise ProtocolViolation("a gateway's connection did not begin with the PROXY protocol")

    def _line(self) -> tuple[str | None, bytes] | None:
        line, end, rest = self._bytes.partition(b"\r\n")
        if not end and len(line) < _LONGEST_LINE:
            return None
        if not end or len(line) + len(end) > _LONGEST_LINE:
            raise ProtocolViolation("the header of the PROXY protocol is too long")
        words = line.split(b" ")
        if words[1] == b"UNKNOWN":
            return None, rest
        versions = {b"TCP4": 4, b"TCP6": 6}
        try:
            _, family, source, target, *ports = words
            addresses = [ip_address(part.decode("ascii")) for part in (source, target)]
            numbers = [int(port) for port in ports if port.isdigit()]
            if (
                {address.version for address in addresses} != {versions[family]}
                or len(numbers) != len(ports)
                or len(ports) != 2
            ):
                raise ValueError
        except (ValueError, KeyError):
            raise ProtocolViolation("the header of the PROXY protocol cannot be read") from None
        return str(addresses[0]), rest

    def _binary(self) -> tuple[str | None, bytes] | None:
        if len(self._bytes) < _FIXED.size:
            return None
        _, command, family, length = _FIXED.unpack_from(self._bytes)
        if length > _LONGEST_REST:
            raise ProtocolViolation("the header of the PROXY protocol is too long")
        end = _FIXED.size + length
        if len(self._bytes) < end:
            return None
        rest = self._bytes[end:]
        if command == _LOCAL:
            return None, rest
        if command != _PROXIED or family not in _FAMILIES or length < _FAMILIES[family][2]:
            raise ProtocolViolation("the header of the PROXY protocol cannot be read")
        kind, size, _ = _FAMILIES[family]
        return socket.inet_ntop(kind, self._bytes[_FIXED.size : _FIXED.size + size]), rest


def _starts(data: bytes, beginning: bytes) -> bool:
    """Return whether it does, as far as it is here."""
    return data[: len(beginning)] == beginning[: len(data)]
