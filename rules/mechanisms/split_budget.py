"""How the ε of a statement is shared among its measures: by weights from the statement and the rules alone."""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

# A share has at most this many digits, so that sums of shares are exact for as long as the ledger lives.
_DIGITS = 12
_DOWNWARD = Context(prec=_DIGITS, rounding=ROUND_FLOOR)


def share(epsilon: Decimal, weights: Sequence[Fraction]) -> tuple[Decimal, ...]:
    """Parts of ε in proportion to the weights, each rounded down: together never more than ε.

    Example:
        >>> share(Decimal("0.1"), [Fraction(1), Fraction(1)])
        (Decimal('0.05'), Decimal('0.05'))
        >>> share(Decimal("0.1"), [Fraction(1), Fraction(1), Fraction(1)])
        (Decimal('0.0333333333333'), Decimal('0.0333333333333'), Decimal('0.0333333333333'))
    """
    if not weights or min(weights) <= 0:
        raise ValueError("every measure needs a weight above zero")
    total = sum(weights, Fraction(0))
    return tuple(_down(Fraction(epsilon) * weight / total) for weight in weights)


def _down(part: Fraction) -> Decimal:
    return _DOWNWARD.divide(Decimal(part.numerator), Decimal(part.denominator)).normalize(_DOWNWARD)
