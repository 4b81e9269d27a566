"""The context that the handlers of one session share."""

from dataclasses import dataclass
from typing import Final

from proxy.session.classify import odd_strings
from proxy.session.interfaces import StatementService
from proxy.session.prepared_statements import PreparedStatements
from proxy.session.private_statement import Private
from proxy.session.recent_refusals import log_refusal
from proxy.session.relay import Relay
from proxy.session.reports import refusal_report
from proxy.session.session_image import leaves_hidden_state
from proxy.session.statement_cache import StatementCache
from rules.refusal import Refusal
from rules.sql.statement import Kind, Reading, Statement

_ESCAPE: Final = b"\\"


@dataclass(frozen=True, slots=True)
class SessionContext:
    """One session."""

    analyst: str
    relay: Relay
    names: PreparedStatements
    private: Private
    service: StatementService
    readings: StatementCache  # of all sessions together

    def find_reading(self, text: bytes) -> Reading | None:
        """The reading of a text, if it is at hand and it is known that the twin reads it so.

        Where strings end may depend on a setting that a statement on its way changes: the encoding, and
        standard_conforming_strings.
        """
        self._note_state(text)
        if is_lexical(text) and (not self.relay.knows_lexis or (_ESCAPE in text and self.relay.lexis.has_odd_strings)):
            return None
        reading = self.readings.find(self.relay.codec, text)
        return None if reading is None else self._noted(reading)

    async def read(self, text: bytes) -> Reading:
        """The reading of a text; raises the refusal of one that is too much for a parser, or read in another way.

        Raises TwinRefusal where the settings that it is read by cannot be asked. When the twin skips, nothing is read.
        """
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
        return self._noted(reading)

    def _note_state(self, text: bytes) -> None:
        """Whatever is run once may have left something for good."""
        if not self.relay.has_hidden_state and leaves_hidden_state(text):
            self.relay.has_hidden_state = True

    def report(self, refusal: Refusal, statement: Statement | None = None) -> bytes:
        """A refusal as the client reads it; the log has it too."""
        log_refusal(self.analyst, refusal, statement)
        return refusal_report(refusal, self.relay.codec)

    def _noted(self, reading: Reading) -> Reading:
        """Whatever names a temporary view needs a look from now on."""
        for statement in reading.statements:
            if statement.kind is Kind.VIEW and statement.name:
                self.names.note_view(statement.name)
        return reading


def is_lexical(text: bytes) -> bool:
    """Tell whether the meaning of a text depends on settings: ASCII without backslashes is read in one way."""
    return _ESCAPE in text or not text.isascii()
