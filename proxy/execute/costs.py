"""Limit what a statement may ask of the real database: how many inner statements, and how much its planner expects.

The number follows from the question alone. What the planner expects does not: it knows statistics of the rows. So a
refusal for it tells something for which nobody has paid, and an analyst is told so only a few times a day.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.settings import LoadLimits
from rules.kernel.statement import Bounded, Tally
from rules.refusal import TooComplex

MOST_REFUSALS: Final = 20  # for what is expected, of one analyst in a day
_DAY_SECONDS: Final = 86_400.0
_CHEAPER: Final = "Use fewer joins, fewer aggregates or a narrower WHERE."


@dataclass(frozen=True, slots=True)
class Costs:
    """The limits, and whom they have stopped: by analyst the questions, and when each was refused first."""

    limits: LoadLimits
    _refused: defaultdict[str, OrderedDict[frozenset[str], float]] = field(
        default_factory=lambda: defaultdict(OrderedDict)
    )

    def check(self, analyst: str, statements: Sequence[Bounded | Tally], now: float) -> None:
        """Refuse what is too much, was too much, or comes after too much that was; nothing is asked for it."""
        if len(statements) > self.limits.statements:
            raise TooComplex(
                f"this needs {len(statements)} statements in the real database, and {self.limits.statements} are "
                "allowed in one",
                hint="Nothing was charged. Split the statement into several.",
            )
        refused = self._refused[analyst]
        while refused and now - next(iter(refused.values())) > _DAY_SECONDS:
            refused.popitem(last=False)
        if _question(statements) in refused:
            raise _too_costly()
        if len(refused) >= MOST_REFUSALS:
            raise TooComplex(
                f"{MOST_REFUSALS} of your statements exceeded the cost limit within a day, and new ones are refused "
                "until the first of them is a day old",
                hint="Stored answers stay available.",
            )

    def refuse(self, analyst: str, statements: Sequence[Bounded | Tally], now: float) -> TooComplex:
        """The refusal of what the planner expects too much of, which is remembered."""
        self._refused[analyst][_question(statements)] = now
        return _too_costly()


def _question(statements: Sequence[Bounded | Tally]) -> frozenset[str]:
    return frozenset(statement.sql for statement in statements)


def _too_costly() -> TooComplex:
    return TooComplex("the estimated cost of the statement exceeds the limit", hint=f"Nothing was charged. {_CHEAPER}")
