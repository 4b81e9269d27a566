"""How far estimates from local reports lie from the truth, by kind of report and ε, against the formula.

python -m tests.bench.local
python -m tests.bench.local --people 20000 --held 500
"""

import argparse
from decimal import Decimal
from math import sqrt

import numpy as np

from rules.local import Law, kary_law, unary_law
from rules.mechanisms.noised_outputs import Estimate
from rules.release.estimates import compute, local_variance


def main() -> None:
    """Measure, and print one line for each ε."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.local", description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=200_000, help="who report (default: 200000)")
    parser.add_argument("--held", type=int, default=20_000, help="of whom so many hold the value (default: 20000)")
    parser.add_argument("--values", type=int, default=9, help="of the list (default: 9)")
    parser.add_argument("--times", type=int, default=2000, help="tables of each kind (default: 2000)")
    given = parser.parse_args()
    print(f"{'epsilon':>8}{'k-ary':>10}{'formula':>10}{'unary':>10}{'formula':>10}   standard deviation of an estimate")
    for epsilon in map(Decimal, ("0.5", "1", "2")):
        numbers = (_errors(law, given) for law in (kary_law(given.values, epsilon), unary_law(epsilon)))
        told = "".join(f"{measured:>10.0f}{formula:>10.0f}" for measured, formula in numbers)
        print(f"{epsilon:>8}{told}", flush=True)


def _errors(law: Law, given: argparse.Namespace) -> tuple[float, float]:
    generator = np.random.default_rng(1)
    p, q, rest = float(law.p), float(law.q), given.people - given.held
    hits = generator.binomial(given.held, p, given.times) + generator.binomial(rest, q, given.times)
    estimate = Estimate(0, (1,), law.p, law.q, chance=2, others=3)
    found = [float(compute(estimate, (int(each), given.people, 0, 0)) or 0) for each in hits]
    return float(np.std(found)), sqrt(local_variance(estimate, given.held * p + rest * q, given.people))


if __name__ == "__main__":
    main()
