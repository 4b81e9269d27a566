"""Parameters of private statements: their types, the names of these, and values as text that means the same everywhere.

All of it is asked of the twin, which knows every type and reads every format.
"""

from typing import Final

from proxy.session.private_request import Parameters, PrivateRequest
from proxy.session.relay import Relay
from proxy.session.replies import Message, TwinRefusal, encoded, parse_under
from proxy.session.reports import moved, nowhere
from proxy.wire.backend import DataRow, ParameterDescription
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute
from rules.refusal import NotSupported

_CANON: Final = b"_ng_canon"
_TYPES: Final = b"_ng_types"
_OID_ARRAY_OID: Final = 1028
_MOST_PARAMETERS: Final = 1600  # columns of a row in PostgreSQL
_TYPES_SQL: Final = (
    b"SELECT pg_catalog.format_type(t, NULL) FROM pg_catalog.unnest($1) WITH ORDINALITY AS o(t, n) ORDER BY n"
)


class ParameterValues:
    """The parameters of one session's statements."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._type_names: dict[int, str] = {}  # as they are written under the search path
        self._search_path: tuple[str, ...] = ()

    def follow_search_path(self, search_path: tuple[str, ...]) -> None:
        """Forget the names of types where another search path may give them another meaning."""
        if search_path != self._search_path:
            self._type_names, self._search_path = {}, search_path

    async def types_of(self, name: bytes, *, sync: bool) -> tuple[int, ...]:
        """The types of a prepared statement's parameters."""
        ((parameters, *_),) = await self._relay.ask(Describe(STATEMENT, name), sync=sync)
        return ParameterDescription.decode(parameters.raw).types

    async def of(self, private_request: PrivateRequest, types: tuple[int, ...], *, sync: bool) -> Parameters:
        """The values as text that means the same in every session."""
        if len(types) > _MOST_PARAMETERS:
            raise NotSupported(f"more than {_MOST_PARAMETERS} parameters are not supported")
        names = await self.names_of(types, sync=sync)
        if private_request.bind is not None and (types or private_request.bind.portal):
            values = await self._canonical(_bound_canon(private_request.bind, types), sync=sync)
        elif types and private_request.bind is None:
            values = await self._canonical(self._written_canon(private_request.arguments, names), sync=sync)
        else:
            values = ()
        return Parameters(types, names, values)

    async def names_of(self, types: tuple[int, ...], *, sync: bool) -> tuple[str, ...]:
        """The names of types as they are written under the search path."""
        unknown = tuple(dict.fromkeys(oid for oid in types if oid not in self._type_names))
        if unknown:
            question = f"{{{','.join(map(str, unknown))}}}".encode()
            ask: list[Message] = [
                *parse_under(_TYPES, _TYPES_SQL, (_OID_ARRAY_OID,)),
                Bind(_TYPES, _TYPES, (), (question,)),
            ]
            replies = await self._relay.ask(
                *ask, Execute(_TYPES), Close(PORTAL, _TYPES), Close(STATEMENT, _TYPES), sync=sync
            )
            rows = [DataRow.decode(frame.raw).values[0] or b"" for frame in replies[3] if frame.kind == DataRow.kind]
            self._type_names.update(zip(unknown, (row.decode(self._relay.codec) for row in rows), strict=True))
        return tuple(self._type_names[oid] for oid in types)

    def _written_canon(self, arguments: tuple[str, ...], names: tuple[str, ...]) -> list[Message]:
        items = (
            f"pg_catalog.noisegate_canon(({argument})::{name})" for argument, name in zip(arguments, names, strict=True)
        )
        text = encoded(f"SELECT {', '.join(items)}", self._relay.codec)
        bind = Bind(_CANON, _CANON)
        return [*parse_under(_CANON, text), bind, Execute(_CANON), Close(PORTAL, _CANON), Close(STATEMENT, _CANON)]

    async def _canonical(self, messages: list[Message], *, sync: bool) -> tuple[str | None, ...]:
        try:
            replies = await self._relay.ask(*messages, sync=sync)
        except TwinRefusal as error:
            raise TwinRefusal(moved(error.raw, nowhere)) from None
        values = DataRow.decode(replies[3][0].raw).values
        return tuple(None if value is None else value.decode(self._relay.codec) for value in values)


def _bound_canon(bind: Bind, types: tuple[int, ...]) -> list[Message]:
    """The client's own values through canon, bound to its own portal: wrong values and a portal that exists already
    fail with PostgreSQL's own words."""
    items = ", ".join(f"pg_catalog.noisegate_canon(${number})" for number in range(1, len(types) + 1))
    values = Bind(bind.portal, _CANON, bind.parameter_formats, bind.parameters, ())
    text = f"SELECT {items}".encode()
    ends = Close(PORTAL, bind.portal), Close(STATEMENT, _CANON)
    return [*parse_under(_CANON, text, types), values, Execute(bind.portal), *ends]
