"""Amounts of ε and δ, as the rules file writes them."""

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, Field


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError("must be a finite number")
    return value


Epsilon = Annotated[Decimal, Field(gt=0, le=1000), AfterValidator(_finite)]
Delta = Annotated[Decimal, Field(ge=0, lt=1), AfterValidator(_finite)]
