"""Whether a charge fits: the budgets of the rules, the period that a moment belongs to, the refusal's words."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal
from zoneinfo import ZoneInfo

from rules.ledger.accountant import Limit, Totals, fits
from rules.policy.model import Policy
from rules.refusal import BudgetSpent

Per = Literal["ever", "day", "week", "month"]
LABELS: dict[Per, str] = {"ever": "ever", "day": "day:%Y-%m-%d", "week": "week:%G-%V", "month": "month:%Y-%m"}
PHRASES: dict[Per, str] = {"ever": "", "day": " today", "week": " this week", "month": " this month"}


@dataclass(frozen=True, slots=True)
class Budgets:
    """The limits of the dataset and of each analyst, and when they are new again."""

    dataset: Limit
    analysts: Mapping[str, Limit]
    per: Per = "ever"
    time_zone: str = "UTC"

    @property
    def phrase(self) -> str:
        """How a text says the running period: "4.3 of 5 left this month"."""
        return PHRASES[self.per]

    def limit_of(self, analyst: str) -> Limit:
        """An analyst who is not in the rules any more has nothing left."""
        return self.analysts.get(analyst, Limit(Decimal(0)))


def budgets_of(policy: Policy) -> Budgets:
    """The budgets that the rules file states."""
    dataset = Limit(policy.budget.epsilon, policy.budget.delta)
    analysts = {
        name: Limit(
            dataset.epsilon if analyst.epsilon is None else analyst.epsilon,
            dataset.delta if analyst.delta is None else analyst.delta,
        )
        for name, analyst in policy.analysts.items()
    }
    return Budgets(dataset, analysts, policy.budget.per, policy.budget.time_zone)


def period_of(time: datetime, budgets: Budgets, latest: str = "") -> str:
    """The period of a moment, but never one before the latest that was charged: a clock set back refills nothing.

    Example:
        >>> monthly = Budgets(Limit(Decimal(1)), {}, "month", "Europe/Berlin")
        >>> period_of(datetime.fromisoformat("2026-10-31T23:30:00+00:00"), monthly)
        'month:2026-11'
        >>> period_of(datetime.fromisoformat("2026-10-01T00:00:00+00:00"), monthly, "month:2026-11")
        'month:2026-11'
    """
    period = time.astimezone(ZoneInfo(budgets.time_zone)).strftime(LABELS[budgets.per])
    same_kind = latest.partition(":")[0] == budgets.per
    return max(period, latest) if same_kind else period


def check_fits(name: str, analyst: Totals, dataset: Totals, budgets: Budgets, *, reused: bool) -> None:
    """Refuse a charge unless both accounts, the charge included, are within their limits.

    The words depend on the ledger and the rules alone.
    """
    limit = budgets.limit_of(name)
    if not fits(analyst, limit):
        raise _refusal(f"this would pass your privacy budget{budgets.phrase}", limit, budgets, reused=reused)
    if not fits(dataset, budgets.dataset):
        message = f"this would pass the privacy budget that all analysts share{budgets.phrase}"
        raise _refusal(message, budgets.dataset, budgets, reused=reused)


def _refusal(message: str, limit: Limit, budgets: Budgets, *, reused: bool) -> BudgetSpent:
    detail = (
        f"The limit is ε = {limit.epsilon} and δ = {limit.delta}; SELECT * FROM noisegate.budget shows what is left."
    )
    hint = "Ask for less: SET noisegate.epsilon. What you have been answered before stays free while it is fresh."
    if reused:
        hint = "An answer that others paid for costs what it cost them. For a fresh one: SET noisegate.reuse = off."
    elif budgets.per != "ever":
        hint = f"Ask for less, SET noisegate.epsilon, or wait: the budget is new every {budgets.per}."
    return BudgetSpent(message, detail=detail, hint=hint)
