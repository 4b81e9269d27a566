"""Try what stands around a private query before anything is paid: options of COPY, the name of a cursor, formats.

PostgreSQL looks at them when it runs the statement, so they are tried with a query of the same columns without values.
"""

from typing import Final

from proxy.session.errors import moved, nowhere
from proxy.session.private_request import ParameterValues, PrivateRequest
from proxy.session.relay import Relay
from proxy.session.replies import Message, TwinRefusal, encoded, parse_under
from proxy.twin.steps import quoted
from proxy.wire.backend import Field
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Execute
from rules.sql.statement import Kind

_REHEARSED: Final = b"_ng_rehearsed"
_BINARY: Final = 1


class Rehearsal:
    """Tries the statements of one session."""

    def __init__(self, relay: Relay, values: ParameterValues) -> None:
        self._relay, self._values = relay, values
        self._sent_binary: set[int] = set()  # types that have a binary form

    async def of(self, private_request: PrivateRequest, columns: tuple[Field, ...], *, sync: bool) -> None:
        """Raise a TwinRefusal where the twin would refuse what stands around the query."""
        kind, around = private_request.statement.kind, private_request.around
        formats = private_request.result_formats
        wanted = [each.type for place, each in enumerate(columns) if _format_of(place, formats) == _BINARY]
        is_new = not self._sent_binary.issuperset(wanted)
        if around is None or not (is_new or kind in (Kind.COPY_OUT, Kind.DECLARE)):
            return
        types = await self._values.names_of(tuple((column.type, column.modifier) for column in columns), sync=sync)
        names = [column.name.decode(self._relay.codec) for column in columns]
        items = ", ".join(f"NULL::{written} AS {quoted(name)}" for written, name in zip(types, names, strict=True))
        messages = self._run(around.put(f"SELECT {items}"), formats)
        if kind is Kind.DECLARE:
            messages += self._run(f"CLOSE {quoted(private_request.statement.name or '')}")
        try:
            await self._relay.ask(*messages, sync=sync)
        except TwinRefusal as error:
            raise TwinRefusal(moved(self._relay.guarded(error.raw), nowhere)) from None
        self._sent_binary.update(wanted)

    def _run(self, text: str, formats: tuple[int, ...] = ()) -> list[Message]:
        parse = parse_under(_REHEARSED, encoded(text, self._relay.codec))
        ends = Execute(_REHEARSED), Close(PORTAL, _REHEARSED), Close(STATEMENT, _REHEARSED)
        return [*parse, Bind(_REHEARSED, _REHEARSED, (), (), formats), *ends]


def _format_of(place: int, formats: tuple[int, ...]) -> int:
    """One format is that of all columns."""
    return formats[place] if len(formats) > 1 else next(iter(formats), 0)
