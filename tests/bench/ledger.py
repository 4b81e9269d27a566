"""How long a ledger takes to open, by what it holds, in both of its homes.

python -m tests.bench.ledger                         # a million charges in a SQLite file
python -m tests.bench.ledger --charges 100000 --dsn postgresql://…
"""

import argparse
import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.ledger import stored_releases
from proxy.ledger.connection import Connection
from proxy.ledger.group_commit import Home
from proxy.ledger.integrity import Anchor
from proxy.ledger.ledger import Ledger
from proxy.ledger.postgres import LedgerDatabase
from proxy.ledger.sqlite import LedgerFile
from proxy.ledger.totals import write_totals
from rules.accounting import chain
from rules.accounting.accountant import Totals
from rules.accounting.store import Charge, Release
from rules.mechanisms.cost import Mechanism

IDENTITY = "7300000000000000000/shop"
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_PRICE = Mechanism.pure(Decimal("0.0001"))
_RELEASE = Release("block 5ea1", "count", _PRICE, (("Berlin",), ("Lyon",), ("Porto",)), (812, 634, 377))
_PIECE = 5_000  # rows that are written at once


def main() -> None:
    """Fill a ledger with charges that were each settled with one release, and open it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger", description=__doc__.partition("\n")[0])
    parser.add_argument("--charges", type=int, default=1_000_000, help="each with its settlement (default: 1000000)")
    parser.add_argument("--dsn", help="an empty PostgreSQL database (default: a SQLite file)")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        home: Home = LedgerDatabase(given.dsn, IDENTITY, Anchor(None)) if given.dsn else _file(path)
        began = time.monotonic()
        home.create(lambda connection: fill(connection, given.charges))
        print(f"{given.charges} charges written in {time.monotonic() - began:.0f} s", flush=True)
        for name in ("without checkpoints", "with them", "with them again"):
            asyncio.run(_open(home, name))


def _file(path: Path) -> LedgerFile:
    return LedgerFile(path, IDENTITY, Anchor(None))


async def _open(home: Home, name: str) -> None:
    wall, worked = time.monotonic(), time.process_time()
    ledger = await Ledger.at(home)
    took = time.monotonic() - wall, time.process_time() - worked
    print(f"opened in {took[0]:.2f} s ({took[1]:.2f} s of this processor) {name}", flush=True)
    while await ledger.checkpoints.append(_BEGIN):
        """As a proxy does while it serves."""
    await ledger.close()


def fill(connection: Connection, number: int) -> None:
    """Charges of five analysts, one each half minute."""
    seal, waiting = IDENTITY, tuple(list[tuple[object, ...]]() for _ in range(3))
    for release in range(1, number + 1):
        asked = _BEGIN + timedelta(seconds=30 * release)
        analyst = f"analyst{release % 5}"
        charge = Charge(
            asked, analyst, f"session {release // 50}", "print", "customers.id", ("orders",), (_PRICE, _PRICE), ()
        )
        entry, first = chain.charge_entry(charge, "ever", []), 2 * release - 1
        row = stored_releases._row(release, first, chain.stamp(asked), _RELEASE)
        fields = {"time": chain.stamp(asked), "period": "ever", "analyst": analyst}
        settled = chain.settle_entry(first, fields, [(release, stored_releases.seal_of(row))])
        for identifier, kind, text in ((first, "charge", entry), (first + 1, "settle", settled)):
            seal = chain.seal(seal, text)
            waiting[0].append((identifier, kind, chain.stamp(asked), analyst, text, seal))
        waiting[1].append((*row, first + 1))
        waiting[2].append((chain.account_of(analyst), "ever", release, first + 1))
        if release % _PIECE == 0 or release == number:
            for table, rows in zip(("entries", "releases", "seen"), waiting, strict=True):
                _insert(connection, table, rows)
                rows.clear()
    _fill_totals(connection, number)


def _fill_totals(connection: Connection, number: int) -> None:
    paid = [_PRICE, _PRICE]
    mine = {chain.account_of(f"analyst{each}"): len(range(each or 5, number + 1, 5)) for each in range(5)}
    for account, times in {**mine, chain.DATASET: number}.items():
        sums = Totals()
        for _ in range(times):
            sums = sums.plus(paid)
        write_totals(connection, {(account, period): sums for period in ("ever", chain.LIFETIME)})


def _insert(connection: Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    for piece in _pieces(rows, 1000):
        holes = ", ".join([f"({', '.join('?' * len(piece[0]))})"] * len(piece))
        columns = stored_releases.COLUMNS.replace("r.", "") + ", entry"
        names = {"entries": "id, kind, time, analyst, entry, seal", "releases": columns}.get(
            table, "account, period, release, entry"
        )
        connection.execute(f"INSERT INTO {table} ({names}) VALUES {holes}", [each for row in piece for each in row])


def _pieces(rows: list[tuple[object, ...]], size: int) -> Iterator[list[tuple[object, ...]]]:
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size]


if __name__ == "__main__":
    main()
