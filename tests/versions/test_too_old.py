"""What `noisegate` says of a PostgreSQL older than any that it serves. Its turn comes in `python -m tests.versions`."""

from pathlib import Path

import pytest

from tests.conftest import RealDatabase
from tests.support.ledgers import SqliteLedger
from tests.support.running import command

pytestmark = pytest.mark.too_old


def test_every_command_says_which_version_it_is_and_which_are_served(shop: RealDatabase, rules_path: Path) -> None:
    with shop.connect() as connection:
        release = (connection.info.parameter_status("server_version") or "").split()[0]  # Debian adds its own

    for line in ("check",), ("ledger", "init"), ("serve", "--port", "0"):
        if line[0] == "serve":  # it asks for its ledger before it sees the database, and none can be made for this one
            SqliteLedger.create(rules_path.with_suffix(".ledger"), "1/shop")
        done = command(*line, str(rules_path), database=shop.reader_dsn)
        assert done.returncode == 1
        assert done.stderr.strip().endswith(f"the database is PostgreSQL {release}, and must be 13 or newer")
