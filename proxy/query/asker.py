"""Who asks one statement, by which rules, and until when."""

from dataclasses import dataclass

from proxy.query.rulebook import Rulebook


@dataclass(frozen=True, slots=True)
class Asker:
    """`deadline` is on the event loop's clock."""

    analyst: str
    session: str
    rulebook: Rulebook
    time_zone: str
    deadline: float
