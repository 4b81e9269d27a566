"""Compute what a synopsis costs, and which share of it each marginal gets.

Text without a list of values takes a tenth of ρ first, and a δ a column, to find its labels.
With δ the price is ρ, the largest that still means the synopsis' ε at the budget's own conversion, and noise is
Gaussian; without δ it is ε, and noise is Laplace. A fiftieth goes to the number of rows of each table. The rest is
shared so that the expected distance of all pairs together is least: marginal i with c cells, a reach of Δ and N rows
has an expected distance in proportion to c·Δ/(N·√ρ_i), and Σ of these under Σρ_i = ρ is least for

    ρ_i ∝ (c·Δ/N)^⅔,    and with Laplace noise, where it is c·Δ/(N·ε_i), for ε_i ∝ (c·Δ/N)^½.

N is the noised number of rows, so the shares are a function of what is released already.
"""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal

from rules.accounting.accountant import Limit, largest_rho
from rules.frozen import frozen, replace
from rules.kernel.statement import Marginal
from rules.mechanisms.additive import NOISES, AdditiveNoise, kind_paid
from rules.mechanisms.cost import Mechanism
from rules.policy.model import Policy
from rules.synopses.plan import SynopsisPlan

_TOTALS = Decimal("0.02")
_LABELS = Decimal("0.1")  # of ρ, for the labels of all text without a list
_DOWN = Context(prec=12, rounding=ROUND_FLOOR)
_JUST_BELOW = Decimal("0.999999999")  # so that rounded shares never add up to more than the whole


@frozen
class Weighed:
    """A marginal, how many cells of it are released, and how many rows its table has."""

    marginal: Marginal
    cells: int
    rows: int


def price_of(epsilon: Decimal, policy: Policy) -> Mechanism:
    """Compute what a synopsis costs in all."""
    limit = Limit(policy.budget.epsilon, policy.budget.delta)
    if not limit.conversion_delta:
        return Mechanism.pure(epsilon)
    return Mechanism(None, Decimal(0), largest_rho(epsilon, limit.conversion_delta))


def price_of_synopsis(plan: SynopsisPlan, policy: Policy) -> Mechanism:
    """Compute what a synopsis costs in all: with the δ of the thresholds by which labels are found."""
    price = price_of(plan.rules.epsilon, policy)
    return replace(price, delta=policy.statement_delta() * len(plan.open)) if plan.open else price


def share_of_labels(plan: SynopsisPlan, policy: Policy) -> Decimal:
    """The ε of the statement that finds the labels of one column, whose draws are ε²/2-zCDP."""
    return _root(price_of(plan.rules.epsilon, policy).rho * _LABELS / len(plan.open))


def price_of_counts(plan: SynopsisPlan, policy: Policy) -> Mechanism:
    """Compute what is left for counts where labels have their part."""
    price = price_of(plan.rules.epsilon, policy)
    return replace(price, rho=_DOWN.multiply(price.rho, 1 - _LABELS)) if plan.open else price


def shares_of_totals(price: Mechanism, tables: int) -> Decimal:
    """The ε of the number of rows of each table."""
    return _epsilon_of(price, _whole(price) * _TOTALS / tables)


def shares_of_marginals(price: Mechanism, weighed: Sequence[Weighed], *, group_size: int) -> list[Decimal]:
    """The ε of each of the other marginals of all tables."""
    weights = [_weight(marginal, price, group_size) ** _power(price) for marginal in weighed]
    whole, rest = sum(weights), Decimal(1) - _TOTALS
    parts = [rest * Decimal(weight / whole) for weight in weights]
    return [_epsilon_of(price, _whole(price) * part) for part in parts]


def shares_of_cells(price: Mechanism, drafts: Sequence[tuple[int, Sequence[Mechanism]]]) -> list[Decimal]:
    """The ε of the statement of each set of a cube: so many cells, and what it costs at an ε of 1.

    By the same rule as marginals, with one reach and one number of rows for all. Draws cost in proportion to ε², or
    to ε.
    """
    weights = [float(cells) ** _power(price) for cells, _ in drafts]
    parts = [Decimal(weight / sum(weights)) for weight in weights]
    spent = [_sums(costs) for _, costs in drafts]
    ones = [rho * 2 if price.epsilon is None else epsilon for epsilon, rho in spent]
    return [_epsilon_of(price, _whole(price) * part / one) for part, one in zip(parts, ones, strict=True)]


def noise_of(marginal: Marginal, epsilon: Decimal, price: Mechanism, *, group_size: int) -> AdditiveNoise:
    """The noise of a marginal at its share."""
    l1, l2_squared = marginal.sensitivity.l1 * group_size, marginal.sensitivity.l2_squared * group_size**2
    return NOISES[kind_paid(price)].over(l1, l2_squared, epsilon)


def cost_of(epsilon: Decimal, price: Mechanism) -> Mechanism:
    """Compute what one share costs, as the accountant counts it."""
    return NOISES[kind_paid(price)].price(epsilon)


def check_sum(price: Mechanism, epsilons: Sequence[Decimal]) -> None:
    """All shares together cost no more than what is charged; raises ValueError."""
    check_costs(price, [cost_of(epsilon, price) for epsilon in epsilons])


def check_costs(price: Mechanism, costs: Sequence[Mechanism]) -> None:
    """All draws together cost no more than what is charged; raises ValueError."""
    spent, rho = _sums(costs)
    if rho > price.rho or (price.epsilon is not None and spent > price.epsilon):
        raise ValueError("the shares of a synopsis add up to more than its price")


def _sums(costs: Sequence[Mechanism]) -> tuple[Decimal, Decimal]:
    epsilons = (cost.epsilon or Decimal(0) for cost in costs)
    return sum(epsilons, Decimal(0)), sum((cost.rho for cost in costs), Decimal(0))


def _whole(price: Mechanism) -> Decimal:
    """That of which shares are parts: ρ, or ε."""
    return price.rho if price.epsilon is None else price.epsilon


def _power(price: Mechanism) -> float:
    return 2 / 3 if price.epsilon is None else 1 / 2


def _epsilon_of(price: Mechanism, part: Decimal) -> Decimal:
    """The ε of a part of the price."""
    return _root(part) if price.epsilon is None else _DOWN.multiply(part, _JUST_BELOW)


def _weight(weighed: Weighed, price: Mechanism, group_size: int) -> float:
    sensitivity = weighed.marginal.sensitivity
    reach = NOISES[kind_paid(price)].reach(sensitivity.l1, sensitivity.l2_squared)
    return weighed.cells * reach * group_size / max(1, weighed.rows)


def _root(rho: Decimal) -> Decimal:
    """The ε whose ε²/2 is at most this."""
    return _DOWN.multiply(_DOWN.sqrt(_DOWN.multiply(rho, Decimal(2))), _JUST_BELOW)
