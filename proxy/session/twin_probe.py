"""Ask the twin for the state of a session at the moment when it counts: settings, relations, temporary views.

ParameterStatus comes too late (just before ReadyForQuery) and says nothing of search_path before PostgreSQL 18. From
the relations follows which synthetic rows a statement reads, and what its session is to be told of them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from proxy.execute.service import Service
from proxy.execute.synopses import without_bars
from proxy.session.classify import odd_strings
from proxy.session.literals import quoted_name, text_array
from proxy.session.relay import Relay
from proxy.session.replies import Message
from proxy.wire.backend import DataRow
from proxy.wire.buffer import Frame
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Encoded, Execute, Parse
from rules.planner.plan import TemporaryView
from rules.refusal import NotSupported
from rules.sql.statement import RelationName, Statement

PROBE: Final = b"_ng_probe"
TEXT_ARRAY_OID: Final = 1009

PROBE_ROW: Final = 3  # the message of `run_probe` whose reply is the row

_SQL: Final = b"SELECT pg_catalog.noisegate_moment($1)"
_DURATION: Final = re.compile(r"(\d+)(us|ms|s|min|h|d)?")
_SECONDS: Final = {"us": 1e-6, "ms": 0.001, None: 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}

_FURTHEST_ZONE: Final = 14  # hours: one that POSIX writes may have a summer time of an hour more, and 15 are read
_ZONE_HOURS: Final = re.compile(r"(\d{1,3})(?::\d+)*")
_ABBREVIATION: Final = re.compile("<[^>]*>")

QUIET: Final = ("warning", "error")  # of client_min_messages

_NAME: Final = b"_ng_views"
_VIEW_SQL: Final = (
    b"SELECT r.schema, r.name, r.definition FROM pg_catalog.unnest($1) AS n(name), "
    b"LATERAL pg_catalog.noisegate_read_through(n.name::pg_catalog.regclass) AS r"
)

Relation = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of the session when it was asked."""

    search_path: tuple[str, ...]
    relations: tuple["Relation | None", ...]  # schema and name, in the order of the question
    settings: Mapping[str, str | None]
    now: str
    is_kept: bool = False  # whether the next one has the very same settings where none was SET meanwhile

    def setting(self, name: str) -> str:
        return self.settings.get(name) or ""

    def seconds(self, name: str) -> float | None:
        """A time-out; None: there is none."""
        match = _DURATION.fullmatch(self.setting(name))
        return int(match[1]) * _SECONDS[match[2]] or None if match else None

    def check_plain(self) -> None:
        """Refuse the settings under which PostgreSQL reads SQL, or what is released, in another way than we do."""
        if self.setting("transform_null_equals") == "on":
            raise NotSupported("transform_null_equals = on is not supported", hint="SET transform_null_equals = off;")
        if self.setting("array_nulls") == "off":  # by which a NULL in an array of released labels is a text
            raise NotSupported("array_nulls = off is not supported", hint="SET array_nulls = on;")
        if self.setting("standard_conforming_strings") == "off":
            raise odd_strings()
        zone = self.setting("TimeZone")
        hours = _ZONE_HOURS.findall(_ABBREVIATION.sub("", zone).partition(",")[0])  # without the days of its changes
        if any(int(hour) > _FURTHEST_ZONE for hour in hours):
            words = (
                f'TimeZone "{zone[:60]}" is not supported: PostgreSQL reads no moment that it writes so far from UTC'
            )
            raise NotSupported(words, hint=f"SET TimeZone to a zone within {_FURTHEST_ZONE} hours of UTC.")


class SyntheticRows:
    """The synopses that a session's statements name."""

    def __init__(self, service: Service, analyst: str) -> None:
        self._service, self._analyst = service, analyst
        self._known: set[str] = set()  # of which the session was told

    def check(self, statement: Statement) -> None:
        """Refuse what names a synopsis that this analyst cannot read: the twin would say less."""
        for relation in statement.relations:
            state = None if relation.schema is None else self._service.synopsis(relation.schema)
            if state is not None and (refusal := state.refusal(self._analyst)) is not None:
                raise refusal

    def told(self, statement: Statement, moment: SessionState) -> tuple[str, ...]:
        """Return what is to be said of the synopses that a statement reads, each once a session."""
        read = [relation for relation in moment.relations if relation is not None]
        schemas = dict.fromkeys(schema for schema, _ in read)
        states = [state for schema in schemas if (state := self._service.synopsis(schema)) is not None]
        if states and statement.bars and not any(self._service.is_protected(*relation) for relation in read):
            raise without_bars(statement.bars[0])
        new = [state for state in states if state.name not in self._known]
        self._known.update(state.name for state in new)
        is_quiet = moment.setting("noisegate.notices") == "off" or moment.setting("client_min_messages") in QUIET
        return () if is_quiet else tuple(state.notice for state in new)


@lru_cache(maxsize=256)
def run_probe(relations: tuple[RelationName, ...], codec: str) -> tuple[Message, ...]:
    """The question, of which nothing is left afterwards: what a session has prepared it can prepare anew."""
    names = [quoted_name(*filter(None, (relation.schema, relation.name))) for relation in relations]
    question = text_array(names).encode(codec)
    ask = Parse(PROBE, _SQL, (TEXT_ARRAY_OID,)), Bind(PROBE, PROBE, (), (question,), ()), Execute(PROBE)
    messages: tuple[Message, ...] = Close(STATEMENT, PROBE), *ask, Close(PORTAL, PROBE), Close(STATEMENT, PROBE)
    return tuple(Encoded(message.kind, message.encode()) for message in messages)


def decode_probe(replies: Sequence[Frame], codec: str) -> SessionState:
    """The answer to `run_probe`. All of it but the clock, which comes last, is mostly what it was."""
    (value,) = DataRow.decode(replies[0].raw).values
    standing, _, now = (value or b"").rpartition(_CLOCK)
    is_kept = len(standing) <= _KEPT_BYTES  # else blanks that an analyst SET: a number may have megabytes of them
    read = _read_kept if is_kept else _read
    return SessionState(*read(standing, codec), now.removesuffix(b'"}').decode("ascii"), is_kept)


def _read(standing: bytes, codec: str) -> tuple[tuple[str, ...], tuple[Relation | None, ...], Mapping[str, str | None]]:
    values = json.loads(standing.decode(codec) + "}")
    relations = tuple(None if pair is None else (str(pair[0]), str(pair[1])) for pair in values["relations"] or ())
    settings = {str(name): None if text is None else str(text) for name, text in values["settings"].items()}
    return tuple(map(str, values["search_path"])), relations, MappingProxyType(settings)


_CLOCK: Final = b', "now" : "'
_KEPT_BYTES: Final = 8_192
_read_kept = lru_cache(maxsize=256)(_read)


async def read_through(
    moment: SessionState, relay: Relay, *, sync: bool
) -> tuple[tuple[TemporaryView, ...], tuple[Relation, ...]]:
    """The temporary views that a statement reads, also in each other, and the tables that they read."""
    named = [relation for relation in moment.relations if relation is not None and _is_temporary(relation[0])]
    if not named:
        return (), ()
    if not _is_temporary(moment.search_path[0]):
        raise NotSupported(
            "a statement that reads temporary views needs pg_temp first in search_path", hint="RESET search_path;"
        )
    question = text_array(quoted_name(*relation) for relation in named).encode(relay.codec)
    replies = await relay.ask(
        Close(STATEMENT, _NAME),
        Parse(_NAME, _VIEW_SQL, (TEXT_ARRAY_OID,)),
        Bind(_NAME, _NAME, (), (question,)),
        Execute(_NAME),
        Close(PORTAL, _NAME),
        Close(STATEMENT, _NAME),
        sync=sync,
    )
    rows = [DataRow.decode(frame.raw).values for frame in replies[3] if frame.kind == DataRow.kind]
    texts = [tuple(None if value is None else value.decode(relay.codec) for value in row) for row in rows]
    views = tuple(TemporaryView(str(schema), str(name), text) for schema, name, text in texts if text is not None)
    return tuple(dict.fromkeys(views)), tuple((str(schema), str(name)) for schema, name, _ in texts)


def _is_temporary(schema: str) -> bool:
    return schema == "pg_temp" or schema.startswith("pg_temp_")
