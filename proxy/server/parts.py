"""What the handlers of one session share."""

from dataclasses import dataclass
from typing import Final

from proxy.server.judge import odd_strings
from proxy.server.names import Names
from proxy.server.private import Private
from proxy.server.readings import Readings
from proxy.server.relay import Relay
from proxy.server.service_port import StatementService
from rules.sql.statement import Kind, Reading

_ESCAPE: Final = b"\\"


@dataclass(frozen=True, slots=True)
class Parts:
    """One session."""

    analyst: str
    relay: Relay
    names: Names
    private: Private
    service: StatementService
    readings: Readings  # of all sessions together

    def find_reading(self, text: bytes) -> Reading | None:
        """The reading of a text, if it is at hand.

        Where strings end may depend on a setting that a statement on its way changes: the encoding, in some of which a
        backslash is half of a character, and standard_conforming_strings.
        """
        if _ESCAPE in text and (self.relay.has_odd_strings or not self.relay.is_quiet):
            return None
        reading = self.readings.find(self.relay.codec, text)
        return None if reading is None else self._noted(reading)

    async def read(self, text: bytes) -> Reading:
        """The reading of a text; raises the refusal of one that is too much for a parser, or read in another way."""
        if _ESCAPE in text and self.relay.has_odd_strings:
            raise odd_strings()
        codec = self.relay.codec
        try:
            string = text.decode(codec)
        except UnicodeDecodeError:
            return Reading(unreadable=True)  # the twin will say what is wrong with it
        reading = await self.service.read(string, self.analyst)
        self.readings.keep(codec, text, reading)
        return self._noted(reading)

    def _noted(self, reading: Reading) -> Reading:
        """Whatever names a temporary view needs a look from now on."""
        for each in reading.statements:
            if each.kind is Kind.VIEW and each.name:
                self.names.note_view(each.name)
        return reading
