"""The context that the handlers of one session share, the readings that all sessions share, and a session's image.

A text that drivers and tools send again and again is read once. The image of a session is its state on the twin without
its connection: taken while it is idle, and set on a fresh twin. Settings can be set again, and the unnamed statement
can be parsed again. Whatever else a session may have there (prepared statements, cursors, temporary views, locks) is
lost with the twin, so such a session has no image. The numbers of types must be the same too, since clients keep them.
"""

import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from proxy.execute.service import Service
from proxy.session.classify import odd_strings
from proxy.session.errors import refusal_report
from proxy.session.literals import text_array
from proxy.session.prepared_statements import PreparedStatements
from proxy.session.private_session import PrivateSession
from proxy.session.recent_refusals import log_refusal
from proxy.session.relay import Relay
from proxy.session.replies import Expected, TwinLost, swallow
from proxy.session.twin_probe import TEXT_ARRAY_OID
from proxy.wire.backend import DataRow
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Execute, Parse
from rules.refusal import Refusal
from rules.sql.limits import MOST_BYTES, check_bytes
from rules.sql.session_settings import SETTINGS
from rules.sql.statement import Kind, Reading, Statement

_ESCAPE: Final = b"\\"

_MOST_BYTES: Final = 4 * 1024 * 1024  # of texts and what is known of them, in the whole proxy
_STATEMENT_BYTES: Final = 512  # that a statement takes besides its text
_LONGEST_BYTES: Final = 16 * 1024  # a longer text is not likely to come again

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


class StatementCache:
    """The most recently used readings, by the bytes of their text. What a text says depends on no rule."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
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
        if len(text) > _LONGEST_BYTES or (codec, text) in self._kept:
            return
        self._kept[codec, text] = reading
        self._bytes += _size(text, reading)
        while self._bytes > self._most_bytes:
            (_, oldest), forgotten = self._kept.popitem(last=False)
            self._bytes -= _size(oldest, forgotten)


@dataclass(frozen=True, slots=True)
class SessionContext:
    """One session."""

    analyst: str
    relay: Relay
    names: PreparedStatements
    private: PrivateSession
    service: Service
    readings: StatementCache  # of all sessions together

    def find_reading(self, text: bytes) -> Reading | None:
        """The reading of a text, if it is at hand and it is known that the twin reads it so.

        Where strings end may depend on a setting that a statement on its way changes: the encoding, and
        standard_conforming_strings.
        """
        if len(text) > MOST_BYTES:
            return None
        if not self.relay.has_hidden_state and _HIDDEN.search(text):
            # It may leave something for good that no catalog lists: a setting of a client's own.
            self.relay.has_hidden_state = True
        if is_lexical(text) and (not self.relay.knows_lexis or (_ESCAPE in text and self.relay.lexis.has_odd_strings)):
            return None
        reading = self.readings.find(self.relay.codec, text)
        return None if reading is None else self._noted(reading)

    async def read(self, text: bytes) -> Reading:
        """The reading of a text; raises the refusal of one that is too much for a parser, or read in another way.

        Raises TwinRefusal where the settings that it is read by cannot be asked. When the twin skips, nothing is read.
        """
        check_bytes(text)
        if is_lexical(text):
            await self.relay.learn_lexis()
            if self.relay.skipping:
                return Reading(unreadable=True)
            if _ESCAPE in text and self.relay.lexis.has_odd_strings:
                raise odd_strings()
        codec = self.relay.codec
        try:
            string = text.decode(codec)
        except UnicodeDecodeError:
            return Reading(unreadable=True)  # the twin will say what is wrong with it
        reading = await self.service.read(string, self.analyst)
        self.readings.keep(codec, text, reading)
        self.private.check_cancelled()
        return self._noted(reading)

    def report(self, refusal: Refusal, statement: Statement | None = None) -> bytes:
        """A refusal as the client reads it; the log has it too. That is the end of it."""
        log_refusal(self.analyst, refusal.without_frames(), statement)
        return refusal_report(refusal, self.relay.codec)

    def _noted(self, reading: Reading) -> Reading:
        """Whatever names a temporary view needs a look from now on."""
        for statement in reading.statements:
            if statement.kind is Kind.VIEW and statement.name:
                self.names.note_view(statement.name)
        return reading


@dataclass(frozen=True, slots=True)
class SessionImage:
    """Settings that differ from those that a session begins with, and the numbers of the twin's own types."""

    settings: dict[str, str]
    types: str | None = None  # None: the client knows of none


def is_lexical(text: bytes) -> bool:
    """Tell whether the meaning of a text depends on settings: ASCII without backslashes is read in one way."""
    return _ESCAPE in text or not text.isascii()


def _size(text: bytes, reading: Reading) -> int:
    return len(text) + _STATEMENT_BYTES * len(reading.statements)


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
