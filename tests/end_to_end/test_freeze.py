"""A schema that changes under a running proxy: what appears is hidden, logged, and shown, until somebody locks it."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import make_shop
from tests.console.test_admin_console import ROOT
from tests.support import shop as shop_data
from tests.support.running import command, noisegate

LATER = """
ALTER TABLE products ADD margin numeric DEFAULT 7;
ALTER TABLE customers ADD salary integer DEFAULT 1000;
ALTER TABLE orders ALTER amount TYPE numeric(12,2);
CREATE OR REPLACE VIEW v AS SELECT id, amount AS n FROM orders;
"""
RULES = ROOT.replace("  products: public\n", "  products: public\n  v: view\n")


@pytest.mark.parametrize("is_locked", [True, False])
def test_what_appears_is_hidden_until_it_is_acknowledged(
    real_cluster: Cluster, tmp_path: Path, *, is_locked: bool
) -> None:
    shop = make_shop(real_cluster, f"frozen_{is_locked}".lower())
    with shop.connect() as owner:
        owner.execute("CREATE VIEW v AS SELECT id, amount + 1 AS n FROM orders")
        owner.execute("GRANT SELECT ON v TO noisegate_reader")
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    if is_locked:
        assert command("lock", str(rules), database=shop.reader_dsn).returncode == 0
    with noisegate(tmp_path, shop.reader_dsn, rules=RULES, name=shop.name) as running:
        assert is_locked != any("there is no rules.lock" in line for line in running.lines)
        with (
            psycopg.connect(running.dsn("ada"), autocommit=True) as ada,
            psycopg.connect(running.dsn("ada", user="root", dbname="noisegate"), autocommit=True) as root,
            shop.connect() as owner,
        ):
            assert ada.execute("SELECT count(*) FROM v").fetchone()
            owner.execute("DROP VIEW v")
            owner.execute(LATER.encode())
            owner.execute("GRANT SELECT ON v TO noisegate_reader")
            root.execute(b"REFRESH TWIN")

            _nothing_shows(ada.execute)
            told = {(row[0], row[1]) for row in root.execute(b"SHOW UNSEEN").fetchall()}
            assert told == {("products", "margin"), ("customers", "salary"), ("orders", "amount"), ("v", None)}
            assert {event["place"] for event in running.events("hidden_until_locked")} == {
                "products.margin", "customers.salary", "orders.amount", "v"
            }  # fmt: skip
            since = "since rules.lock was written" if is_locked else "since the rules were read"
            assert sum(since in line for line in running.lines) == 4
            if is_locked:
                checked = command("check", str(rules), database=shop.reader_dsn)
                assert checked.returncode == 0
                assert "tables.products.columns.margin: appeared (numeric) since rules.lock" in checked.stdout
                root.execute(b"RELOAD")
                _nothing_shows(ada.execute)
                locked = command("lock", str(rules), database=shop.reader_dsn)
                assert "products.margin: numeric, new" in locked.stdout
            root.execute(b"RELOAD")

            assert root.execute(b"SHOW UNSEEN").fetchall() == []
            assert ada.execute("SELECT min(margin) FROM products").fetchone() == (7,)
            assert ada.execute("SELECT count(salary), (SELECT sum(amount) FROM orders) FROM customers").fetchone()
            assert ada.execute("SELECT count(*) FROM v").fetchone()


def _nothing_shows(ask: Callable[[str], object]) -> None:
    for sql, error in (
        ("SELECT margin FROM products", psycopg.errors.UndefinedColumn),
        ("SELECT sum(salary) FROM customers", psycopg.errors.UndefinedColumn),
        ("SELECT sum(amount) FROM orders", psycopg.errors.UndefinedColumn),
        ("SELECT count(*) FROM v", psycopg.errors.UndefinedTable),
    ):
        with pytest.raises(error):
            ask(sql)
    ask("SELECT price FROM products LIMIT 1")
    ask("SELECT count(*) FROM orders")


def test_no_schema_is_locked_that_the_rules_do_not_fit(real_cluster: Cluster, tmp_path: Path) -> None:
    shop, rules = make_shop(real_cluster, "locked_out"), shop_data.rules_file(tmp_path)
    assert command("lock", str(rules), database=shop.reader_dsn).returncode == 0
    before = rules.with_suffix(".lock").read_text()
    with shop.connect() as owner:
        owner.execute("ALTER TABLE products ADD phone text")

    checked = command("check", str(rules), database=shop.reader_dsn)
    refused = command("lock", str(rules), database=shop.reader_dsn)

    assert checked.returncode == 0
    assert "tables.products: an error once the schema is locked again: " in checked.stdout
    assert (refused.returncode, "is not written: the proxy would not start with it" in refused.stderr) == (1, True)
    assert rules.with_suffix(".lock").read_text() == before
    assert command("lock", str(rules), "--force", database=shop.reader_dsn).returncode == 0
    assert rules.with_suffix(".lock").read_text() != before
    assert command("check", str(rules), database=shop.reader_dsn).returncode == 1
