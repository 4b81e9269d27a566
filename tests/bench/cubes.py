"""How far charts from a cube lie from the truth, and charts that are bought one by one for the same price.

python -m tests.bench.cubes

Counts and sums of the demo's orders by all sets of up to two keys, by each set alone and made to agree with the others;
the noise is drawn, what is cut is not looked at.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import mean

import psycopg

import proxy.demo
from proxy.twin.embedded import Cluster
from rules.mechanisms.additive import AdditiveNoise, mechanisms_of, noise_of
from rules.mechanisms.cells import ReleasedCells
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.release_plan import Measure, PublicGroups
from rules.mechanisms.weighted_means import HalvedNoise
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.release.cell_labels import Group
from rules.release.least_squares import Observation, agreed
from rules.release.partitions import Partition, asked_partition, common_atoms, partition_within
from rules.synopses.cubes import KeySet, plan_cube
from tests.policy.test_load import VERIFIER
from tests.support.catalogs import catalog_of

_CUBE = """
synopses:
  daily: {epsilon: EPSILON, cube: [ordered_at by month, channel, customers.city], measures: MEASURES, orders: [1, 2], table: orders}
"""  # noqa: E501
_DRAWS = 10  # of all noise
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
        heads = ("one key", "agreeing", "one by one", "two keys", "agreeing", "one by one")
        print(f"{'epsilon':>8}" + "".join(f"{head:>12}" for head in heads))
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
        noise = noise_of(measure, group_size=1)
        alone.setdefault(key_set.keys, []).extend(_error(noise, key_set.cells) / total for _ in range(_DRAWS))
    times = [[_Drawn.draw(key_set) for key_set in cube.sets] for _ in range(_DRAWS)]
    for size in (1, 2):
        sets = [(each, drawn) for drawn in times for each in drawn if len(each.of.keys) == size]
        yield mean(error for each, _ in sets for error in _of_cube(each, [each], totals))
        yield mean(error for each, drawn in sets for error in _of_cube(each, drawn, totals))
        yield mean(error for keys, errors in alone.items() if len(keys) == size for error in errors)


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


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A set, and the noise in its cells: first that of its centred sums, then of its counts."""

    of: KeySet
    noises: tuple[AdditiveNoise, AdditiveNoise]
    numbers: tuple[list[int], list[int]]

    @classmethod
    def draw(cls, of: KeySet) -> "_Drawn":
        count, centred = (measure for measure in of.block.measures if isinstance(measure, Measure))
        noises = noise_of(centred, group_size=1), noise_of(count, group_size=1)
        return cls(of, noises, (_drawn(noises[0], of.cells), _drawn(noises[1], of.cells)))

    def part(self, other: "_Drawn") -> Partition | None:
        """The other's cells, as far as they have numbers of the rows that this one asks for."""
        cells, known = self.of.block.cells, other.of.block.cells
        assert cells is not None and known is not None
        asked = asked_partition(cells, _groups(self.of))
        view = next((view for view in cells.views if view.family == known.family), None)
        released = ReleasedCells.read(known.text() or "")
        if other is self or asked is None or view is None or released is None:
            return asked if other is self else None
        return partition_within(cells, view, released, _groups(other.of), asked)


def _groups(of: KeySet) -> tuple[Group, ...]:
    assert isinstance(of.block.groups, PublicGroups)
    return of.block.groups.rows


def _of_cube(asked: _Drawn, others: Sequence[_Drawn], totals: tuple[float, float]) -> Iterator[float]:
    """What a question shows that asks a set for counts and sums, where these others stand beside it."""
    halves = [_agreed(asked, others, number) for number in (0, 1)]
    yield sum(map(abs, halves[1])) / totals[0]
    halved = HalvedNoise(*asked.noises, 40_000)
    yield sum(abs(float(halved.sum(*pair))) for pair in zip(*halves, strict=True)) / totals[1] / 100


def _agreed(asked: _Drawn, others: Sequence[_Drawn], number: int) -> Sequence[int]:
    """The least squares estimate over all sets that have numbers of the same rows."""
    known = [(each, part) for each in others if (part := asked.part(each)) is not None]
    atoms = common_atoms([part for _, part in known], "UTC")
    observed = {
        each.of.keys: Observation(places, each.numbers[number], each.noises[number])
        for (each, _), places in zip(known, atoms.places, strict=True)
        if places is not None
    }
    own = observed[asked.of.keys].places
    found = agreed(list(observed.values()), own, asked.of.cells, is_regular=atoms.is_regular)
    assert found is not None
    return found.numbers


def _error(noise: AdditiveNoise, cells: int) -> float:
    """The absolute errors of all cells together, as they are drawn."""
    return float(sum(map(abs, _drawn(noise, cells))))


def _drawn(noise: AdditiveNoise, cells: int) -> list[int]:
    return [round(Fraction(number, noise.factor)) for number in OpenDPNoise().draw(noise, cells)]


if __name__ == "__main__":
    main()
