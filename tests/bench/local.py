"""How far estimates from local reports lie from the truth, by kind of report and ε, against the formula.

python -m tests.bench.local
python -m tests.bench.local --people 20000 --held 500
"""

import argparse
from decimal import Decimal
from math import sqrt

import numpy as np

from rules.local import Law, kary_law, sketch_law, unary_law
from rules.mechanisms.noised_outputs import Estimate
from rules.release.estimates import compute, local_variance

_HASHES, _WIDTH = 64, 256


def main() -> None:
    """Measure, and print one line for each ε."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.local", description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=200_000, help="who report (default: 200000)")
    parser.add_argument("--held", type=int, default=20_000, help="of whom so many hold the value (default: 20000)")
    parser.add_argument("--values", type=int, default=9, help="of the list (default: 9)")
    parser.add_argument("--times", type=int, default=2000, help="tables of each kind (default: 2000)")
    parser.add_argument("--words", type=int, default=1000, help="that others hold, for sketches (default: 1000)")
    given = parser.parse_args()
    kinds = "".join(f"{each:>10}{'formula':>10}" for each in ("k-ary", "unary", "sketch"))
    print(f"{'epsilon':>8}{kinds}   standard deviation of an estimate")
    for epsilon in map(Decimal, ("0.5", "1", "2")):
        numbers = [_errors(law, given) for law in (kary_law(given.values, epsilon), unary_law(epsilon))]
        numbers.append(_of_sketches(epsilon, given))
        told = "".join(f"{measured:>10.0f}{formula:>10.0f}" for measured, formula in numbers)
        print(f"{epsilon:>8}{told}", flush=True)


def _errors(law: Law, given: argparse.Namespace) -> tuple[float, float]:
    generator = np.random.default_rng(1)
    p, q, rest = float(law.p), float(law.q), given.people - given.held
    hits = generator.binomial(given.held, p, given.times) + generator.binomial(rest, q, given.times)
    return _deviations(law, hits, given)


def _of_sketches(epsilon: Decimal, given: argparse.Namespace) -> tuple[float, float]:
    """With hash functions of a new key for each table, by which some of the other words share the word's bit."""
    generator, law, bits = np.random.default_rng(1), sketch_law(_WIDTH, epsilon), unary_law(epsilon)
    rest, hits = given.people - given.held, []
    for _ in range(given.times):
        shared = generator.binomial(given.words, 1 / _WIDTH, _HASHES)  # words, by function
        colliding = int(sum(generator.binomial(rest // _HASHES, shared / given.words)))
        own = generator.binomial(given.held + colliding, float(bits.p))
        hits.append(own + generator.binomial(rest - colliding, float(bits.q)))
    return _deviations(law, np.array(hits), given)


def _deviations(law: Law, hits: np.ndarray, given: argparse.Namespace) -> tuple[float, float]:
    p, q, rest = float(law.p), float(law.q), given.people - given.held
    estimate = Estimate(0, (1,), law.p, law.q, chance=2, others=3)
    found = [float(compute(estimate, (int(hit), given.people, 0, 0)) or 0) for hit in hits]
    return float(np.std(found)), sqrt(local_variance(estimate, given.held * p + rest * q, given.people))


if __name__ == "__main__":
    main()
