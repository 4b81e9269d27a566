"""Price releases: count each draw of noise as the accountant does, and split a statement's ε among its measures."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final, Self

from rules.frozen import frozen
from rules.mechanisms.release_plan import MOST_GROUPS, Ladder, Top

# Sums of costs: more digits than a thousand million charges of 1e-30 need, and what is still cut is rounded up.
UPWARD = Context(prec=80, rounding=ROUND_CEILING, traps=[])
_DOWN = Context(prec=80, rounding=ROUND_FLOOR)
LEAST_PRICE: Final = Decimal("1e-30")  # of a draw: no double has the scale of much less


_SIX = Context(prec=6, rounding=ROUND_CEILING)


def price(number: Decimal) -> str:
    """A price to be read: six digits are enough, rounded up.

    Example:
        >>> price(Decimal("0.999999999999")), price(Decimal("0.5"))
        ('1', '0.5')
    """
    return f"{_SIX.plus(number).normalize():f}"


@frozen
class Mechanism:
    """One draw as the accountant sees it: (ε, δ) and zCDP's ρ."""

    epsilon: Decimal | None  # None: no pure guarantee, only zCDP may grant it
    delta: Decimal = Decimal(0)
    rho: Decimal = Decimal(0)

    @classmethod
    def pure(cls, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Self:
        """An ε-private draw is ε²/2-zCDP (Bun and Steinke 2016, proposition 1.4); δ is a threshold's."""
        return cls(epsilon, delta, UPWARD.divide(UPWARD.multiply(epsilon, epsilon), Decimal(2)))

    @classmethod
    def choice(cls, epsilon: Decimal) -> Self:
        """The exponential mechanism has bounded range, hence ε²/8-zCDP (Cesar and Rogers 2021, lemma 3.4)."""
        return cls(epsilon, Decimal(0), UPWARD.divide(UPWARD.multiply(epsilon, epsilon), Decimal(8)))

    @classmethod
    def concentrated(cls, epsilon: Decimal) -> Self:
        """A draw that is ε²/2-zCDP, and ε-private for no ε."""
        return cls(None, Decimal(0), cls.pure(epsilon).rho)

    @property
    def is_valid(self) -> bool:
        """Tell whether a draw can have these prices: finite, above zero, and a ρ that belongs to this ε.

        A pure draw has at most ε²/2, and the choice of the most groups ε²/8 for each of them.

        Example:
            >>> Mechanism.pure(Decimal(1)).is_valid, Mechanism.pure(Decimal(-1)).is_valid
            (True, False)
        """
        numbers = (self.delta, self.rho, *([] if self.epsilon is None else [self.epsilon]))
        if not all(number.is_finite() for number in numbers) or not 0 <= self.delta < 1 or self.rho <= 0:
            return False
        if self.epsilon is None:
            return True
        most = self.pure(self.epsilon).rho
        return self.epsilon > 0 and _DOWN.divide(most, Decimal(4 * MOST_GROUPS)) <= self.rho <= most

    @property
    def strength(self) -> Decimal:
        """The ε by which its noise was scaled."""
        return _DOWN.sqrt(_DOWN.multiply(self.rho, Decimal(2))) if self.epsilon is None else self.epsilon


def mechanism_of_top(top: Top) -> Mechanism:
    """Return what it costs to choose groups. ρ is rounded up, to be sure."""
    if not top.is_pure:
        return Mechanism.concentrated(top.epsilon)
    rho = UPWARD.divide(UPWARD.multiply(top.epsilon, top.epsilon), Decimal(8 * top.count))
    return Mechanism(top.epsilon, Decimal(0), rho)


def mechanism_of_ladder(ladder: Ladder) -> Mechanism:
    """Return what it costs to choose a bound, whichever is chosen: it is ε-private, and no exponential mechanism."""
    return Mechanism.pure(ladder.epsilon)


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
    of_one = Fraction(epsilon) / sum(weights)
    return tuple(_down(of_one * weight) for weight in weights)


def _down(part: Fraction) -> Decimal:
    return _DOWNWARD.divide(Decimal(part.numerator), Decimal(part.denominator)).normalize(_DOWNWARD)
