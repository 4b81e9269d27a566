"""`noisegate disclosure`, beside a proxy that serves: what is published of a deployment, and what is not."""

import json
import re
from decimal import Decimal
from pathlib import Path

import psycopg

from proxy import __version__
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import command, noisegate

RULES = shop_data.RULES.replace("{epsilon: 1000, delta: 1e-6}", "{epsilon: 4, delta: 1e-6, per: month}").replace(
    "epsilon: 500", "epsilon: 1"
)


def test_an_entry_has_what_is_promised_and_what_was_spent_and_no_name(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn, rules=RULES) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            session.execute("SELECT count(*) FROM customers")
        rules = str(running.rules)
        entry = json.loads(command("disclosure", rules, "--json", database=shop.reader_dsn).stdout)
        text = command("disclosure", rules, database=shop.reader_dsn).stdout

    guarantee, accounts = entry["guarantee"], {line["account"]: line for line in entry["budgets"]["accounts"]}
    assert (guarantee["unit"], guarantee["level"][:5]) == ("customers.id", "user:")
    assert "add or remove" in guarantee["neighbours"] and "(ε, δ)" in guarantee["definition"]
    together = accounts["all analysts together"]
    assert {name: together[name] for name in ("epsilon", "delta", "period")} == {
        "epsilon": "4", "delta": "0.000001", "period": "month",
    }  # fmt: skip
    assert together["bets_won_of_100"] == "98"
    assert Decimal(1) <= Decimal(together["epsilon_spent"]) == Decimal(together["epsilon_spent_ever"]) < Decimal("1.01")
    each = [line for line in entry["budgets"]["accounts"] if line["account"] == "each analyst"]
    assert [(line["epsilon"], line["how_many"], line["bets_won_of_100"]) for line in each] == [
        ("4", 1, "98"),
        ("1", 1, "73"),
    ]
    assert entry["deployment"]["charges"] == 1 and entry["deployment"]["data_curator"] is None
    assert any("threshold" in line["mechanism"] for line in entry["mechanisms"]["releases"])
    tables = {line["table"]: (line["access"], line["rows_of_a_unit"]) for line in entry["data"]["tables"]}
    assert tables["orders"] == ("protected", "at most 40")
    assert tables["customers"] == ("protected, 1 hidden", "by a unique key, or chosen privately")
    assert tables["products"] == ("public: exact", "-")
    assert entry["trust"]["model"] == "central"
    assert entry["versions"]["noisegate"] == __version__ and set(entry["versions"]) > {"opendp", "postgresql"}
    assert not re.search(r"\b(ada|bob)\b", text + json.dumps(entry)) and "SCRAM" not in text
    for line in (
        "# Differential privacy disclosure",
        "## Guarantee",
        "| unit | customers.id |",
        "| data curator | *to be",
    ):
        assert line in text
    assert "| all analysts together | 1 | 4 | 0.000001 | month |" in text


def test_what_cannot_be_spent_by_delta_or_by_people_is_no_part_of_an_entry(shop: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.rules_file(tmp_path, RULES.replace(", delta: 1e-6, per: month", "").replace(", delta: 1e-9", ""))
    assert command("ledger", "init", str(rules), database=shop.reader_dsn).returncode == 0

    entry = json.loads(command("disclosure", str(rules), "--json", database=shop.reader_dsn).stdout)

    assert "pure" in entry["guarantee"]["definition"] and "for ever" in entry["guarantee"]["definition"]
    assert "zCDP" not in entry["mechanisms"]["accounting"]
    assert not any("threshold on" in line["mechanism"] for line in entry["mechanisms"]["releases"])
    assert entry["deployment"]["first_charge"] == "none yet" and entry["deployment"]["charges"] == 0
