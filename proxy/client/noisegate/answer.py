"""One answer of the proxy, with its margins, cost, remaining budget and NOTICEs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

import pandas
import psycopg

KEY: Final = "noisegate"  # of a frame's attributes
_COST: Final = re.compile(r"[ερ] \S+ spent, .* left")
_RUNS: Final = re.compile(r"still running after \d+ s ")
_LAST: Final = """
SELECT column_name, margin, margin_in, confidence, epsilon, rho, epsilon_left, noise, advice FROM noisegate.last
"""

Session = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Told:
    """The proxy's words on an answer; none on an exact one."""

    margins: dict[str, float] = field(default_factory=dict)  # by column, of the worst of its groups
    noise: dict[str, str] = field(default_factory=dict)  # by column: none, low, medium, high or too high
    advice: str = ""  # what makes it matter less in the column where it matters most
    in_rank: Sequence[str] = ()  # columns whose margin is one of rows in rank, not of the value
    confidence: float = 0.95
    cost: float | None = None
    left: float | None = None
    notices: Sequence[str] = ()

    @property
    def is_private(self) -> bool:
        return self.cost is not None


def ask(session: Session, statement: str, show: Callable[[str], None]) -> "pandas.DataFrame":
    """Run one statement; the frame's attributes have its margins, cost and NOTICEs. Raises psycopg.Error.

    `show` is given what is said while it runs, which is of no use afterwards.
    """
    said: list[str] = []
    hear = _Hearing(said, show)
    session.add_notice_handler(hear)
    try:
        cursor = session.execute(statement.encode())
        rows = cursor.fetchall() if cursor.description else []
        names = [column.name for column in cursor.description or ()]
    finally:
        session.remove_notice_handler(hear)
    is_private = any(map(_COST.match, said))
    told = _told(session, names, said) if is_private else Told(notices=tuple(said))
    frame = pandas.DataFrame.from_records(rows, columns=names, coerce_float=True)
    frame.attrs[KEY] = asdict(told)  # plain values, since pandas writes them into files of some kinds
    return frame


def told_of(frame: "pandas.DataFrame") -> Told:
    """Return the margins, cost and NOTICEs of a frame; empty for a frame that is not an answer."""
    cost = frame.attrs.get(KEY)
    return Told(**cost) if isinstance(cost, dict) else Told()


class _Hearing:
    """Keeps the NOTICEs of one statement, and shows those that it still runs."""

    def __init__(self, said: list[str], show: Callable[[str], None]) -> None:
        self._said, self._show = said, show

    def __call__(self, notice: psycopg.errors.Diagnostic) -> None:
        words = notice.message_primary or ""
        if _RUNS.match(words):
            self._show(words)
        else:
            self._said.append(words)


def _told(session: Session, names: Sequence[str], said: Sequence[str]) -> Told:
    rows = session.execute(_LAST).fetchall()
    known = [row for row in rows if row[0] in names and row[1] is not None]
    _, _, _, level, epsilon, rho, left, *_ = rows[0]
    return Told(
        {str(row[0]): _number(row[1]) for row in known if row[2] == "value"},
        {str(row[0]): str(row[7]) for row in known if row[7] is not None},
        next((str(row[8]) for row in rows if row[8] is not None), ""),
        tuple(str(row[0]) for row in known if row[2] != "value"),
        0.95 if level is None else _number(level),
        _number(rho if epsilon is None else epsilon),
        _number(left),
        tuple(said),
    )


def _number(value: object) -> float:
    return float(str(value))
