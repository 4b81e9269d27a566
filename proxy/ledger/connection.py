"""Connections as the ledger's SQL needs them, and its tables: the same few words for SQLite and PostgreSQL.

The tables are one script for each version of the schema; both homes read the same ones.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

# Version n is reached by running the scripts up to the n-th. A script that was shipped is never changed.
SCRIPTS = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, analyst TEXT NOT NULL,
        entry TEXT NOT NULL, seal TEXT NOT NULL
    );
    CREATE INDEX entries_of_an_analyst ON entries (analyst, kind, time);
    CREATE TABLE accounts (
        account TEXT, period TEXT, epsilon TEXT NOT NULL, delta TEXT NOT NULL, rho TEXT NOT NULL,
        pure INTEGER NOT NULL, PRIMARY KEY (account, period)
    );
    CREATE TABLE releases (
        id INTEGER PRIMARY KEY, charge INTEGER NOT NULL REFERENCES entries, time TEXT NOT NULL, block TEXT NOT NULL,
        measure TEXT NOT NULL, cost TEXT NOT NULL, epsilon DOUBLE PRECISION, groups TEXT NOT NULL, list TEXT NOT NULL,
        numbers TEXT NOT NULL
    );
    CREATE INDEX releases_of_a_block ON releases (block, measure, time);
    CREATE TABLE sights (
        account TEXT, period TEXT, release INTEGER REFERENCES releases, PRIMARY KEY (account, period, release)
    );
    """,
    # What is kept names the entry that vouches for it; `history.adopt` fills in what is there already. What follows
    # from entries is made anew under other names, so that a program of version 1 that still runs charges nothing more.
    """
    ALTER TABLE releases ADD COLUMN entry INTEGER;
    DROP TABLE sights;
    CREATE TABLE seen (
        account TEXT, period TEXT, release INTEGER REFERENCES releases, entry INTEGER NOT NULL,
        PRIMARY KEY (account, period, release)
    );
    CREATE INDEX seen_releases ON seen (release, period);
    DROP TABLE accounts;
    CREATE TABLE totals (
        account TEXT, period TEXT, epsilon TEXT NOT NULL, delta TEXT NOT NULL, rho TEXT NOT NULL,
        pure INTEGER NOT NULL, PRIMARY KEY (account, period)
    );
    """,
    # Old entries may be closed into a sum: what refers to them is found, and deleted, by their numbers.
    """
    CREATE INDEX releases_of_a_charge ON releases (charge);
    """,
    # The chain may be verified a part at a time, and from a checkpoint on: `chain.SUMMED` has these kinds.
    """
    CREATE INDEX seen_by_entry ON seen (entry);
    CREATE INDEX words ON entries (id) WHERE kind NOT IN ('charge', 'settle', 'checkpoint');
    """,
)
VERSION = len(SCRIPTS)
SEALED_VERSION = 2  # from which on all that is kept is under the chain
NEWER = "A newer Noisegate has opened it: run that one again. A copy from before lacks what was charged since."


class Cursor(Protocol):
    def fetchone(self) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Parameters are written as `?`. Nothing is committed but by COMMIT."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor: ...

    def close(self) -> None: ...


def statements_from(version: int) -> list[str]:
    """Return what brings a ledger of this version to the newest."""
    return [statement for script in SCRIPTS[version:] for statement in script.split(";") if statement.strip()]
