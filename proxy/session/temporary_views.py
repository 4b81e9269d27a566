"""Temporary views of a session: what they read is asked of the twin, where they come and go as PostgreSQL has it."""

from typing import Final

from proxy.session.literals import quoted_name, text_array
from proxy.session.relay import Relay
from proxy.session.twin_probe import TEXT_ARRAY_OID, SessionState
from proxy.wire.backend import DataRow
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Execute, Parse
from rules.planner.plan import TemporaryView
from rules.refusal import NotSupported

_NAME: Final = b"_ng_views"
_SQL: Final = (
    b"SELECT r.schema, r.name, r.definition FROM pg_catalog.unnest($1) AS n(name), "
    b"LATERAL pg_catalog.noisegate_read_through(n.name::pg_catalog.regclass) AS r"
)

Relation = tuple[str, str]


async def read_through(
    moment: SessionState, relay: Relay, *, sync: bool
) -> tuple[tuple[TemporaryView, ...], tuple[Relation, ...]]:
    """The temporary views that a statement reads, also in each other, and the tables that they read."""
    named = [relation for relation in moment.relations if relation is not None and is_temporary(relation[0])]
    if not named:
        return (), ()
    if not is_temporary(moment.search_path[0]):
        raise NotSupported(
            "a statement that reads temporary views needs pg_temp first in search_path", hint="RESET search_path;"
        )
    question = text_array(quoted_name(*relation) for relation in named).encode(relay.codec)
    replies = await relay.ask(
        Close(STATEMENT, _NAME),
        Parse(_NAME, _SQL, (TEXT_ARRAY_OID,)),
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


def is_temporary(schema: str) -> bool:
    return schema == "pg_temp" or schema.startswith("pg_temp_")
