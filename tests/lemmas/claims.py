"""Claims that z3 decides: premises and a conclusion over integers or reals of any size."""

from collections.abc import Callable
from dataclasses import dataclass

import z3

MOST_MILLISECONDS = 60_000  # each takes some hundredths of a second


@dataclass(frozen=True)
class Claim:
    """What follows from premises, for all values of the variables in them."""

    premises: tuple[z3.BoolRef, ...]
    conclusion: z3.BoolRef

    def counter_example(self) -> z3.ModelRef | None:
        """Values for which the premises hold and the conclusion does not; None where z3 proves that there are none."""
        return _model(*self.premises, z3.Not(self.conclusion))

    def example(self) -> z3.ModelRef | None:
        """Values for which the premises hold: a claim without any would say nothing."""
        return _model(*self.premises)


Maker = Callable[[], Claim]


def follows(*premises: z3.BoolRef, conclusion: z3.BoolRef) -> Claim:
    return Claim(premises, conclusion)


def size(number: z3.ArithRef) -> z3.ArithRef:
    return z3.If(number >= 0, number, -number)


def smaller(one: z3.ArithRef, other: z3.ArithRef) -> z3.ArithRef:
    return z3.If(one <= other, one, other)


def larger(one: z3.ArithRef, other: z3.ArithRef) -> z3.ArithRef:
    return z3.If(one >= other, one, other)


def _model(*conditions: z3.BoolRef) -> z3.ModelRef | None:
    solver = z3.Solver()
    solver.set("timeout", MOST_MILLISECONDS)
    solver.set("random_seed", 1)
    solver.add(*conditions)
    answer = solver.check()
    assert answer != z3.unknown, f"z3 could not decide: {solver.reason_unknown()}"
    return solver.model() if answer == z3.sat else None
