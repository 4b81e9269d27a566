"""Interface of a real database: its connection string, catalog, snapshots, roles, and the login of public rows."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from proxy.causes import UNKNOWN, Cause, reason_of
from rules.catalog import Catalog, Table, TableName
from rules.kernel.statement import Bounded, Marginals, Tally
from rules.planner.plan import PublicQuery
from rules.policy.model import Policy, table_name
from rules.refusal import (
    LONGER,
    NOTHING_CHARGED,
    BadSetting,
    CannotRun,
    Interrupted,
    NotAllowed,
    Refusal,
    RulesChanged,
    Unavailable,
)

Row = tuple[bytes | None, ...]  # every column as the server wrote its text, in the database's own encoding


PUBLIC_CONNECTIONS: Final = 2  # of the login that reads public rows
MOST_PUBLIC_ROWS: Final = 10_000
MOST_PUBLIC_CHARACTERS: Final = 1_000  # of one value


class EngineError(Exception):
    """The real database failed or is away. Carries no text of the database: what it said may quote data.

    The cause is for the log, and for no client.
    """

    def __init__(self, words: str = "", *, cause: Cause = UNKNOWN) -> None:
        super().__init__(*([words] if words else []))
        self.cause = cause


class StatementFailed(EngineError):
    """An inner statement that the server gave up. Its SQLSTATE is for the ledger and the log, and for no client."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(cause=Cause(reason_of(sqlstate), sqlstate))
        self.sqlstate = sqlstate


class EngineAway(EngineError):
    """No connection can be had. Its text is about the connection alone and is for the DBA's log."""


class EngineTooOld(EngineError):
    """A server whose catalogs we cannot read: waiting does not mend it. Its text says the version."""


class SchemaChanged(EngineError):
    """A table is no longer what the plan took for proved: the catalog has to be read again.

    Before the charge nothing was run. After it a table got a partition or a unique index meanwhile, or what the
    statement names was renamed: no row is used.
    """


class UnknownTimeZone(EngineError):
    """The real database does not know the session's time zone. Nothing was run."""


class Unplannable(EngineError):
    """The real database will not plan a statement. Nothing was run."""

    def __init__(self, words: str, *, cause: Cause = UNKNOWN) -> None:
        super().__init__(cause=cause)
        self.words = words  # the server's own, where they depend on the schema alone; "" elsewhere

    @property
    def can_tell_of_rows(self) -> bool:
        """Tell whether a value can be why: planning holds a LIKE against values of rows, which statistics have."""
        return self.cause.sqlstate.startswith("22")


class NotPermitted(EngineError):
    """The proxy's role has lost the right to read tables. Nothing was run."""

    def __init__(self, tables: Sequence[TableName]) -> None:
        super().__init__(cause=Cause(reason_of("42501"), "42501"))
        self.tables = tuple(tables)


class TooCostly(EngineError):
    """The real database's planner expects more work than is allowed. Nothing was run."""


class TooPowerful(EngineError):
    """The login may do more than read the public tables. Nothing was run. Its texts are of the schema alone."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons), cause=Cause("too_powerful"))
        self.reasons = tuple(reasons)


class GrantsFailed(EngineError):
    """The SQL of a role could not be run. Its text is of roles and tables, and is for the DBA at the terminal."""


def refusal_before_charge(error: EngineError | TimeoutError) -> Refusal:
    """Say to an analyst why his statement was not run. After the charge a failure is always the same."""
    match error:
        case SchemaChanged():
            hint = "Run it again. If that does not help, ask your DBA whether the rules still fit (noisegate check)."
            return RulesChanged("the schema changed while the statement was planned", hint=hint)
        case UnknownTimeZone():
            return BadSetting("the real database does not have this time zone", hint="SET TimeZone = 'UTC'.")
        case Unplannable(words=words):
            return CannotRun(
                f"the real database cannot run this statement: {words}"
                if words
                else "the real database cannot run this statement",
                hint=f"{NOTHING_CHARGED} EXPLAIN shows the inner SQL, which your DBA can run.",
            )
        case NotPermitted(tables=tables):
            named = f"table{'s' * (len(tables) > 1)} {', '.join(map(str, tables))}"
            return NotAllowed(
                f"permission denied for {named}: the proxy itself may not read this in the real database",
                hint=f"{NOTHING_CHARGED} Ask your DBA for the GRANT, which noisegate check prints.",
            )
        case TimeoutError() | EngineError(cause=Cause(sqlstate="57014")):  # whichever of the two clocks was first
            return Interrupted("canceling statement due to statement timeout", hint=f"{NOTHING_CHARGED} {LONGER}")
        case _:
            return Unavailable("the real database is unavailable", hint=f"{NOTHING_CHARGED} Try again later.")


class Snapshot(Protocol):
    """One transaction, REPEATABLE READ and READ ONLY, settings pinned. Ended when its context is left.

    The server converts nothing that it sends: a value that another encoding lacks would fail the statement.
    """

    @property
    def codec(self) -> str:
        """Python's codec of the database's encoding."""

    async def run(self, statement: Bounded | Marginals | Tally) -> Sequence[Row]:
        """Run one statement of the kernel, and nothing else.

        Raises StatementFailed where it failed, SchemaChanged where it may have been planned by a partition or a unique
        index that the snapshot does not have, or over another table, or can be planned no more, and another EngineError
        on a loss.
        """

    async def read_public(self, sql: str) -> Sequence[Row]:
        """Read rows of a public table, as they are."""

    async def cancel(self) -> None:
        """Stop what runs now; its `run` raises EngineError, and so does every later one."""


class Engine(Protocol):
    failure: type[Exception]  # what its snapshots raise

    connections: int
    """How many snapshots there may be at once; who wants one more waits."""

    async def catalog(self) -> Catalog: ...

    async def check_unchanged(self, catalog: Catalog) -> None:
        """Raise SchemaChanged where a relation is no longer what this catalog says, in a transaction of its own."""

    async def risks(self, named: Sequence[TableName] = ()) -> list[str]:
        """Return what our role may do there and should not, in plain words for the DBA; the rules name `named`."""

    async def missing_rights(self, named: Sequence[TableName]) -> Mapping[TableName, str]:
        """Return which of these tables our role cannot read, and the SQL that would let it."""

    async def now(self) -> datetime:
        """Read the server's clock."""

    async def clock_offsets(
        self, zones: Sequence[str], seconds: Sequence[int], *, by_name: bool, timeout_seconds: float
    ) -> Mapping[str, list[int]]:
        """Return by how many seconds the server's clocks are ahead of UTC, at moments in order (seconds since 1970).

        By name as AT TIME ZONE reads it, or one zone as a session's TimeZone.
        """

    def snapshot(
        self,
        *,
        time_zone: str,
        timeout_seconds: float,
        tables: Sequence[Table] = (),
        statements: Sequence[Bounded | Marginals | Tally] = (),
    ) -> AbstractAsyncContextManager[Snapshot]:
        """Take a connection, pin its settings, lock `tables` as they were planned with, and have `statements` planned.

        Planning reads no row: it may look at statistics, by operators that have a value for whatever is in them.

        All that may fail before anything is charged; raises EngineError when it does.
        """

    async def close(self) -> None: ...


class WatchedEngine(Engine, Protocol):
    """A real database as operators set it up and watch it."""

    settings: Mapping[str, str]
    """Settings of the rules file, which are pinned in each transaction that reads rows."""

    in_use: int
    """Connections with a snapshot."""

    @property
    def idle(self) -> int:
        """Connections that are kept for the next snapshot."""

    @property
    def is_busy(self) -> bool:
        """Return whether all connections are in use."""

    async def find_refused(self, settings: Mapping[str, str]) -> list[str]:
        """Return those of these settings that the server does not take."""

    async def bind(self, system_identifier: str) -> None:
        """Answer from the database of this identifier alone: another at its address is as good as none."""

    async def check(self, timeout_seconds: float) -> None:
        """Begin a transaction and end it; raises EngineError where the database lets nobody in."""


@dataclass(frozen=True, slots=True)
class Readable:
    """The public tables, and the columns of them that exist for analysts."""

    columns: tuple[tuple[TableName, tuple[str, ...]], ...]

    @classmethod
    def of(cls, policy: Policy, catalog: Catalog) -> "Readable":
        readable = []
        for table in catalog.tables:
            rules = policy.find_table(table.name)
            if rules is not None and rules.public:
                readable.append((table.name, tuple(column.name for column in table.columns if not rules.hides(column))))
        return cls(tuple(readable))


class PublicLogin(Protocol):
    """A login that reads the public tables alone, and runs queries over them."""

    async def bind(self, system_identifier: str) -> None:
        """Read the database of this identifier alone: that of the protected tables."""

    async def read(
        self, query: PublicQuery, width: int, readable: Readable, tables: Mapping[TableName, Table], *,
        time_zone: str, timeout_seconds: float,
    ) -> tuple[tuple[str | None, ...], ...]:  # fmt: skip
        """Return the rows as texts, one more than MOST_PUBLIC_ROWS where there are more.

        Raises an EngineError: TooPowerful before anything ran, SchemaChanged where a table is not what it was.
        """

    async def find_excess(self, readable: Readable) -> list[str]:
        """Return its rights beyond reading these, or why they cannot be read."""

    async def close(self) -> None: ...


class Database(Protocol):
    """A real database by its connection string, with which nothing has connected yet."""

    @property
    def name(self) -> str:
        """The database's name, as the connection string has it."""

    @property
    def user(self) -> str | None:
        """The role that it logs in as, where it says one."""

    def open_engine(
        self, *, connections: int = 8, most_cost: float | None = None, settings: Mapping[str, str] | None = None
    ) -> WatchedEngine:
        """Make the engine, which connects when it is first used; `settings` are those of the rules file."""

    def open_public_reader(self, *, most_cost: float | None = None) -> PublicLogin: ...

    def as_role(self, role: str, password: str) -> str:
        """Return the connection string of another role."""

    def has_role(self, role: str) -> bool:
        """Return whether the role exists; raises EngineError."""

    def role_grants(self, policy: Policy, database: str, role: str, verifier: str = "") -> str:
        """The SQL of a role that may read the tables of the rules and do nothing else; it may be run again."""

    def public_grants(self, readable: Readable, catalog: Catalog, role: str) -> str:
        """The SQL of a role that reads what is public and does nothing else; it may be run again."""

    def run_grants(self, sql: str) -> None:
        """Run the SQL of a role, all of it or nothing; raises GrantsFailed."""


def tables_to_read(policy: Policy) -> list[TableName]:
    """The tables whose rows are read: views of protected tables are read as their texts."""
    return [table_name(text) for text, rules in policy.tables.items() if not rules.view]
