"""The meaning of an account for one person: how often somebody who sees all answers wins a bet on their presence.

A coin decides whether the person's rows are there. Let P(E) be the probability that a gambler who sees the answers says
"there" if they are, and Q(E) if they are not. The bet is won with probability (P(E) + 1 − Q(E))/2. By (ε, δ)-privacy
P(E) ≤ e^ε·Q(E) + δ and 1 − Q(E) ≤ e^ε·(1 − P(E)) + δ; the sum of both says that this is at most (e^ε + δ)/(1 + e^ε).
"""

from decimal import ROUND_CEILING, Context, Decimal

from rules.accounting.accountant import Limit
from rules.accounting.budgets import PHRASES
from rules.policy.model import Policy

MOST_PROTECTING = Decimal(5)  # ε, above which a bet may win more than 99 of 100 times
_ENOUGH = Decimal(50)  # an ε from which on the bet is as good as won
_UP = Context(prec=28, rounding=ROUND_CEILING)


def most_wins(limit: Limit) -> Decimal:
    """Of 100 bets so many are won at most, rounded up.

    Example:
        >>> [round(most_wins(Limit(Decimal(epsilon), Decimal("1e-6"))), 2) for epsilon in ("0.1", "1", "5")]
        [Decimal('52.50'), Decimal('73.11'), Decimal('99.33')]
    """
    odds = _UP.exp(min(limit.epsilon, _ENOUGH))
    return min(Decimal(100), _UP.divide(_UP.multiply(Decimal(100), _UP.add(odds, limit.delta)), odds + 1))


def wins_words(limit: Limit) -> str:
    """The same as whole wins.

    Example:
        >>> [wins_words(Limit(Decimal(epsilon))) for epsilon in (1, 5, 6)]
        ['73', '99', 'more than 99']
    """
    return "more than 99" if limit.epsilon > MOST_PROTECTING else f"{most_wins(limit):.0f}"


def bet_words(limit: Limit, policy: Policy) -> str:
    """One line on what all answers of a period mean for one person."""
    phrase = PHRASES[policy.budget.per]
    after = f"After all answers of{phrase}" if phrase else "After all answers"
    bet = f"{after}, a bet on one {whose(policy)}'s presence"
    if limit.epsilon > MOST_PROTECTING:
        return f"{bet} may win {wins_words(limit)} of 100 times: this budget no longer protects against that bet."
    return f"{bet} wins at most {wins_words(limit)} of 100 times; a coin wins 50."


def whose(policy: Policy) -> str:
    """The protected individual: one row of a person is not the person."""
    return "row" if policy.unit == "row" else "person"
