"""Labels of text that the rules do not list: found by threshold, paid for, and in the rows of the synopsis."""

from decimal import Decimal

import pytest

from proxy.twin.synthetic import SyntheticTable
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.mechanisms.additive import mechanisms_of
from rules.mechanisms.release_plan import Measure
from rules.mechanisms.threshold import find_threshold
from rules.policy.finding import Severity
from rules.policy.model import Policy
from rules.replay import Kernel
from rules.synopses.check import check_synopses
from rules.synopses.columns import MOST_LABELS
from rules.synopses.labels import LabelSearch, labels_in, plan_labels
from rules.synopses.plan import plan_synopsis
from rules.synopses.shares import price_of, price_of_synopsis
from tests.conftest import RealDatabase
from tests.mechanisms.sources import ConstantNoise
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.synopses.stage import RULES, SynopsisStage, synopsis_stage

OPEN = RULES.replace("      city: {values: [Berlin, Lyon, Porto, Graz]}\n", "")
OPEN = OPEN.replace("epsilon: 30,", "epsilon: 100,").replace("epsilon: 12", "epsilon: 60")
TABLES = (
    "synopses: {explore: {epsilon: 50, tables: {customers: [city, segment, name], orders: [customers.city, status]}}}\n"
)
CITIES = {"Berlin", "Lyon", "Porto", "Graz"}

stage = pytest.fixture(synopsis_stage)


@pytest.fixture(scope="module")
def catalog(shop: RealDatabase) -> Catalog:
    return catalog_of(shop.dsn)


async def test_labels_are_found_and_stand_in_the_rows(stage: SynopsisStage) -> None:
    rules = stage.rulebook(OPEN + TABLES)
    assert OPEN != RULES
    await stage.shelf.follow(rules)
    await stage.started().follow(rules)

    plan = plan_synopsis("explore", rules.policy, rules.catalog)
    kept = await stage.maker.find(plan)
    assert kept is not None
    found = {name: texts for (_, name), texts in labels_in(kept.release, plan).items()}
    assert found["city"] == tuple(sorted(CITIES))
    assert len(found["name"]) < 3, "a name of one person alone is a label as rarely as delta says"
    customers, orders = stage.schema.tables
    rows = [dict(zip(customers.columns, line.split("\t")[2:], strict=True)) for line in _lines(customers)]
    assert CITIES <= {row["city"] for row in rows} <= CITIES | {"other", "\\N"}
    assert "other" in {row["name"] for row in rows}
    assert orders.link is not None


def _lines(table: SyntheticTable) -> list[str]:
    return table.rows.decode().splitlines()


async def test_they_are_one_charge_with_the_counts_and_their_delta_is_paid(stage: SynopsisStage) -> None:
    rules = stage.rulebook(OPEN + TABLES)
    await stage.shelf.follow(rules)

    charged = [(await stage.charges(who)) for who in ("synopsis explore", "ada", "bob")]
    whole = price_of_synopsis(plan_synopsis("explore", rules.policy, rules.catalog), rules.policy)
    assert [len(charges) for charges in charged] == [1, 1, 1]
    assert charged[0][0].fresh == charged[1][0].seen == charged[2][0].seen == (whole,)
    assert whole.delta == 2 * rules.policy.statement_delta() > 0
    assert whole.rho == price_of(Decimal(50), rules.policy).rho


def test_searches_and_counts_cost_the_price_and_no_more(catalog: Catalog) -> None:
    policy = shop_data.policy(rules=OPEN + TABLES)
    plan = plan_synopsis("explore", policy, catalog)

    searches = _searches(policy, catalog)

    whole = price_of(Decimal(50), policy).rho
    spent = sum(cost.rho for search in searches for cost in mechanisms_of(search.block))
    assert whole * Decimal("0.09999") < spent <= whole / 10
    assert [str(table) for table, _ in plan.open] == ["customers", "customers"], "once, however often it is listed"


def _searches(policy: Policy, catalog: Catalog) -> tuple[LabelSearch, ...]:
    plan = plan_synopsis("explore", policy, catalog)
    return plan_labels(plan, policy, catalog, Kernel(Ground(policy, catalog)))


def test_only_what_many_units_have_is_a_label_and_the_most_frequent_ones(catalog: Catalog) -> None:
    policy = shop_data.policy(rules=OPEN + TABLES)
    search = _searches(policy, catalog)[0]
    units = search.block.measures[search.groups.measure]
    assert isinstance(units, Measure)
    least = find_threshold(units, search.groups.delta)
    rows: list[tuple[bytes | None, ...]] = [
        (f"city {number}".encode(), str(least - 3 + number).encode()) for number in range(100)
    ]
    rows += [(None, b"100000"), (b"a {0}", b"100000")]

    found = search.find(rows, ConstantNoise(0), group_size=1, codec="utf-8")

    assert len(found) == MOST_LABELS
    assert set(found) == {f"city {number}" for number in range(100 - MOST_LABELS, 100)}
    assert search.find(rows[:5], ConstantNoise(0), group_size=1, codec="utf-8") == ("city 3", "city 4")
    assert search.find(rows[:3], ConstantNoise(0), group_size=1, codec="utf-8") == ()


def test_check_says_from_how_many_units_on_and_without_delta_what_to_do(catalog: Catalog) -> None:
    findings = list(check_synopses(shop_data.policy(rules=OPEN + TABLES), catalog))
    assert not [finding for finding in findings if finding.severity is Severity.ERROR]
    assert [finding for finding in findings if "customers.city: its labels are found in the data" in finding.message]

    pure = (OPEN + TABLES).replace(", delta: 1e-6", "").replace(", delta: 1e-9", "")
    errors = [
        synopsis
        for synopsis in check_synopses(shop_data.policy(rules=pure), catalog)
        if synopsis.severity is Severity.ERROR
    ]
    assert "its values are not known" in errors[0].message
