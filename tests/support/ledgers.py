"""Ledgers by the place of their home, without the settings that name it."""

from pathlib import Path

from proxy.ledger.integrity import Anchor
from proxy.ledger.ledger import Ledger
from proxy.ledger.postgres import LedgerDatabase
from proxy.ledger.sqlite import LedgerFile


class PostgresLedger(Ledger):
    """Use `create` once, `open` ever after."""

    @classmethod
    def create(cls, dsn: str, identity: str, *, anchor: Path | None = None) -> None:
        """Make an empty ledger for the database of this identity, in a schema of its own that must not be there."""
        LedgerDatabase(dsn, identity, Anchor(anchor)).create()

    @classmethod
    async def open(cls, dsn: str, identity: str, *, anchor: Path | None = None) -> "PostgresLedger":
        """Open a ledger that exists; raises LedgerError with the reason why it cannot be used."""
        return await cls.at(LedgerDatabase(dsn, identity, Anchor(anchor)))


class SqliteLedger(Ledger):
    """Use `create` once, `open` ever after."""

    @classmethod
    def create(cls, path: Path, identity: str, *, anchor: Path | None = None) -> None:
        """Make an empty ledger for the database of this identity. Never over a file that is there."""
        LedgerFile(path, identity, Anchor(anchor)).create()

    @classmethod
    async def open(cls, path: Path, identity: str, *, anchor: Path | None = None) -> "SqliteLedger":
        """Open a ledger that exists; raises LedgerError with the reason why it cannot be used."""
        return await cls.at(LedgerFile(path, identity, Anchor(anchor)))
