"""`suggest --epsilon`: what a look finds, that it is one row of each unit, and that the ledger has all of its price."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from rules.kernel.ground import Ground
from rules.mechanisms.release_plan import Measure, PrivateGroups, PublicGroups
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.policy.look_bins import ColumnLook
from rules.policy.model import Policy
from rules.policy.suggest import looks_for, suggest_rules
from rules.replay import Kernel
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.support.running import command

UNIT = shop_data.policy().unit.rpartition(".")[0]
VERIFIER = str((shop_data.policy().analysts["ada"].password or ("",))[0])


def drafted(text: str) -> Policy:
    return shop_data.policy(rules=text.replace("${ADA_VERIFIER}", VERIFIER))


def look(shop: RealDatabase, folder: Path, *options: str) -> tuple[int, str, str]:
    place = ("--ledger", str(folder / "rules.ledger"))
    done = command("suggest", "customers", *place, *options, database=shop.reader_dsn)
    return done.returncode, done.stdout, done.stderr


def test_a_look_counts_one_row_of_each_unit_in_bins_that_no_row_decides(shop: RealDatabase) -> None:
    catalog = catalog_of(shop.reader_dsn)
    policy = drafted(suggest_rules(catalog, catalog.tables[0].name.__class__("public", UNIT)))
    looks = looks_for(catalog, policy, with_values=True)
    assert {look.kind for look in looks} == {"rows", "numbers", "years", "values"}
    for look in looks:
        (block,) = planned(look, policy, shop).blocks
        assert isinstance(block.groups, PrivateGroups if look.kind == "values" else PublicGroups)
        for measure in block.measures:
            assert isinstance(measure, Measure)
            assert (measure.sensitivity, measure.epsilon) == (measure.factor, Decimal(1) / len(block.measures)), look


def planned(each: ColumnLook, policy: Policy, shop: RealDatabase) -> Plan:
    delta = Decimal("1e-7") if each.kind == "values" else Decimal(0)
    groups = 1 if each.kind == "values" else None
    asked = Request(
        each.sql, ("pg_catalog",), epsilon=Decimal(1), delta=delta, rows_per_unit=1, groups_per_unit=groups
    )  # fmt: skip
    catalog = catalog_of(shop.reader_dsn)
    made = plan(asked, policy, catalog, Kernel(Ground(policy, catalog)))
    assert isinstance(made, Plan)
    return made


def test_a_draft_has_what_the_look_has_found_and_the_ledger_its_price(shop: RealDatabase, tmp_path: Path) -> None:
    code, draft, told = look(shop, tmp_path, "--epsilon", "4")
    assert code == 0, told
    policy = drafted(draft)
    amount = policy.tables["orders"].columns["amount"]
    with shop.connect() as connection:
        beyond, whole = connection.execute(
            "SELECT count(*) FILTER (WHERE amount < %s OR amount > %s), count(*) FROM orders",
            (amount.lower, amount.upper),
        ).fetchone() or (0, 0)
    assert amount.upper is not None and beyond < whole / 20
    assert policy.tables["orders"].rows_per_unit is not None and not policy.tables["orders"].rows_auto

    (tmp_path / "rules.yaml").write_text(draft.replace("${ADA_VERIFIER}", VERIFIER))
    shown = command("ledger", "show", str(tmp_path / "rules.yaml"), "--json", database=shop.reader_dsn)
    spent = {load["account"]: load["spent"] for load in json.loads(shown.stdout)["accounts"]}
    assert spent["noisegate (looks)"] == spent["all together"]
    assert 0 <= 4 - Decimal(spent["all together"]) < Decimal("1e-6")
    assert "charged to" in draft and "no row was read" not in draft


def test_a_look_that_the_ledger_cannot_pay_in_full_is_not_begun(shop: RealDatabase, tmp_path: Path) -> None:
    code, draft, told = look(shop, tmp_path, "--epsilon", "21")
    assert (code, draft) == (1, "")
    assert "is more than what is left on this ledger" in told


@pytest.mark.parametrize("options", [("--epsilon", "0"), ("--epsilon", "1", "--delta", "0.5")])
def test_a_price_that_is_none_is_refused(shop: RealDatabase, tmp_path: Path, options: tuple[str, ...]) -> None:
    assert look(shop, tmp_path, *options)[0] == 2
