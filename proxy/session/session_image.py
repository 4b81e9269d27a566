"""The image of a session on the twin, without its connection: taken while it is idle, and set on a fresh twin.

Settings can be set again, and the unnamed statement can be parsed again. Whatever else a session may have there
(prepared statements, cursors, temporary views, locks) is lost with the twin, so such a session has no image. The
numbers of types must be the same too, since clients keep them.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from proxy.session.literals import text_array
from proxy.session.relay import Relay
from proxy.session.replies import Expected, TwinLost, swallow
from proxy.session.twin_probe import TEXT_ARRAY_OID
from proxy.wire.backend import DataRow
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Execute, Parse
from rules.sql.session_settings import SETTINGS

_IMAGE: Final = b"_ng_image"
_OURS: Final = ", ".join(f"'{name}'" for name in SETTINGS)
_TYPES_SQL: Final = """
SELECT pg_catalog.md5(pg_catalog.string_agg(t.oid || ' ' || t.typname, ',' ORDER BY t.oid))
FROM pg_catalog.pg_type AS t WHERE t.oid >= 16384 AND t.typtype IN ('d', 'e')"""
# pg_settings leaves out settings whose prefix is no extension's, as ours.
_IMAGE_SQL: Final = f"""
SELECT CASE WHEN current_user = session_user
    AND pg_catalog.current_setting('role') = 'none'
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_prepared_statements AS p WHERE NOT pg_catalog.starts_with(p.name, '_ng_'))
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_cursors AS c WHERE c.is_holdable)
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_listening_channels())
    AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_locks AS l
        WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'advisory')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_class AS r WHERE r.relnamespace = pg_catalog.pg_my_temp_schema())
THEN pg_catalog.json_build_object('types', ({_TYPES_SQL}), 'settings', (
    SELECT pg_catalog.json_object_agg(s.name, s.setting)
    FROM (
        SELECT g.name, g.setting FROM pg_catalog.pg_settings AS g WHERE g.source = 'session'
        UNION ALL
        SELECT n.name, pg_catalog.current_setting(n.name, true) FROM pg_catalog.unnest(ARRAY[{_OURS}]) AS n(name)
    ) AS s
    WHERE s.setting IS NOT NULL))
END""".encode()
_SET_SQL: Final = (
    b"SELECT pg_catalog.set_config(s.name, s.setting, false) "
    b"FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS s(name, setting)"
)
_HIDDEN: Final = re.compile(rb"(?i)set_config|setseed|\bset\s+(?:session\s+|local\s+)?(?!noisegate\s*\.)[\w\"$]+\s*\.")


@dataclass(frozen=True, slots=True)
class SessionImage:
    """Settings that differ from those that a session begins with, and the numbers of the twin's own types."""

    settings: dict[str, str]
    types: str | None = None  # None: the client knows of none


def leaves_hidden_state(text: bytes) -> bool:
    """Tell whether a statement may set what no catalog lists: a setting of a client's own, the seed of random()."""
    return _HIDDEN.search(text) is not None


async def take_image(relay: Relay) -> SessionImage | None:
    """Return what is to be set again; None: there is more that would be lost. Raises TwinRefusal and TwinLost."""
    ends = Close(PORTAL, _IMAGE), Close(STATEMENT, _IMAGE)
    bind = Bind(_IMAGE, _IMAGE)
    replies = await relay.ask(
        Close(STATEMENT, _IMAGE), Parse(_IMAGE, _IMAGE_SQL), bind, Execute(_IMAGE), *ends, sync=True
    )
    (value,) = DataRow.decode(replies[3][0].raw).values
    if value is None:
        return None
    image = json.loads(value.decode(relay.codec))
    settings = {str(name): str(text) for name, text in (image["settings"] or {}).items()}
    return SessionImage(settings, str(image["types"]))


async def replay(image: SessionImage, unnamed: bytes, relay: Relay) -> None:
    """Set and parse it again; raises TwinRefusal, TwinLost, or UnicodeEncodeError."""
    if image.types is not None:
        fresh = await take_image(relay)
        if fresh is None or fresh.types != image.types:
            raise TwinLost
    if image.settings:
        names, values = (
            text_array(written).encode(relay.codec) for written in (image.settings, image.settings.values())
        )
        parse = Parse(_IMAGE, _SET_SQL, (TEXT_ARRAY_OID, TEXT_ARRAY_OID))
        bind, ends = Bind(_IMAGE, _IMAGE, (), (names, values)), (Close(PORTAL, _IMAGE), Close(STATEMENT, _IMAGE))
        await relay.ask(parse, bind, Execute(_IMAGE), *ends, sync=True)
    if unnamed:
        relay.send(unnamed, Expected(Parse.kind, swallow))  # it fails where it has failed before
        relay.sync(expected=Expected(b"S", swallow))
        await relay.quiet()
