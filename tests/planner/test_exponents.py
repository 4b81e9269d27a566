"""Powers, exponentials, logarithms and roots are bounded by what they are made of."""

from math import cbrt, degrees, exp, log, log2, log10, radians, sqrt

import pytest

from rules.mechanisms.noised_outputs import Average
from tests.planner.planned import Planner


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        ("exp(amount / 500)", 1, exp(1)),
        ("ln(amount + 1)", 0, log(501)),
        ("ln(amount)", log(0.01), log(500)),  # numeric(10, 2): above zero is 0.01 at least
        ("ln(greatest(id, 0))", 0, log(2**63)),
        ("log(least(greatest(id, 0), 1000))", 0, 3),
        ("log10(amount + 10)", 1, log10(510)),
        ("log(2, amount + 1)", 0, log2(501)),
        ("cbrt(amount - 8)", -2, cbrt(492)),
        ("power(amount, 0.5)", 0, sqrt(500)),
        ("power(amount::float8, 1.5)", 0, 500**1.5),
        ("power(amount + 1, -0.5)", 501**-0.5, 1),
        ("power(amount + 2, -1)", 1 / 502, 0.5),
        ("power(amount, -1)", 1 / 500, 100),
        ("degrees(amount)", 0, degrees(500)),
        ("radians(amount - 500)", radians(-500), 0),
        ("sqrt(amount)", 0, sqrt(500)),
    ],
)
def test_a_function_lies_between_its_values_at_the_bounds(
    planner: Planner, number: str, low: float, high: float
) -> None:
    (output,) = planner.block(f"SELECT avg({number}) FROM orders").outputs

    assert isinstance(output, Average)
    assert float(output.low) == pytest.approx(low, rel=1e-4, abs=1e-4)
    assert float(output.high) == pytest.approx(high, rel=1e-4, abs=1e-4)
