"""Powers and exponentials are bounded by what they are made of."""

from math import exp

from rules.mechanisms.noised_outputs import Average
from tests.planner.planned import Planner


def test_an_exponential_lies_between_those_of_its_bounds(planner: Planner) -> None:
    (output,) = planner.block("SELECT avg(exp(amount / 500)) FROM orders").outputs

    assert isinstance(output, Average)
    assert 0.99 < output.low <= 1
    assert exp(1) - 0.001 < output.high <= exp(1)
