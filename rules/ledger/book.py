"""Whether a charge fits: the budgets of the rules, the period that a moment belongs to, the refusal's words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Literal
from zoneinfo import ZoneInfo

from rules.ledger.accountant import Limit, Totals, fits, grantable, largest_rho, loss
from rules.noise.cost import price
from rules.policy.model import Policy
from rules.refusal import BudgetSpent, TooManyFaults
from rules.sql.commands import LEAST_EPSILON

_SIX, _THREE = Context(prec=6, rounding=ROUND_FLOOR), Context(prec=3, rounding=ROUND_FLOOR)

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
    is_pure: bool = True  # whether what is asked has a pure ε; Gaussian noise has none
    least: Decimal = Decimal(0)  # ε that a statement may ask for

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
    per, zone, least = policy.budget.per, policy.budget.time_zone, policy.defaults.least_epsilon
    return Budgets(dataset, analysts, per, zone, policy.noise == "laplace", least)


def period_of(moment: datetime, budgets: Budgets, latest: str = "") -> str:
    """The period of a moment, but never one before the latest that was charged: a clock set back refills nothing.

    Example:
        >>> monthly = Budgets(Limit(Decimal(1)), {}, "month", "Europe/Berlin")
        >>> period_of(datetime.fromisoformat("2026-10-31T23:30:00+00:00"), monthly)
        'month:2026-11'
        >>> period_of(datetime.fromisoformat("2026-10-01T00:00:00+00:00"), monthly, "month:2026-11")
        'month:2026-11'
    """
    period = moment.astimezone(ZoneInfo(budgets.time_zone)).strftime(LABELS[budgets.per])
    same_kind = latest.partition(":")[0] == budgets.per
    return max(period, latest) if same_kind else period


def span_of(period: str, budgets: Budgets) -> tuple[datetime, datetime] | None:
    """When a period begins and when the next one does; None: never.

    Example:
        >>> monthly = Budgets(Limit(Decimal(1)), {}, "month", "Europe/Berlin")
        >>> [str(moment) for moment in span_of("month:2026-12", monthly)]
        ['2026-12-01 00:00:00+01:00', '2027-01-01 00:00:00+01:00']
    """
    per, _, label = period.partition(":")
    match per:
        case "day":
            first = date.fromisoformat(label)
            following = first + timedelta(days=1)
        case "week":
            year, week = map(int, label.split("-"))
            first = date.fromisocalendar(year, week, 1)
            following = first + timedelta(weeks=1)
        case "month":
            first = date.fromisoformat(f"{label}-01")
            following = (first + timedelta(days=31)).replace(day=1)
        case _:
            return None
    zone = ZoneInfo(budgets.time_zone)
    return datetime.combine(first, time.min, zone), datetime.combine(following, time.min, zone)


@dataclass(frozen=True, slots=True)
class Change:
    """What an account has paid before a charge, and with it."""

    before: Totals
    after: Totals


def check_fits(name: str, analyst: Change, dataset: Change, budgets: Budgets, *, reused: bool) -> None:
    """Refuse a charge unless both accounts are within their limits with it.

    The words depend on the ledger and the rules alone.
    """
    limit = budgets.limit_of(name)
    if not fits(analyst.after, limit):
        message = f"this would pass your privacy budget{budgets.phrase}"
        raise _refusal(message, analyst, limit, _hint(analyst, dataset, budgets, limit, reused=reused))
    if not fits(dataset.after, budgets.dataset):
        message = f"this would pass the privacy budget that all analysts share{budgets.phrase}"
        raise _refusal(message, dataset, budgets.dataset, _hint(analyst, dataset, budgets, limit, reused=reused))


def check_faults(faults: int, allowed: int) -> None:
    """Refuse when the day's faults are used up: each of them tells a little of the data."""
    if faults >= allowed:
        raise TooManyFaults(
            "the real database failed too often after your statements today, so none is run",
            hint="A failure tells something of the data. Your DBA finds in the log what failed.",
        )


def _asked(change: Change, limit: Limit) -> str:
    """What is asked for and what of it there is: ε, or ρ where that is all that counts."""
    if not change.after.pure and limit.conversion_delta:
        rho, most = change.after.rho - change.before.rho, largest_rho(limit.epsilon, limit.conversion_delta)
        left = max(Decimal(0), most - change.before.rho)
        meaning = f"which mean ε {limit.epsilon.normalize():f} with δ,"
        return f"ρ {price(rho)} is asked for, {_short(left)} of {_short(most)}, {meaning}"
    asked = change.after.epsilon - change.before.epsilon
    left = _SIX.plus(max(Decimal(0), limit.epsilon - loss(change.before, limit)))
    return f"ε {price(asked)} is asked for, {left.normalize():f} of {limit.epsilon.normalize():f}"


def _granted(totals: Totals, limit: Limit, budgets: Budgets) -> Decimal:
    """The ε of the largest statement that would fit."""
    return grantable(totals if budgets.is_pure else replace(totals, pure=False), limit)


def _short(number: Decimal) -> str:
    return f"{_SIX.plus(number).normalize():f}"


def _refusal(message: str, change: Change, limit: Limit, hint: str) -> BudgetSpent:
    detail = f"{_asked(change, limit)} is left."
    if change.after.delta > change.before.delta:
        detail += f" Groups found in the data also need δ, of which {limit.delta.normalize()} may be spent."
    return BudgetSpent(message, detail=detail, hint=hint)


def _hint(analyst: Change, dataset: Change, budgets: Budgets, limit: Limit, *, reused: bool) -> str:
    """What would be answered: at less ε, which must fit both accounts, later, or what was answered before."""
    if reused:
        return "What is not on your account yet costs what it cost first. A fresh one: SET noisegate.reuse = off."
    fits_still = _THREE.plus(
        min(_granted(analyst.before, limit, budgets), _granted(dataset.before, budgets.dataset, budgets))
    )
    least, less = max(LEAST_EPSILON, budgets.least), ""
    if 0 < fits_still < least:
        less = f"No statement may ask for less than ε {least.normalize():f}. "
    elif fits_still and analyst.after.delta == analyst.before.delta:
        less = f"SET noisegate.epsilon = {fits_still.normalize():f} would fit. "
    later = "" if budgets.per == "ever" else f" The budget is new every {budgets.per}."
    return f"{less}What you have been answered before stays free while it is fresh.{later}"
