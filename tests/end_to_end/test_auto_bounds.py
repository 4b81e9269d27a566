"""`bounds: auto`: nothing is served before a look, which is charged once, kept in the ledger and shown by check."""

import json
from decimal import Decimal
from pathlib import Path

import psycopg

from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import command, start

AUTO = shop_data.RULES.replace("amount: {lower: 0, upper: 500}", "amount: {bounds: auto}").replace(
    "ordered_at: {lower: 2024-01-01, upper: 2026-12-31}", "ordered_at: {bounds: auto}"
)


def test_a_look_is_made_once_and_serves_until_it_is_made_again(shop: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.rules_file(tmp_path, AUTO)

    def run(*arguments: str) -> tuple[int, str, str]:
        done = command(*arguments, database=shop.reader_dsn)
        return done.returncode, done.stdout, done.stderr

    def spent() -> Decimal:
        accounts = json.loads(run("ledger", "show", str(rules), "--json")[1])["accounts"]
        return Decimal(next(account["spent"] for account in accounts if account["account"] == "all together"))

    code, told, _ = run("check", str(rules))
    assert code == 1 and "no bounds are known yet" in told
    assert run("ledger", "init", str(rules))[0] == 0
    assert spent() == 0
    refused = start(rules, shop.reader_dsn)
    assert refused.process.wait(60) == 1
    assert "no bounds of orders.amount, orders.ordered_at are known yet" in "\n".join(refused.lines)

    code, found, error = run("bounds", str(rules), "--epsilon", "2")
    assert code == 0, error
    assert [line.partition(":")[0] for line in found.splitlines()] == ["orders.amount", "orders.ordered_at"]
    assert spent() == 4
    assert run("bounds", str(rules))[1] == found and spent() == 4
    code, told, error = run("check", str(rules))
    assert code == 0, told + error
    for line in found.splitlines():
        place, _, words = line.partition(": ")
        assert words in told and place.split(".")[1] in told
    assert run("ledger", "compact", str(rules), "--before", "2020-01-01")[0] == 0

    running = start(rules, shop.reader_dsn)
    try:
        running.wait_for("ready")
        with psycopg.connect(running.dsn(sslmode="disable"), autocommit=True) as session:
            sums = session.execute("SELECT sum(amount) FROM orders").fetchone()
            (known,) = session.execute(
                "SELECT lower, upper FROM noisegate.columns WHERE table_name = 'orders' AND column_name = 'amount'"
            )
        assert sums is not None and Decimal(sums[0]) > 0
        lower, upper = (Decimal(each).normalize() for each in known)
        assert f"orders.amount: {lower:f} to {upper:f}, by the look of" in found
    finally:
        running.stop()

    (tmp_path / "statements.sql").write_text("SELECT sum(amount) FROM orders;\n")
    report = json.loads(run("shadow", str(rules), str(tmp_path / "statements.sql"), "--json")[1])
    assert (report["with_noise"], report["refused"]) == (1, [])
    before = spent()
    assert run("bounds", str(rules), "--again", "--epsilon", "1")[0] == 0
    assert spent() == before + 2


def test_a_column_without_bins_is_told(shop: RealDatabase, tmp_path: Path) -> None:
    text = shop_data.RULES.replace("city: {values: [Berlin, Lyon, Porto, Graz]}", "city: {bounds: auto}")
    rules = shop_data.rules_file(tmp_path, text)
    assert command("ledger", "init", str(rules), database=shop.reader_dsn).returncode == 0
    done = command("bounds", str(rules), database=shop.reader_dsn)
    assert (done.returncode, "bounds: auto is for columns of numbers and dates" in done.stderr) == (1, True)
