"""The session's settings and the tables that its names mean, asked of the twin at the moment when they count.

ParameterStatus comes too late (just before ReadyForQuery) and says nothing of search_path before PostgreSQL 18.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from proxy.session.classify import odd_strings
from proxy.session.literals import quoted_name, text_array
from proxy.session.replies import Message
from proxy.wire.backend import DataRow
from proxy.wire.buffer import Frame
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Encoded, Execute, Parse
from rules.refusal import NotSupported
from rules.sql.statement import RelationName

PROBE: Final = b"_ng_probe"
TEXT_ARRAY_OID: Final = 1009

PROBE_ROW: Final = 3  # the message of `run_probe` whose reply is the row

_SQL: Final = b"SELECT pg_catalog.noisegate_moment($1)"
_DURATION: Final = re.compile(r"(\d+)(us|ms|s|min|h|d)?")
_SECONDS: Final = {"us": 1e-6, "ms": 0.001, None: 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of the session when it was asked."""

    search_path: tuple[str, ...]
    relations: tuple[tuple[str, str] | None, ...]  # schema and name, in the order of the question
    settings: Mapping[str, str | None]
    now: str

    def setting(self, name: str) -> str:
        return self.settings.get(name) or ""

    def seconds(self, name: str) -> float | None:
        """A time-out; None: there is none."""
        match = _DURATION.fullmatch(self.setting(name))
        return int(match[1]) * _SECONDS[match[2]] or None if match else None

    def check_plain(self) -> None:
        """Refuse the settings under which PostgreSQL reads SQL in another way than the planner."""
        if self.setting("transform_null_equals") == "on":
            raise NotSupported("transform_null_equals = on is not supported", hint="SET transform_null_equals = off;")
        if self.setting("standard_conforming_strings") == "off":
            raise odd_strings()


@lru_cache(maxsize=256)
def run_probe(relations: tuple[RelationName, ...], codec: str) -> tuple[Message, ...]:
    """The question, of which nothing is left afterwards: what a session has prepared it can prepare anew."""
    names = [quoted_name(*filter(None, (relation.schema, relation.name))) for relation in relations]
    question = text_array(names).encode(codec)
    ask = Parse(PROBE, _SQL, (TEXT_ARRAY_OID,)), Bind(PROBE, PROBE, (), (question,), ()), Execute(PROBE)
    messages: tuple[Message, ...] = Close(STATEMENT, PROBE), *ask, Close(PORTAL, PROBE), Close(STATEMENT, PROBE)
    return tuple(Encoded(message.kind, message.encode()) for message in messages)


def decode_probe(replies: Sequence[Frame], codec: str) -> SessionState:
    """The answer to `run_probe`."""
    (value,) = DataRow.decode(replies[0].raw).values
    values = json.loads((value or b"").decode(codec))
    relations = tuple(None if pair is None else (str(pair[0]), str(pair[1])) for pair in values["relations"] or ())
    settings = {str(name): None if text is None else str(text) for name, text in values["settings"].items()}
    return SessionState(tuple(map(str, values["search_path"])), relations, settings, str(values["now"]))
