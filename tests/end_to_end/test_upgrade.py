"""A rules file, a lock file and a ledger of version 0.2.0 serve as before.

Version 0.2.0 itself (commit 394c22b4) wrote `ledger/left_by/0.2.0`, over the shop: it served the rules with a ledger in
a file, and again with one in PostgreSQL, which pg_dump wrote out. Ada asked for customers by city and by country and
for orders by status, at ε 0.5 each. Bob, who has a role, asked for two answers at ε 1 each, and for more budget.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import OWNER, Cluster
from tests.conftest import RealDatabase, make_shop
from tests.support.running import Noisegate, run_here, start

LEFT = Path(__file__).parents[1] / "ledger" / "left_by" / "0.2.0"
BY_CITY = b"SELECT city, count(*) FROM customers GROUP BY city ORDER BY city"
CUSTOMERS_IN_BERLIN = 153


@dataclass(frozen=True)
class Left:
    """What version 0.2.0 left, for a database that was restored from a backup since."""

    rules: Path
    database: str
    ledger: tuple[str, ...]
    printed: pytest.CaptureFixture[str]

    def run(self, *arguments: str, fails: bool = False) -> str:
        """Run one command and return its output, or its error where it `fails`."""
        code = run_here(*arguments, database=self.database)
        output = self.printed.readouterr()
        assert (code != 0) is fails, output.err
        return output.err if fails else output.out


@pytest.fixture(scope="module")
def restored_shop(real_cluster: Cluster) -> RealDatabase:
    return make_shop(real_cluster, "restored_shop")


@pytest.fixture(params=["sqlite", "postgres"])
def left(
    request: pytest.FixtureRequest, restored_shop: RealDatabase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Left:
    for name in ("rules.yaml", "rules.lock", "rules.ledger"):
        shutil.copyfile(LEFT / name, tmp_path / name)
    (tmp_path / "rules.ledger").chmod(0o600)
    ledger: tuple[str, ...] = ()
    if request.param == "postgres":
        cluster = restored_shop.cluster
        with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
            owner.execute("DROP DATABASE IF EXISTS restored_ledger")
            owner.execute("CREATE DATABASE restored_ledger")
        restore(LEFT / "dump.sql", cluster.dsn("restored_ledger"))
        ledger = ("--ledger", f"postgresql://{OWNER}@/restored_ledger?host={cluster.directory}")
    return Left(tmp_path / "rules.yaml", restored_shop.reader_dsn, ledger, capsys)


def restore(dump: Path, dsn: str) -> None:
    """As psql does, but for its own commands and for settings that older servers do not know."""
    _, create, rest = dump.read_text(encoding="utf-8").partition("CREATE SCHEMA")
    lines = [line for line in (create + rest).splitlines() if not line.startswith("\\")]
    with psycopg.connect(dsn) as connection:
        connection.execute("\n".join(lines).encode())


@pytest.fixture
def serving(left: Left) -> Iterator[Noisegate]:
    place = (str(left.rules), *left.ledger)
    (identity,) = re.findall(r"--from (\d+/shop)", left.run("ledger", "show", *place, fails=True))
    left.run("ledger", "move", *place, "--from", identity)
    running = start(left.rules, left.database, name="restored_shop", arguments=left.ledger)
    running.wait_for("ready")
    yield running
    running.stop()


def connect(serving: Noisegate, analyst: str = "ada") -> psycopg.Connection:
    return psycopg.connect(serving.dsn(analyst, sslmode="disable"), autocommit=True)


def test_what_version_0_2_0_left_is_opened_verified_served_and_charged(left: Left, serving: Noisegate) -> None:
    """What 0.2.0 stored of an answer is charged anew, as docs/operations.md says."""
    place = (str(left.rules), *left.ledger)
    before = json.loads(left.run("ledger", "show", *place, "--charges", "--json"))
    with connect(serving) as ada, connect(serving, "bob") as bob:
        assert left_of(ada) == {"yours": Decimal(1), "shared": Decimal("2.5")}
        counts: dict[str | None, int] = dict(ada.execute(BY_CITY).fetchall())
        assert left_of(ada) == {"yours": Decimal("0.5"), "shared": Decimal(2)}
        ada.execute("SELECT count(*) FROM orders")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            ada.execute("SELECT count(*) FROM order_items")
        bob.execute("SELECT count(*) FROM order_items")
        assert left_of(bob) == {"yours": Decimal("0.5"), "role": Decimal("1.5"), "shared": Decimal(1)}
    after = json.loads(left.run("ledger", "show", *place, "--charges", "--json"))

    assert abs(counts["Berlin"] - CUSTOMERS_IN_BERLIN) <= 50  # in all but 1e-10 of draws, of scale 2
    assert (len(before["charges"]), after["charges"][:5]) == (5, before["charges"])
    assert "with 8 charges: nothing was changed" in left.run("ledger", "verify", *place)
    assert "a report" in left.run("requests", *place)


def left_of(session: psycopg.Connection) -> dict[str, Decimal]:
    return dict(session.execute("SELECT account, epsilon_left FROM noisegate.budget").fetchall())


def test_rules_and_lock_of_version_0_2_0_have_no_error(left: Left) -> None:
    assert "rules.yaml: fine" in left.run("check", str(left.rules))
