"""The ledger's commands as a DBA runs them, beside a proxy that serves."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from proxy.twin.embedded import Cluster
from rules.sql.read import read
from tests.conftest import RealDatabase, make_shop
from tests.support import shop as shop_data
from tests.support.running import command, noisegate

COUNT = "SELECT count(*) FROM customers WHERE city = 'Berlin'"


def test_a_serving_ledger_is_shown_copied_and_put_back(shop: RealDatabase, tmp_path: Path) -> None:
    anchor = ("--anchor", str(tmp_path / "anchor"))
    copy, lost = tmp_path / "copy", tmp_path / "lost"

    with noisegate(tmp_path, shop.reader_dsn, arguments=anchor) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            session.execute(COUNT.encode())
        rules = str(running.rules)

        def ledger(*arguments: str) -> str:
            done = command("ledger", *arguments, *anchor, database=shop.reader_dsn)
            assert done.returncode == 0, done.stderr
            return done.stdout

        shown = ledger("show", rules, "--charges")
        (charge,) = json.loads(ledger("show", rules, "--analyst", "ada", "--json"))["charges"]
        (row,) = csv.DictReader(io.StringIO(ledger("show", rules, "--last", "1", "--csv")))
        assert json.loads(ledger("show", rules, "--since", "2999-01-01", "--json"))["charges"] == []
        unknown = command("ledger", "show", rules, "--analyst", "adda", *anchor, database=shop.reader_dsn)
        assert "checked" in ledger("backup", rules, str(copy))

    shape = "SELECT count(*) FROM customers WHERE city = ?"
    assert shape in shown and "Berlin" not in shown
    words = 'there is no analyst "adda" in the rules or the ledger; did you mean "ada"?'
    assert (unknown.returncode, unknown.stdout, unknown.stderr) == (1, "", f"noisegate: {words}\n")
    assert (charge["statement"], charge["shape"]) == (read(COUNT).statements[0].fingerprint, shape)
    assert row["analyst"] == "ada" and row["epsilon"] == charge["epsilon"]
    running.rules.with_suffix(".ledger").rename(lost)
    assert "no entry of the anchor is missing" in ledger("restore", rules, str(copy))
    running.rules.write_text(running.rules.read_text().replace("  ada:", "  eve:"))
    accounts = {load["account"]: load for load in json.loads(ledger("show", rules, "--json"))["accounts"]}
    assert accounts["ada"]["removed"] and accounts["ada"]["ever_spent"] == charge["epsilon"]
    assert json.loads(ledger("show", rules, "--analyst", "ada", "--json"))["charges"] == [charge]
    assert ledger("compact", rules, "--before", "2020-01-01").startswith("closed 0 entries before 2020-01-01")


def test_what_may_be_under_way_is_not_closed(tmp_path: Path) -> None:
    """Without its charge an answer would not be kept, and a fault would stop nobody."""
    rules = shop_data.rules_file(tmp_path, f"{shop_data.RULES}fresh_for: 0\n")
    hour_ago = datetime.now(UTC) - timedelta(hours=1)

    done = command("ledger", "compact", str(rules), "--before", f"{hour_ago:%Y-%m-%d %H:%M:%S}", database="dbname=shop")

    assert done.returncode == 1 and "or be under way: close those before" in done.stderr


def test_a_renamed_database_keeps_its_ledger_when_the_dba_says_so(real_cluster: Cluster, tmp_path: Path) -> None:
    before, after = make_shop(real_cluster, "shop_before"), RealDatabase(real_cluster, "shop_after")
    rules = str(shop_data.rules_file(tmp_path))
    assert command("ledger", "init", rules, database=before.reader_dsn).returncode == 0
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("ALTER DATABASE shop_before RENAME TO shop_after")

    refused = command("ledger", "show", rules, database=after.reader_dsn)
    found = re.search(r"--from (\d+/shop_before)", refused.stderr)

    assert refused.returncode == 1
    assert found is not None
    moved = command("ledger", "move", rules, "--from", found[1], database=after.reader_dsn)
    assert (moved.returncode, "shop_after" in moved.stdout) == (0, True)
    assert command("ledger", "show", rules, database=after.reader_dsn).returncode == 0
    again = command("ledger", "move", rules, "--from", found[1], database=after.reader_dsn)
    assert (again.returncode, "there is nothing to move" in again.stderr) == (1, True)
    assert "run: noisegate ledger move" not in again.stderr  # with the very database that the rules name
