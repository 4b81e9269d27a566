"""Bytes in, cut anywhere; whole frames out. A length is checked before a byte of its body is awaited."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from proxy.wire.codec import HEADER, HEADER_SIZE, NoPacket, ProtocolViolation

_LENGTH_SIZE: Final = 4
LARGE: Final = 64 * 1024  # a larger frame is passed on piece by piece, and counted when it begins; a run is no longer


class Frame(NamedTuple):
    kind: bytes
    raw: bytes  # the whole message, header included: what a relay passes on


class FrameBuffer:
    """Bytes that one direction of one connection has sent and nobody has taken yet.

    Frames are cut straight from the chunk that the socket gave, and copied once. Only a frame that spans chunks
    goes through the second buffer, so that even a trickle of single bytes costs time and memory in proportion.
    """

    __slots__ = ("_at", "_chunk", "_later", "_most_run_bytes", "_rest", "_skips", "max_bytes")

    def __init__(self, max_bytes: int, *, most_run_bytes: int | None = None) -> None:
        self.max_bytes = max_bytes  # of a whole frame; may be raised when the peer has proved who it is
        self._most_run_bytes = most_run_bytes  # of a frame of a run, which need not be here as a whole
        self._skips = 0  # bytes of a frame that nobody wants, which are still to come
        self._rest = 0  # bytes of a frame of a run that are still to come
        self._chunk = b""
        self._at = 0
        self._later = bytearray()

    @property
    def pending(self) -> int:
        """Bytes that were fed and not taken."""
        return len(self._chunk) - self._at + len(self._later)

    @property
    def is_inside(self) -> bool:
        """Return whether a frame has been given in part."""
        return self._rest > 0

    @property
    def begun(self) -> tuple[bytes, int]:
        """Return the kind and the size of the frame that comes next, once its header is here."""
        if not self._holds(HEADER_SIZE):
            return b"", 0
        kind, length = HEADER.unpack_from(self._chunk, self._at)
        return kind, self._checked(length, self.max_bytes)

    def skip(self, size: int) -> None:
        """Let go of so many bytes, of which some may be still to come."""
        data = self._chunk[self._at :] + self._later
        self.clear()
        self._skips = size
        self.feed(data)

    def feed(self, data: bytes) -> None:
        if self._skips:
            skipped = min(self._skips, len(data))
            self._skips -= skipped
            data = data[skipped:]
        if self.pending:
            self._later += data
        else:
            self._chunk, self._at = data, 0

    def clear(self) -> None:
        """Let go of it all: whoever could take it is gone."""
        self._chunk, self._at, self._rest, self._skips = b"", 0, 0, 0
        self._later.clear()

    def frames(self) -> Iterator[Frame]:
        """All the whole frames that are there; one that is fed meanwhile too."""
        while (frame := self.next_frame()) is not None:
            yield frame

    def next_frame(self) -> Frame | None:
        """The next whole frame, or None when more bytes are needed."""
        if self._rest or (len(self._chunk) - self._at < HEADER_SIZE and not self._holds(HEADER_SIZE)):
            return None
        kind, length = HEADER.unpack_from(self._chunk, self._at)
        size = self._checked(length, self.max_bytes)
        if len(self._chunk) - self._at < size and not self._holds(size):
            return None
        return Frame(kind, self._cut(size))

    def next_run(self, kinds: frozenset[bytes]) -> bytes:
        """The whole frames of these kinds that come next, in one piece: a million rows are relayed without a look.

        Empty when the next frame is of another kind, or is not whole yet. A large one is given as it comes.
        """
        if self._rest:
            return self._more()
        if not self._holds(HEADER_SIZE):
            return b""
        start = end = self._at
        last = min(len(self._chunk), start + LARGE)
        most = self._most_run_bytes or self.max_bytes
        while last - end >= HEADER_SIZE:
            kind, length = HEADER.unpack_from(self._chunk, end)
            if kind not in kinds or last - end < (size := self._checked(length, most)):
                break
            end += size
        if end > start:
            return self._cut(end - start)
        return self._next_large(most) if self._chunk[start : start + 1] in kinds else b""

    def _next_large(self, most: int) -> bytes:
        """A frame that spans chunks, or its beginning."""
        size = self._checked(HEADER.unpack_from(self._chunk, self._at)[1], most)
        if self._holds(size):
            return self._cut(size)
        if self._most_run_bytes is None or size <= LARGE:
            return b""
        self._rest = size
        return self._more()

    def _more(self) -> bytes:
        """Return what is here of a frame that is given in part."""
        piece = self._cut(min(self._rest, len(self._chunk) - self._at))
        self._rest -= len(piece)
        return piece

    def next_startup(self, max_bytes: int) -> bytes | None:
        """The next packet of the time before login, which has a length and no kind; without its length."""
        if not self._holds(_LENGTH_SIZE):
            return None
        length = int.from_bytes(self._chunk[self._at : self._at + _LENGTH_SIZE], "big", signed=True)
        if not 2 * _LENGTH_SIZE <= length <= max_bytes:
            raise NoPacket("invalid length of startup packet")
        if not self._holds(length):
            return None
        return self._cut(length)[_LENGTH_SIZE:]

    def _checked(self, length: int, most: int) -> int:
        """The size of a frame from the length in its header."""
        if not _LENGTH_SIZE <= length < most:
            raise ProtocolViolation("invalid message length")
        return 1 + length

    def _holds(self, size: int) -> bool:
        """Return whether so many bytes are there; if so, they are in the chunk."""
        in_chunk = len(self._chunk) - self._at
        if in_chunk >= size:
            return True
        if in_chunk + len(self._later) < size:
            return False
        self._chunk = self._chunk[self._at :] + self._later
        self._at = 0
        self._later.clear()
        return True

    def _cut(self, size: int) -> bytes:
        end = self._at + size
        piece = self._chunk[self._at : end]
        if end == len(self._chunk):
            self._chunk, self._at = bytes(self._later), 0  # an idle connection holds no memory
            self._later.clear()
        else:
            self._at = end
        return piece
