"""Check charges against budgets: the budgets of the rules, the period of a moment, the words of the refusal."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Literal
from zoneinfo import ZoneInfo

from rules.accounting.accountant import Limit, Totals, fits, grantable, largest_rho, loss
from rules.frozen import frozen, replace
from rules.mechanisms.cost import price
from rules.policy.model import Analyst, Policy
from rules.policy.synopses import account_name
from rules.refusal import BudgetSpent
from rules.sql.session_settings import LEAST_EPSILON

_SIX, _THREE = Context(prec=6, rounding=ROUND_FLOOR), Context(prec=3, rounding=ROUND_FLOOR)

Per = Literal["ever", "day", "week", "month"]
PaidIn = tuple[str, str | None]  # a period and a role: an answer that was paid in another is not paid in this one
OWNER = "noisegate"  # who asks for the DBA: no analyst has this name, and all that all may spend is the limit
LABELS: dict[Per, str] = {"ever": "ever", "day": "day:%Y-%m-%d", "week": "week:%G-%V", "month": "month:%Y-%m"}
PHRASES: dict[Per, str] = {"ever": "", "day": " today", "week": " this week", "month": " this month"}


@frozen
class Budgets:
    """The limits of the dataset and of each analyst, and when they are new again."""

    dataset: Limit
    analysts: Mapping[str, Limit]
    per: Per = "ever"
    time_zone: str = "UTC"
    is_pure: bool = True  # whether what is asked has a pure ε; Gaussian noise has none
    least: Decimal = Decimal(0)  # ε that a statement may ask for
    roles: Mapping[str, Limit] = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)  # the role of each analyst who has one

    @property
    def phrase(self) -> str:
        """Return how a text says the running period: "4.3 of 5 left this month"."""
        return PHRASES[self.per]

    def limit_of(self, analyst: str) -> Limit:
        """An analyst who is not in the rules any more has nothing left."""
        if analyst == OWNER:
            return self.dataset
        return self.analysts.get(analyst, Limit(Decimal(0)))

    def role_of(self, analyst: str) -> str | None:
        """The role whose budget an analyst's charges use too."""
        return self.members.get(analyst)


def budgets_of(policy: Policy) -> Budgets:
    """The budgets that the rules file states."""
    dataset = Limit(policy.budget.epsilon, policy.budget.delta)
    roles = {
        name: Limit(role.epsilon, dataset.delta if role.delta is None else role.delta)
        for name, role in policy.roles.items()
    }
    analysts = {name: _limit(analyst, policy, roles, dataset) for name, analyst in policy.analysts.items()}
    makers = {account_name(name): dataset for name in policy.synopses}  # which the budget of all limits
    members = {name: analyst.role for name, analyst in policy.analysts.items() if analyst.role is not None}
    per, zone, least = policy.budget.per, policy.budget.time_zone, policy.defaults.least_epsilon
    return Budgets(dataset, analysts | makers, per, zone, policy.is_pure, least, roles, members)


def _limit(analyst: Analyst, policy: Policy, roles: Mapping[str, Limit], dataset: Limit) -> Limit:
    """The limit of one analyst: the own one, else the share that the role gives, else that of the role or of all."""
    share = None if analyst.role is None else policy.roles[analyst.role].per_analyst
    whole = dataset if analyst.role is None else roles[analyst.role]
    epsilon = next((decimal for decimal in (analyst.epsilon, share) if decimal is not None), whole.epsilon)
    return Limit(epsilon, whole.delta if analyst.delta is None else analyst.delta)


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
    """Return the beginning of a period and of the next one; None: it never ends.

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


def overlaps(period: str, span: tuple[datetime, datetime], budgets: Budgets) -> bool:
    """Return whether a period, of whichever kind, has a moment of this span.

    Example:
        >>> monthly = Budgets(Limit(Decimal(1)), {}, "month", "Europe/Berlin")
        >>> week = span_of("week:2026-49", monthly)
        >>> [overlaps(period, week, monthly) for period in ("month:2026-12", "month:2026-10", "ever")]
        [True, False, True]
    """
    other = span_of(period, budgets)
    return other is None or (other[0] < span[1] and span[0] < other[1])


class RunningPeriod:
    """The period of now, which is worked out when the last one has ended, or the clock was set back."""

    def __init__(self) -> None:
        self._budgets: Budgets | None = None
        self._begins = self._ends = datetime.min.replace(tzinfo=UTC)
        self._period = ""

    def at(self, moment: datetime, budgets: Budgets) -> str:
        if self._budgets is not budgets or not self._begins <= moment < self._ends:
            self._budgets, self._period = budgets, period_of(moment, budgets)
            begins, ends = span_of(self._period, budgets) or (moment, moment)
            self._begins, self._ends = begins.astimezone(UTC), ends.astimezone(UTC)
        return self._period


@frozen
class Change:
    """The totals of an account before a charge, and with it."""

    before: Totals
    after: Totals


def check_fits(
    name: str, analyst: Change, dataset: Change, budgets: Budgets, *, reused: bool, role: Change | None = None
) -> None:
    """Refuse a charge unless all accounts are within their limits with it: the own one, the role's, that of all.

    The words depend on the ledger and the rules alone.
    """
    accounts = [(f"your privacy budget{budgets.phrase}", analyst, budgets.limit_of(name))]
    if role is not None:
        called = budgets.members[name]
        words = f'the privacy budget that analysts of the role "{called}" share{budgets.phrase}'
        accounts.append((words, role, budgets.roles[called]))
    accounts.append((f"the privacy budget that all analysts share{budgets.phrase}", dataset, budgets.dataset))
    for words, change, limit in accounts:
        if not fits(change.after, limit):
            hint = _hint([(change, own) for _, change, own in accounts], budgets, reused=reused)
            raise _refusal(f"this statement would exceed {words}", change, limit, hint)


def _charge_and_rest(change: Change, limit: Limit) -> str:
    """Name the charge and what is left of the limit: in ε, or in ρ where that is all that counts."""
    if not change.after.pure and limit.conversion_delta:
        rho, most = change.after.rho - change.before.rho, largest_rho(limit.epsilon, limit.conversion_delta)
        left = max(Decimal(0), most - change.before.rho)
        meaning = f"which is ε {limit.epsilon.normalize():f} with δ,"
        return f"ρ {price(rho)} is needed, and ρ {_short(left)} of {_short(most)}, {meaning}"
    added_epsilon = change.after.epsilon - change.before.epsilon
    left = _SIX.plus(max(Decimal(0), limit.epsilon - loss(change.before, limit)))
    return f"ε {price(added_epsilon)} is needed, and ε {left.normalize():f} of {limit.epsilon.normalize():f}"


def _short(number: Decimal) -> str:
    return f"{_SIX.plus(number).normalize():f}"


def _refusal(message: str, change: Change, limit: Limit, hint: str) -> BudgetSpent:
    detail = f"{_charge_and_rest(change, limit)} is left."
    if change.after.delta > change.before.delta:
        detail += f" Groups that are found in the data also need δ, whose limit is {limit.delta.normalize()}."
    return BudgetSpent(message, detail=detail, hint=hint)


def _hint(accounts: Sequence[tuple[Change, Limit]], budgets: Budgets, *, reused: bool) -> str:
    """Suggest what would be answered: at less ε, which must fit all accounts, later, or from stored answers."""
    if reused:
        return "A stored answer costs its original price once. SET noisegate.reuse = off draws a fresh one."
    # The ε of the largest statement that would fit
    own, *shared = (
        grantable(change.before if budgets.is_pure else replace(change.before, pure=False), limit)
        for change, limit in accounts
    )
    fits_still = _THREE.plus(min(own, *shared))
    analyst = accounts[0][0]
    least, less = max(LEAST_EPSILON, budgets.least), ""
    if own < least <= min(shared):  # a grant is of the analyst's own budget
        less = "SELECT noisegate.request(1, 'why') asks your DBA for more. "
    if 0 < fits_still < least:
        less = f"The smallest charge of a statement is ε {least.normalize():f}. {less}"
    elif fits_still and analyst.after.delta == analyst.before.delta:
        less = f"SET noisegate.epsilon = {fits_still.normalize():f} would fit. "
    later = "" if budgets.per == "ever" else f" The budget renews every {budgets.per}."
    return f"{less}Answers that you have already received stay free while they are fresh.{later}"
