"""How the proxy is run, as against what the rules say: addresses, files, deadlines and limits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where clients come in, and how many of them."""

    host: str = "127.0.0.1"
    port: int = 5432  # 0: any that is free
    certificate: Path | None = None  # PEM; without one there is no TLS
    private_key: Path | None = None
    plaintext_from: Literal["nowhere", "loopback", "anywhere"] = "loopback"
    login_timeout_seconds: float = 30  # from the first byte to the session
    max_logins: int = 100  # connections before their login; more push out the oldest
    max_connections: int = 200
    max_connections_per_analyst: int = 50
    max_message_bytes: int = 4 * 1024 * 1024
    drain_timeout_seconds: float = 30  # for what runs when the proxy is told to stop


@dataclass(frozen=True, slots=True)
class Settings:
    """One proxy in front of one database."""

    rules: Path
    ledger: Path | str  # a SQLite file, or the URL of a PostgreSQL database
    anchor: Path | None = None  # where the ledger's end is noted too, so that an older copy is told apart
    server: ServerSettings = ServerSettings()
    look_seconds: float = 300  # between two looks at the real database: its schema, and its small public tables
    retry_seconds: float = 5  # between two tries to reach what is away
    workers: int = 2  # processes that read and plan statements
