"""Refuse what the real database's encoding has no letters for, before anything is charged."""

import re
from collections.abc import Iterator

from rules.encoding import find_codec, find_missing
from rules.kernel.replay import Kernel
from rules.mechanisms.release_plan import Block, Choice
from rules.refusal import NotSupported

_LITERAL = re.compile(r"'((?:[^']|'')*)'")


def check_encoding(block: Block, encoding: str, kernel: Kernel) -> None:
    """Refuse a block whose statements cannot be written there: what could not be sent would fail after the charge."""
    codec = find_codec(encoding) or "ascii"
    for sql in _statements(block, kernel):
        missing = find_missing(sql, codec)
        if missing is not None:
            unencodable = next((text for text in _literals(sql) if missing in text), missing)
            hint = (
                "No row can contain it. Remove it from the statement, or ask your DBA to remove it from the rules file."
            )
            message = f"'{unencodable}' has no equivalent in {encoding}, the encoding of the real database"
            raise NotSupported(message, hint=hint, about=unencodable)


def _statements(block: Block, kernel: Kernel) -> Iterator[str]:
    yield kernel.bounded(block.statement).sql
    if block.tally is not None:
        yield kernel.tally(block.tally).sql
    for measure in block.measures:
        if isinstance(measure, Choice):
            yield kernel.bounded(measure.statement).sql


def _literals(sql: str) -> Iterator[str]:
    return (match[1].replace("''", "'") for match in _LITERAL.finditer(sql))
