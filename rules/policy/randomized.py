"""Columns whose values people have randomized themselves: by which law, so that estimates can undo it."""

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rules.local.laws import MOST_EPSILON, Law, bit_law, check_sketch, hashed_bit, kary_law, sketch_law, unary_law
from rules.policy.logins import Model


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError("must be a finite number")
    return value


class Randomized(Model):
    """The way people randomized answers: one of k values, a bit for each of k, a bit, a number, or a sketch."""

    by: Literal["k-ary", "unary", "bit", "mean", "sketch"]
    epsilon: Annotated[Decimal, Field(gt=0, le=MOST_EPSILON), AfterValidator(_finite)]
    values: Annotated[tuple[str | int, ...], Field(min_length=2)] | None = None
    lower: Annotated[Decimal, AfterValidator(_finite)] | None = None
    upper: Annotated[Decimal, AfterValidator(_finite)] | None = None
    hashes: int | None = None  # of a sketch: how many functions, on how many bits, by which key
    width: int | None = None
    key: str | None = None
    index: str | None = None  # the column that says by which function a word was hashed

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.values is not None) != (self.by in ("k-ary", "unary")):
            raise ValueError("k-ary and unary need values; the others cannot have them")
        if (self.lower is not None and self.upper is not None) != (self.by == "mean"):
            raise ValueError("mean needs lower and upper; the others cannot have them")
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError(f"lower ({self.lower}) must be below upper ({self.upper})")
        is_set = [parameter is not None for parameter in (self.hashes, self.width, self.key, self.index)]
        if not all(is_set) if self.by == "sketch" else any(is_set):
            raise ValueError("a sketch needs hashes, width, key and index; the others cannot have them")
        if self.hashes is not None and self.width is not None and self.key is not None:
            check_sketch(self.hashes, self.width, self.key)
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
            case "sketch":
                return sketch_law(self.width or 0, self.epsilon)
        return bit_law(self.epsilon)

    def places_of(self, word: str) -> tuple[int, ...]:
        """By hash function the bit of a word."""
        assert self.hashes is not None and self.width is not None and self.key is not None, "a sketch has them"
        key = bytes.fromhex(self.key)
        return tuple(hashed_bit(word, number, self.width, key) for number in range(self.hashes))
