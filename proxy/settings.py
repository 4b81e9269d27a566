"""Settings of a proxy, as against what the rules say: addresses, files, deadlines and limits."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Final, Literal

MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The place where clients come in, and how many of them."""

    host: str = "127.0.0.1"
    port: int = 5432  # 0: any that is free
    certificate: Path | None = None  # PEM; without one there is no TLS
    private_key: Path | None = None
    client_authorities: Path | None = None  # PEM; who signs the certificates of clients
    plaintext_from: Literal["nowhere", "loopback", "anywhere"] = "loopback"
    gateways: tuple[IPv4Network | IPv6Network, ...] = ()  # whose connections begin with the PROXY protocol
    login_timeout_seconds: float = 30  # from the first byte to the session
    max_logins: int = 100  # connections before their login; more push out the oldest
    max_logins_per_address: int = 50  # of these from one address; one more pushes out its oldest
    max_connections: int = 200
    max_connections_per_analyst: int = 50
    drain_timeout_seconds: float = 30  # for running statements when the proxy stops


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """Bytes on the twin: memory of backends, and temporary files."""

    memory_per_analyst: int = 2048 * MEGABYTE
    memory: int = 8192 * MEGABYTE
    temporary_per_analyst: int = 1024 * MEGABYTE
    temporary: int = 4096 * MEGABYTE


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Deadlines and sizes of sessions."""

    connect_timeout_seconds: float = 10  # to the twin
    statement_timeout_seconds: float = 60  # of anything on the twin, whatever the client's own time-out
    inner_timeout_seconds: float = 300  # of the inner statements of one answer
    reading_timeout_seconds: float | None = None  # for a client to take in some more of its result; None: for ever
    idle_transaction_seconds: float | None = 3600  # a transaction that waits for its client keeps dead rows alive
    idle_session_seconds: float | None = None
    usage: UsageLimits = UsageLimits()
    most_views: int = 10_000  # temporary ones, made in the life of a session
    max_message_bytes: int = 64 * MEGABYTE  # of a client
    most_frame_bytes: int = 16 * 1024 * 1024  # of one message of the twin, rows aside, which are passed on as they come


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """The address of metrics and health, for every client that can reach it: by default only this machine."""

    host: str = "127.0.0.1"
    port: int | None = None  # none: nowhere; 0: any that is free


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The place of the web console, and who is let in there without a password."""

    host: str = "127.0.0.1"
    port: int | None = None  # none: nowhere; 0: any that is free
    trusted_header: str = ""  # of a gateway that has logged its user in; "": none
    trusted_from: tuple[str, ...] = ()  # networks of that gateway
    may_edit_rules: bool = False


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """The most that all statements together, and one of them, may ask of the real database."""

    running: int = 8  # at once, each on a connection of its own
    running_per_analyst: int | None = None  # None: three quarters of them
    statements: int = 100  # inside, for one of an analyst's
    cost: float | None = None  # in the planner's units, of all of these

    @property
    def most_per_analyst(self) -> int:
        return self.running_per_analyst or max(1, self.running * 3 // 4)


@dataclass(frozen=True, slots=True)
class Settings:
    """One proxy in front of one database."""

    rules: Path
    ledger: Path | str  # a SQLite file, or the URL of a PostgreSQL database
    anchor: Path | None = None  # a second record of the ledger's end, which reveals an older copy
    server: ServerSettings = ServerSettings()
    sessions: SessionSettings = SessionSettings()
    load: LoadLimits = LoadLimits()
    look_seconds: float = 300  # between two looks at the real database: its schema, and its small public tables
    retry_seconds: float = 5  # between two tries to reach what is away
    twins: Literal["shared", "per-analyst"] = "shared"  # whose sessions end when a server does
    twin_binaries: Path | None = None  # the bin directory of a PostgreSQL of the machine; None: the wheel's
    max_public_rows: int = 100_000  # of a public table; the twin holds no larger one
    operator: OperatorSettings = OperatorSettings()
    web: WebSettings = WebSettings()
    workers: int = 2  # processes that read and plan statements
