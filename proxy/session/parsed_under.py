"""The settings under which a statement was prepared: PostgreSQL has read its literals by them, whatever is SET later.

Dates, times and intervals of a text depend on DateStyle, TimeZone and IntervalStyle when it is parsed; casts of other
texts, date_trunc and formats on those that hold when it is executed. The proxy parses texts of its own in place of the
analyst's when that is executed, so the twin reads these literals under the older settings, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proxy.session.literals import text_array
from proxy.session.replies import Message, parse_under
from proxy.session.twin_probe import TEXT_ARRAY_OID, SessionState
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Execute
from rules.functions.function import LiteralSettings

_SET: Final = b"_ng_set"
_SET_SQL: Final = (
    b"SELECT pg_catalog.set_config('TimeZone', ($1)[1], true), pg_catalog.set_config('DateStyle', ($1)[2], true), "
    b"pg_catalog.set_config('IntervalStyle', ($1)[3], true)"
)


@dataclass(frozen=True, slots=True)
class ParsedUnder:
    """The settings that hold now, and those under which the statement was prepared, if they are others."""

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
