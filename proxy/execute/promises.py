"""Which ε has kept an error that an analyst asked for, so that asking again costs nothing.

The bound on an answer's size, from which that ε follows, moves with every release that joins the account. Who asks the
same again gets what was promised on the bound of the first time; the releases themselves stand in the ledger.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from proxy.recent_values import RecentValues
from rules.planner.plan import Plan
from rules.sql.session_settings import Within

_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class Promise:
    """The ε of the release beside a probe, and what was told of it."""

    epsilon: Decimal
    told: tuple[str, ...]


class Promises:
    """The last promises, for all analysts."""

    def __init__(self) -> None:
        self._kept: RecentValues[Hashable, Promise] = RecentValues(_MOST)

    def find(self, analyst: str, plan: Plan, within: Within) -> Promise | None:
        return self._kept.find(_key(analyst, plan, within))

    def keep(self, analyst: str, plan: Plan, within: Within, promise: Promise) -> None:
        self._kept.keep(_key(analyst, plan, within), promise, 1)


def _key(analyst: str, plan: Plan, within: Within) -> Hashable:
    """Equal for equal questions, whatever ε they are planned with."""
    blocks = plan.blocks or plan.foreseen
    asked = tuple((each.canonical, each.level, tuple(part.name for part in each.measures)) for each in blocks)
    return analyst, within.text, asked, tuple((each.block, each.formula) for each in plan.results)
