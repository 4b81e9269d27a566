"""Readings that are at hand: the texts that drivers and tools send again and again are read once."""

from collections import OrderedDict
from typing import Final

from rules.sql.statement import Reading

MOST_BYTES: Final = 4 * 1024 * 1024  # of texts and what is known of them, in the whole proxy
STATEMENT_BYTES: Final = 512  # that a statement takes besides its text
LONGEST_BYTES: Final = 16 * 1024  # a longer text is not likely to come again


class StatementCache:
    """The most recently used readings, by the bytes of their text. What a text says depends on no rule."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._kept: OrderedDict[tuple[str, bytes], Reading] = OrderedDict()
        self._most_bytes = most_bytes
        self._bytes = 0

    def find(self, codec: str, text: bytes) -> Reading | None:
        key = codec, text
        reading = self._kept.get(key)
        if reading is not None:
            self._kept.move_to_end(key)
        return reading

    def keep(self, codec: str, text: bytes, reading: Reading) -> None:
        if len(text) > LONGEST_BYTES or (codec, text) in self._kept:
            return
        self._kept[codec, text] = reading
        self._bytes += _size(text, reading)
        while self._bytes > self._most_bytes:
            (_, oldest), forgotten = self._kept.popitem(last=False)
            self._bytes -= _size(oldest, forgotten)


def _size(text: bytes, reading: Reading) -> int:
    return len(text) + STATEMENT_BYTES * len(reading.statements)
