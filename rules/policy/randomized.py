"""Columns whose values people have randomized themselves: by which law, so that estimates can undo it."""

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rules.local.laws import MOST_EPSILON, Law, bit_law, kary_law, unary_law
from rules.policy.logins import Model


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError("must be a finite number")
    return value


class Randomized(Model):
    """How people randomized their answers: one of k values, a bit for each of k, one bit, or a number as a bit."""

    by: Literal["k-ary", "unary", "bit", "mean"]
    epsilon: Annotated[Decimal, Field(gt=0, le=MOST_EPSILON), AfterValidator(_finite)]
    values: Annotated[tuple[str | int, ...], Field(min_length=2)] | None = None
    lower: Annotated[Decimal, AfterValidator(_finite)] | None = None
    upper: Annotated[Decimal, AfterValidator(_finite)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.values is not None) != (self.by in ("k-ary", "unary")):
            raise ValueError("k-ary and unary need values, and bit and mean have none")
        if (self.lower is not None and self.upper is not None) != (self.by == "mean"):
            raise ValueError("mean needs lower and upper, and the others have none")
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError(f"lower ({self.lower}) must be below upper ({self.upper})")
        if self.values is not None and len(set(map(str, self.values))) < len(self.values):
            raise ValueError("a value is listed twice")
        return self

    @property
    def law(self) -> Law:
        """The law of its reports, as the library draws them."""
        match self.by:
            case "k-ary":
                return kary_law(len(self.values or ()), self.epsilon)
            case "unary":
                return unary_law(self.epsilon)
        return bit_law(self.epsilon)
