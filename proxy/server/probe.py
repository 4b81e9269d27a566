"""The session's settings and the tables that its names mean, asked of the twin at the moment when they count.

ParameterStatus comes too late (just before ReadyForQuery) and says nothing of search_path before PostgreSQL 18.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.server.judge import odd_strings
from proxy.server.literals import quoted_name, text_array
from proxy.server.relay import Message
from proxy.wire.backend import DataRow
from proxy.wire.buffer import Frame
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Execute, Parse
from rules.refusal import NotSupported
from rules.sql.statement import RelationName

PROBE: Final = b"_ng_probe"
TEXT_ARRAY_OID: Final = 1009

SETTINGS: Final = (
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "statement_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_timeout",  # since PostgreSQL 17
    "client_min_messages",
    "standard_conforming_strings",
    "transform_null_equals",
    "noisegate.epsilon",
    "noisegate.rows_per_unit",
    "noisegate.sum_per_unit",
    "noisegate.groups_per_unit",
    "noisegate.confidence",
    "noisegate.reuse",
    "noisegate.notices",
)

_PAIRS: Final = ", ".join(f"'{name}', pg_catalog.current_setting('{name}', true)" for name in SETTINGS)
# Asked of the catalog's cache: a join of pg_class and pg_namespace is planned anew each time, for 0.3 ms.
_RELATIONS: Final = """
SELECT pg_catalog.json_agg((
    SELECT a.object_names FROM pg_catalog.pg_identify_object_as_address(
        'pg_catalog.pg_class'::pg_catalog.regclass, pg_catalog.to_regclass(n.name), 0) AS a) ORDER BY n.number)
FROM pg_catalog.unnest($1) WITH ORDINALITY AS n(name, number)
"""
_SQL: Final = f"""
SELECT pg_catalog.json_build_object(
    'search_path', pg_catalog.current_schemas(true),
    'relations', ({_RELATIONS}),
    'settings', pg_catalog.json_build_object({_PAIRS}),
    'now', pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.now()), 'YYYY-MM-DD HH24:MI:SS.US"+00"'))
"""

_DURATION: Final = re.compile(r"(\d+)(us|ms|s|min|h|d)?")
_SECONDS: Final = {"us": 1e-6, "ms": 0.001, None: 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class Moment:
    """What held in the session when it was asked."""

    search_path: tuple[str, ...]
    relations: tuple[tuple[str, str] | None, ...]  # schema and name, in the order of the question
    settings: Mapping[str, str | None]
    now: str

    def setting(self, name: str) -> str:
        return self.settings.get(name) or ""

    def seconds(self, name: str) -> float | None:
        """A time-out; None: there is none."""
        found = _DURATION.fullmatch(self.setting(name))
        return int(found[1]) * _SECONDS[found[2]] or None if found else None

    def check_plain(self) -> None:
        """Refuse the settings under which PostgreSQL reads SQL in another way than the planner."""
        if self.setting("transform_null_equals") == "on":
            raise NotSupported("transform_null_equals changes what = means", hint="SET transform_null_equals = off;")
        if self.setting("standard_conforming_strings") == "off":
            raise odd_strings()


def prepare_probe() -> tuple[Message, ...]:
    """To be sent once in a session, and again when all prepared statements were forgotten."""
    return Close(STATEMENT, PROBE), Parse(PROBE, _SQL.encode(), (TEXT_ARRAY_OID,))


def run_probe(relations: Sequence[RelationName], codec: str) -> tuple[Message, ...]:
    """The question; its portal is gone afterwards. The row is the reply to the second message."""
    names = [quoted_name(*filter(None, (relation.schema, relation.name))) for relation in relations]
    question = text_array(names).encode(codec)
    return Bind(PROBE, PROBE, (), (question,), ()), Execute(PROBE), Close(PORTAL, PROBE)


def decode_probe(replies: Sequence[Frame], codec: str) -> Moment:
    """The answer to `run_probe`."""
    (value,) = DataRow.decode(replies[0].raw).values
    found = json.loads((value or b"").decode(codec))
    relations = tuple(None if pair is None else (str(pair[0]), str(pair[1])) for pair in found["relations"] or ())
    settings = {str(name): None if text is None else str(text) for name, text in found["settings"].items()}
    return Moment(tuple(map(str, found["search_path"])), relations, settings, str(found["now"]))
