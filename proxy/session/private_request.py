"""A private statement on its way through a session: what is asked, its parameters, and what is at hand at its end.

The twin knows every type and reads every format, so it says the types of parameters, the names of these, and what the
values are as text that means the same everywhere.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from proxy.session.classify import HIDDEN_SETTING, WITHOUT_VALUES
from proxy.session.errors import moved, nowhere
from proxy.session.literals import text_array, typed_literal
from proxy.session.prepared_statements import PreparedStatements
from proxy.session.relay import Relay
from proxy.session.replies import Message, TwinRefusal, encoded, parse_under
from proxy.session.twin_probe import TEXT_ARRAY_OID, SessionState
from proxy.twin.embedded import SHOWN_BYTES
from proxy.twin.steps import literal, quoted
from proxy.wire.backend import DataRow, Field, ParameterDescription
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute
from rules.functions.function import LiteralSettings
from rules.kept import KeptByIdentity
from rules.mechanisms.noised_outputs import Text
from rules.planner.plan import Plan
from rules.refusal import Misfit, NotSupported, TooMany
from rules.sql.session_settings import AnalystSettings, SettingLimits, read_settings
from rules.sql.statement import EnclosedQuery, Kind, Statement, split_around

OUTER: Final = b"_ng_outer"

_CANON: Final = b"_ng_canon"
_TYPES: Final = b"_ng_types"
_OID_ARRAY_OID: Final = 1028
_INT4_ARRAY_OID: Final = 1007
_NO_MODIFIER: Final = -1
_BINARY: Final = 1
_REHEARSED: Final = b"_ng_rehearsed"
_SET: Final = b"_ng_set"
_SET_SQL: Final = (
    b"SELECT pg_catalog.set_config('TimeZone', ($1)[1], true), pg_catalog.set_config('DateStyle', ($1)[2], true), "
    b"pg_catalog.set_config('IntervalStyle', ($1)[3], true)"
)
_COMMENT_MARK: Final = re.compile(r"/(?=\*)|(?<=\*)/")
_MOST_PARAMETERS: Final = 1600  # columns of a row in PostgreSQL
_MOST_VALUE_BYTES: Final = 4 * 1024 * 1024
TOO_LARGE_VALUES: Final = TooMany(
    "the parameters of a statement over protected tables have more than 4 MiB", hint="Pass fewer or shorter values."
)
_TYPES_SQL: Final = (
    b"SELECT pg_catalog.format_type(t, m) FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) "
    b"WITH ORDINALITY AS o(t, m, n) ORDER BY n"
)


@dataclass(frozen=True, slots=True)
class PrivateRequest:
    """A statement that may read a protected table."""

    statement: Statement
    around: EnclosedQuery | None  # None: it has no query that could be planned
    place: int | None = None  # characters before the query in what the client sent; None where it is not written there
    name: bytes | None = None  # under which the twin has parsed it; None: it has not
    types: tuple[int, ...] = ()  # of its parameters, as far as the client has declared them
    bind: Bind | None = None  # its values in the extended protocol
    result_formats: tuple[int, ...] = ()  # of a Bind whose columns are those of the query
    arguments: tuple[str, ...] = ()  # its values in EXECUTE, as expressions
    explains: bytes | None = None  # the prepared statement that EXPLAIN EXECUTE names: it knows the types
    literals: LiteralSettings | None = None  # that it was prepared under; None: it is parsed now

    def fits(self, types: tuple[int, ...], columns: tuple[Field, ...]) -> bool:
        """Return whether there are as many values as parameters; if not, the twin says so in its own words.

        It would look at the formats of columns only after it has looked at privileges, so that is done here.
        """
        if self.bind is not None:
            if sum(len(value or b"") for value in self.bind.parameters) > _MOST_VALUE_BYTES:
                raise TOO_LARGE_VALUES
            fits = len(self.bind.parameters) == len(types)
        elif types and self.statement.generic_plan and self.explains is None:
            raise WITHOUT_VALUES
        else:  # EXECUTE ignores values where there are no parameters
            fits = not types or len(self.arguments) == len(types)
        formats = self.result_formats
        if fits and len(formats) not in (0, 1, len(columns)):
            raise Misfit(f"bind message has {len(formats)} result formats but query has {len(columns)} columns")
        if fits and (unknown := [code for code in formats if code not in (0, 1)]):
            raise Misfit(f"unsupported format code: {unknown[0]}")
        return fits


@dataclass(frozen=True, slots=True)
class Parameters:
    """The values of $1, $2 …: what they are and, for the planner, their canonical text."""

    types: tuple[int, ...] = ()
    type_names: tuple[str, ...] = ()
    values: tuple[Text, ...] = ()


class ParameterValues:
    """The parameters of one session's statements."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._type_names: dict[tuple[int, int], str] = {}  # as they are written under the search path
        self._search_path: tuple[str, ...] = ()
        self._sent_binary: set[int] = set()  # types that have a binary form

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
        names = await self.names_of(tuple((oid, _NO_MODIFIER) for oid in types), sync=sync)
        if private_request.bind is not None and (types or private_request.bind.portal):
            values = await self._canonical(_bound_canon(private_request.bind, types), sync=sync)
        elif types and private_request.bind is None:
            values = await self._canonical(self._written_canon(private_request.arguments, names), sync=sync)
        else:
            values = ()
        return Parameters(types, names, values)

    async def names_of(self, types: tuple[tuple[int, int], ...], *, sync: bool) -> tuple[str, ...]:
        """The names of types, by OID and modifier, as they are written under the search path.

        Without a modifier a character is of one letter in SQL, and a bpchar of as many as there are.
        """
        unknown = tuple(dict.fromkeys(each for each in types if each not in self._type_names))
        if unknown:
            questions = tuple(f"{{{','.join(map(str, part))}}}".encode() for part in zip(*unknown, strict=True))
            ask: list[Message] = [
                *parse_under(_TYPES, _TYPES_SQL, (_OID_ARRAY_OID, _INT4_ARRAY_OID)),
                Bind(_TYPES, _TYPES, (), questions),
            ]
            replies = await self._relay.ask(
                *ask, Execute(_TYPES), Close(PORTAL, _TYPES), Close(STATEMENT, _TYPES), sync=sync
            )
            rows = [DataRow.decode(frame.raw).values[0] or b"" for frame in replies[3] if frame.kind == DataRow.kind]
            self._type_names.update(zip(unknown, (row.decode(self._relay.codec) for row in rows), strict=True))
        return tuple(self._type_names[each] for each in types)

    async def rehearse(self, private_request: PrivateRequest, columns: tuple[Field, ...], *, sync: bool) -> None:
        """Raise a TwinRefusal where the twin would refuse what stands around the query.

        PostgreSQL looks at options of COPY, the name of a cursor and formats when it runs the statement, so they are
        tried before anything is paid, with a query of the same columns without values.
        """
        kind, around = private_request.statement.kind, private_request.around
        formats = private_request.result_formats
        wanted = [each.type for place, each in enumerate(columns) if _format_of(place, formats) == _BINARY]
        is_new = not self._sent_binary.issuperset(wanted)
        if around is None or not (is_new or kind in (Kind.COPY_OUT, Kind.DECLARE)):
            return
        types = await self.names_of(tuple((column.type, column.modifier) for column in columns), sync=sync)
        names = [column.name.decode(self._relay.codec) for column in columns]
        items = ", ".join(f"NULL::{written} AS {quoted(name)}" for written, name in zip(types, names, strict=True))
        messages = self._rehearsed(around.put(f"SELECT {items}"), formats)
        if kind is Kind.DECLARE:
            messages += self._rehearsed(f"CLOSE {quoted(private_request.statement.name or '')}")
        try:
            await self._relay.ask(*messages, sync=sync)
        except TwinRefusal as error:
            raise TwinRefusal(moved(self._relay.guarded(error.raw), nowhere)) from None
        self._sent_binary.update(wanted)

    def _rehearsed(self, text: str, formats: tuple[int, ...] = ()) -> list[Message]:
        parse = parse_under(_REHEARSED, encoded(text, self._relay.codec))
        ends = Execute(_REHEARSED), Close(PORTAL, _REHEARSED), Close(STATEMENT, _REHEARSED)
        return [*parse, Bind(_REHEARSED, _REHEARSED, (), (), formats), *ends]

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
            raise TwinRefusal(moved(self._relay.guarded(error.raw), nowhere)) from None
        values = DataRow.decode(replies[3][0].raw).values
        return tuple(None if value is None else value.decode(self._relay.codec) for value in values)


def _format_of(place: int, formats: tuple[int, ...]) -> int:
    """One format is that of all columns."""
    return formats[place] if len(formats) > 1 else next(iter(formats), 0)


def request_of_execute(statement: Statement, names: PreparedStatements, codec: str) -> PrivateRequest | None:
    """Return what EXECUTE of a prepared statement, or EXPLAIN of one, asks for; None where it needs no look."""
    name = statement.name or ""
    prepared = names.find_prepared(name)
    if prepared is None or prepared.statement.kind is not Kind.QUERY or statement.has_rows_in_arguments:
        return None  # the twin says what is wrong
    inside, key = prepared.statement, name.encode(codec)
    if statement.kind is Kind.EXECUTE:
        return PrivateRequest(
            inside, split_around(inside), None, key, arguments=statement.arguments, literals=prepared.literals
        )
    return PrivateRequest(
        replace(statement, relations=inside.relations),
        _explaining(statement, inside),
        arguments=statement.arguments,
        explains=key,
        literals=prepared.literals,
    )


def _explaining(statement: Statement, inside: Statement) -> EnclosedQuery | None:
    """EXPLAIN of what is prepared, in place of EXECUTE; None where it would be run."""
    around = None if statement.analyze else split_around(statement)
    return None if around is None else EnclosedQuery("", f"{around.head} {inside.text}", "")


@dataclass(frozen=True, slots=True)
class ParsedUnder:
    """The settings that hold now, and those under which the statement was prepared, if they are others.

    PostgreSQL has read its literals by those, whatever is SET later. Dates, times and intervals of a text depend on
    DateStyle, TimeZone and IntervalStyle when it is parsed; casts of other texts, date_trunc and formats on those that
    hold when it is executed. The proxy parses texts of its own in place of the analyst's when that is executed, so the
    twin reads these literals under the older settings, and nothing else.
    """

    now: LiteralSettings
    older: LiteralSettings | None = None

    def taken(self, messages: Sequence[Message], codec: str) -> list[Message]:
        """Messages that the twin takes under the older settings.

        They are SET LOCAL, so that whatever an analyst has SET is as it was, at the end of his transaction too.
        """
        if self.older is None:
            return list(messages)
        return [*_set(self.older, codec), *messages, *_set(self.now, codec)]


def parsed_under(literals: LiteralSettings | None, moment: SessionState) -> ParsedUnder:
    """Compare the settings that a statement was prepared under with those of the session."""
    now = LiteralSettings(moment.setting("TimeZone"), moment.setting("DateStyle"), moment.setting("IntervalStyle"))
    return ParsedUnder(now, None if literals == now else literals)


def _set(settings: LiteralSettings, codec: str) -> list[Message]:
    values = text_array((settings.time_zone, settings.date_style, settings.interval_style)).encode(codec)
    ends = Close(PORTAL, _SET), Close(STATEMENT, _SET)
    return [*parse_under(_SET, _SET_SQL, (TEXT_ARRAY_OID,)), Bind(_SET, _SET, (), (values,)), Execute(_SET), *ends]


@dataclass(frozen=True, slots=True)
class Answered:
    """A private statement, paid and noised: all that is left is the outer statement on the twin."""

    plan: Plan
    around: EnclosedQuery
    columns: tuple[Field, ...]  # as PostgreSQL describes the original
    parameters: Parameters
    arrays: tuple[str, ...]  # the columns of its blocks, as texts of text[]
    notices: tuple[str, ...]
    is_parsed: bool  # whether the twin has the outer statement of a query ready, under its name
    is_older: bool  # whether that has to be run, for it was parsed as the original was, under other settings

    def with_parameters(self) -> str:
        """The statement to be bound: the client's values and then `arrays` are its parameters."""
        return self.around.put(self.plan.outer_with_parameters())

    def with_literals(self, codec: str) -> str:
        """The statement where no parameter can stand, after its own text: pg_stat_activity has no room for more."""
        if self.is_older:
            values = ", ".join(map(self._literal, range(1, self.plan.parameters + len(self.arrays) + 1)))
            outer = f"EXECUTE {OUTER.decode()}({values})" if values else f"EXECUTE {OUTER.decode()}"
        else:
            outer = "".join(part if isinstance(part, str) else self._literal(part) for part in self.plan.outer)
        return f"{_shown(self.around.put(self.around.query), codec)} {self.around.put(outer)}"

    def bound(self, bind: Bind, kind: Kind, codec: str) -> Bind:
        """The outer statement in the client's portal."""
        arrays = tuple(encoded(array, codec) for array in self.arrays)
        if kind in (Kind.QUERY, Kind.DECLARE):
            formats = tuple(map(bind.format_of, range(len(bind.parameters)))) + (0,) * len(arrays)
            return Bind(bind.portal, OUTER, formats, bind.parameters + arrays, bind.result_formats)
        if self.is_older:  # EXECUTE
            values = [None if value is None else encoded(value, codec) for value in self.parameters.values]
            return Bind(bind.portal, OUTER, (), (*values, *arrays), bind.result_formats)
        return Bind(bind.portal, OUTER, (), (), bind.result_formats)  # the values stand in its text

    def _literal(self, hole: int) -> str:
        """Return what stands at $hole: a parameter of the client, or a column of a block."""
        if hole <= self.plan.parameters:
            return typed_literal(self.parameters.values[hole - 1], self.parameters.type_names[hole - 1])
        return f"({literal(self.arrays[hole - self.plan.parameters - 1])}::text[])"


def _shown(text: str, codec: str) -> str:
    """A comment that fills what other sessions of the analyst are shown of a statement, in this period and the next.

    It may have been prepared in another encoding, and what is shown of it must not fail after the charge.
    """
    known = text[:SHOWN_BYTES].encode(codec, "replace").decode(codec)
    return f"/* {_COMMENT_MARK.sub(' ', known)} */".ljust(SHOWN_BYTES)


def _bound_canon(bind: Bind, types: tuple[int, ...]) -> list[Message]:
    """The client's own values through canon, bound to its own portal: wrong values and a portal that exists already
    fail with PostgreSQL's own words."""
    items = ", ".join(f"pg_catalog.noisegate_canon(${number})" for number in range(1, len(types) + 1))
    values = Bind(bind.portal, _CANON, bind.parameter_formats, bind.parameters, ())
    text = f"SELECT {items}".encode()
    ends = Close(PORTAL, bind.portal), Close(STATEMENT, _CANON)
    return [*parse_under(_CANON, text, types), values, Execute(bind.portal), *ends]


def settings_of(private: PrivateRequest, moment: SessionState, limits: SettingLimits) -> AnalystSettings:
    """Our settings. Refuse those by which the text, or a value in it, would be read in another way than was planned."""
    if private.statement.settings:
        raise HIDDEN_SETTING
    moment.check_plain()
    if not moment.is_kept:
        return read_settings(moment.settings, limits)
    return _SETTINGS.get((moment.settings,), limits, lambda: read_settings(moment.settings, limits))


_SETTINGS: Final[KeptByIdentity[AnalystSettings]] = KeptByIdentity(most=256)  # those of a session are mostly the same
