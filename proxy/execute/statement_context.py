"""Hold who asks one statement, by which rules, and until when."""

from dataclasses import dataclass

from proxy.execute.cubes import CubeState
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
    is_inner: bool = False  # whether another statement needs the answer
    cubes: tuple[CubeState, ...] = ()  # that stand; they serve who has paid for them
