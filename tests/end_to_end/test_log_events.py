"""An operator finds in the log who was refused and why, and what kept a statement from its answer."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.sql.read import read
from tests.conftest import RealDatabase, make_shop
from tests.support import shop as shop_data
from tests.support.running import Noisegate, noisegate

COUNT = "SELECT count(*) FROM customers WHERE city = 'Berlin'"


def ask(running: Noisegate, sql: str) -> str:
    """What the log calls a statement that is refused."""
    with psycopg.connect(running.dsn(), autocommit=True) as session, pytest.raises(psycopg.Error):
        session.execute(sql.encode())
    return read(sql).statements[0].fingerprint


def test_a_failed_login_is_told_with_name_and_address(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running:
        for options in ({"password": "wrong"}, {"user": "mallory"}, {"dbname": "elsewhere"}):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(running.dsn(**options))
        running.wait_for("login_refused", count=3)
        said = running.events("login_refused")

    assert [(line["user"], line["peer"], line["sqlstate"]) for line in said] == [
        ("ada", "127.0.0.1", "28P01"),
        ("mallory", "127.0.0.1", "28P01"),
        ("ada", "127.0.0.1", "3D000"),
    ]
    assert said[2]["reason"] == "database"
    assert not any("wrong" in line for line in running.lines)


def test_refusals_and_answers_name_their_statement(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            session.execute(COUNT)
        answered = running.wait_for("answered")
        rows = ask(running, "SELECT * FROM customers WHERE city = 'Berlin'")
        refused = running.wait_for("refused")
        ask(running, "TRUNCATE customers")
        forbidden = running.wait_for("forbidden")

    assert answered["statement"] == read(COUNT).statements[0].fingerprint
    assert (refused["statement"], refused["analyst"], refused["sqlstate"]) == (rows, "ada", "42501")
    assert (forbidden["command"], forbidden["level"]) == ("TRUNCATE", "warning")


def test_a_budget_that_is_half_spent_and_spent_is_told_once(shop: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.RULES.replace("    epsilon: 500", "    epsilon: 4")
    rules = rules.replace("budget: {epsilon: 1000, delta: 1e-6}", "budget: {epsilon: 10}")
    with noisegate(tmp_path, shop.reader_dsn, rules=rules) as running:
        with psycopg.connect(running.dsn("bob"), autocommit=True) as session:
            for city in ("Berlin", "Lyon", "Porto", "Graz"):
                session.execute(f"SELECT count(*) FROM customers WHERE city = '{city}'".encode())
        with psycopg.connect(running.dsn("ada"), autocommit=True) as session:
            session.execute(b"SELECT count(*) FROM orders")
        running.wait_for("budget_used", count=3)
        told = running.events("budget_used")

    assert [(each["analyst"], each["percent"]) for each in told] == [("bob", 50), ("bob", 100), (None, 50)]


def test_what_the_database_will_not_do_is_told_by_its_sqlstate(real_cluster: Cluster, tmp_path: Path) -> None:
    database = make_shop(real_cluster, "shop_without_rights")
    with noisegate(tmp_path, database.reader_dsn, name=database.name) as running:
        with database.connect() as owner:
            owner.execute(f"REVOKE SELECT ON customers FROM {shop_data.READER}")
        ask(running, COUNT)
        said = running.wait_for("database")

    assert (said["analyst"], said["reason"], said["sqlstate"]) == ("ada", "permission_denied", "42501")


def test_what_is_wrong_with_the_ledger_is_told_in_a_word(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            session.execute(COUNT)
        place = running.rules.with_suffix(".ledger")
        with closing(sqlite3.connect(place)) as other:
            other.execute("DELETE FROM entries")
            other.commit()
        ask(running, COUNT)
        cut = running.wait_for("ledger")
        place.unlink()
        ask(running, COUNT)
        missing = running.wait_for("ledger", count=2)

    assert (cut["analyst"], cut["reason"], cut["kind"]) == ("ada", "cut", "LedgerError")
    assert missing["reason"] in ("ENOENT", "missing")
