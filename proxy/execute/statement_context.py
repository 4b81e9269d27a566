"""Who asks one statement, by which rules, and until when."""

from dataclasses import dataclass

from proxy.execute.rulebook import Rulebook


@dataclass(frozen=True, slots=True)
class StatementContext:
    """`deadline` is on the event loop's clock."""

    analyst: str
    session: str
    rulebook: Rulebook
    time_zone: str
    deadline: float
    statement: str = ""  # its fingerprint
    shape: str = ""  # its text without constants
