"""How far charts from a cube lie from the truth, and charts that are bought one by one for the same price.

python -m tests.bench.cubes

Counts and sums of the demo's orders by all sets of up to two keys; the noise is drawn, what is cut is not looked at.
"""

import argparse
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import mean

import psycopg

import proxy.demo
from proxy.twin.embedded import Cluster
from rules.mechanisms.additive import AdditiveNoise, HalvedNoise, noise_of
from rules.mechanisms.cost import mechanisms_of
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.release_plan import Measure
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.synopses.cubes import KeySet, plan_cube
from tests.catalogs import catalog_of
from tests.policy.test_load import VERIFIER

_CUBE = """
synopses:
  daily: {epsilon: EPSILON, cube: [ordered_at by month, channel, customers.city], measures: MEASURES, orders: [1, 2], table: orders}
"""  # noqa: E501
_FILES = Path(proxy.demo.__file__).parent


def main() -> None:
    """Measure, and print one line for each ε."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cubes", description=__doc__.partition("\n")[0])
    parser.parse_args()
    cluster = Cluster.start()
    try:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute((_FILES / "shop.sql").read_bytes())
            (rows, euros) = connection.execute("SELECT count(*), sum(amount) FROM orders").fetchone() or (0, 0)
        print(f"{'epsilon':>8}{'one key':>12}{'one by one':>12}{'two keys':>12}{'one by one':>12}")
        for epsilon in ("0.5", "2", "8"):
            shares = _shares(epsilon, cluster.dsn(), (float(rows), float(euros)))
            print(f"{epsilon:>8}" + "".join(f"{share:>12.1%}" for share in shares), flush=True)
    finally:
        cluster.stop()


def _shares(epsilon: str, dsn: str, totals: tuple[float, float]) -> Iterator[float]:
    catalog = catalog_of(dsn)
    policy = _policy(epsilon, dsn)
    cube = plan_cube("daily", policy, catalog)
    charts = [(key_set, item) for key_set in cube.sets for item in ("count(*)", 'sum(t0."amount")')]
    gaussian = policy.model_copy(update={"noise": "gaussian"})
    alone: dict[tuple[str, ...], list[float]] = {}
    for key_set, item in charts:
        text = key_set.text.replace('count(*), sum(t0."amount")', item)
        made = _at(cube.price.rho / len(charts), text, gaussian, catalog)
        (measure,) = made.blocks[0].measures
        assert isinstance(measure, Measure)
        total = totals[item != "count(*)"] * (100 if item != "count(*)" else 1)  # cents
        alone.setdefault(key_set.keys, []).append(_error(noise_of(measure, group_size=1), key_set.cells) / total)
    for size in (1, 2):
        sets = [key_set for key_set in cube.sets if len(key_set.keys) == size]
        yield mean(error for key_set in sets for error in _of_cube(key_set, totals))
        yield mean(error for key_set in sets for error in alone[key_set.keys])


def _policy(epsilon: str, dsn: str) -> Policy:
    rules = (_FILES / "rules.yaml").read_text(encoding="utf-8")
    rules += _CUBE.replace("EPSILON", epsilon).replace("MEASURES", "[count, sum(amount)]")
    return load_policy(rules, "rules.yaml", {"NOISEGATE_DATABASE": dsn, "ADA_VERIFIER": VERIFIER})


def _at(rho: Decimal, text: str, policy: Policy, catalog: object) -> Plan:
    made = plan(Request(text, ("pg_catalog",), epsilon=(2 * rho).sqrt()), policy, catalog)  # type: ignore[arg-type]
    assert isinstance(made, Plan) and sum(
        mechanism.rho for mechanism in mechanisms_of(made.blocks[0])
    ) <= rho * Decimal("1.000001")
    return made


def _of_cube(of: KeySet, totals: tuple[float, float]) -> Iterator[float]:
    count, centred = (measure for measure in of.block.measures if isinstance(measure, Measure))
    noises = noise_of(centred, group_size=1), noise_of(count, group_size=1)
    yield _error(noises[1], of.cells) / totals[0]
    yield _error(HalvedNoise(*noises, 40_000), of.cells) / totals[1] / 100


def _error(noise: AdditiveNoise | HalvedNoise, cells: int) -> float:
    """The absolute errors of all cells together, as they are drawn."""
    if isinstance(noise, HalvedNoise):
        parts = (_drawn(each, cells) for each in (noise.centred, noise.count))
        return float(sum(abs(noise.sum(*pair)) for pair in zip(*parts, strict=True)))
    return float(sum(map(abs, _drawn(noise, cells))))


def _drawn(noise: AdditiveNoise, cells: int) -> list[int]:
    return [round(Fraction(number, noise.factor)) for number in noise.draw(OpenDPNoise(), cells)]


if __name__ == "__main__":
    main()
