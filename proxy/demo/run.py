"""The demo: a real PostgreSQL with a shop in it, the proxy in front of it, and what to paste. Ctrl-C removes it all."""

import asyncio
import os
import secrets
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import uvloop

from proxy.app import App
from proxy.called_as import called_as
from proxy.engines.engines import real_database
from proxy.load_config import ConfigurationError, cannot_listen, lock_of, make_ledger, read_rules
from proxy.server.tls import write_certificate
from proxy.settings import ServerSettings, Settings
from proxy.twin.embedded import Cluster, ClusterError, server_binaries
from proxy.wire.scram import Verifier
from rules.policy.freeze import as_text, see

HERE = Path(__file__).parent
DATABASE, READER = "shop", "noisegate_reader"
ANALYST, PASSWORD = "ada", "lovelace"
VERSION = 18
ENVIRONMENT = "environment.sh"  # next to the rules file: the variables that it names

QUERIES = (
    "SELECT city, count(*), round(avg(extract(year FROM birth_date)), 1) AS born FROM customers GROUP BY city "
    "ORDER BY count DESC;",
    "SELECT date_trunc('month', ordered_at)::date AS month, count(*) AS orders, sum(amount) AS euros FROM orders "
    "WHERE ordered_at >= '2025-01-01' GROUP BY 1 ORDER BY 1;",
    "SELECT * FROM customers LIMIT 3;",
)


@dataclass(frozen=True)
class Shop:
    """The shop's database, and a folder that is removed with it."""

    cluster: Cluster

    @property
    def folder(self) -> Path:
        return self.cluster.directory

    @property
    def dsn(self) -> str:
        """As the proxy's own role."""
        return self.cluster.dsn(DATABASE, READER)

    @property
    def owner_dsn(self) -> str:
        """As a superuser."""
        return self.cluster.dsn(DATABASE)


def run(port: int) -> int:
    """Run the demo until Ctrl-C."""
    # Making the shop takes a while: a port that is taken is reported before.
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise cannot_listen(port, error) from None
    began = time.monotonic()
    _say("Making a shop with 20,000 customers and 200,000 orders …")
    try:
        shop = open_shop()
    except ClusterError as error:
        raise ConfigurationError(str(error)) from None
    try:
        settings = asyncio.run(prepare(shop, port))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(settings, began))
    finally:
        shop.cluster.stop()
        _say("The shop, its ledger and the proxy are gone.")


def open_shop(*, tcp_port: int | None = None) -> Shop:
    """Start PostgreSQL and load the shop; `cluster.stop` removes it."""
    settings = {"shared_buffers": "256MB", "max_wal_size": "2GB", "jit": "off"}
    cluster = Cluster.start(version=VERSION, settings=settings, tcp_port=tcp_port)
    try:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(cluster.dsn(DATABASE)) as connection:
            connection.execute((HERE / "shop.sql").read_bytes())
    except BaseException:
        cluster.stop()
        raise
    return Shop(cluster)


async def prepare(shop: Shop, port: int) -> Settings:
    """Write rules, certificate and an empty ledger into the shop's folder."""
    verifier = str(Verifier.of_password(PASSWORD, secrets.token_bytes(16)))
    _export(shop.folder / ENVIRONMENT, {"NOISEGATE_DATABASE": shop.dsn, "ADA_VERIFIER": verifier})
    certificate, private_key = write_certificate(shop.folder)
    rules, ledger = shop.folder / "rules.yaml", shop.folder / "rules.ledger"
    shutil.copyfile(HERE / "rules.yaml", rules)
    engine = real_database(shop.dsn).open_engine()
    server = ServerSettings(port=port, certificate=certificate, private_key=private_key)
    settings = Settings(rules, ledger, server=server)
    catalog = await engine.catalog()
    await engine.close()
    make_ledger(settings, catalog)
    lock_of(rules).write_text(as_text(see(read_rules(rules), catalog)), encoding="utf-8")
    return settings


def _export(file: Path, variables: Mapping[str, str]) -> None:
    """Set what the rules file names, here and by a file for shells."""
    os.environ.update(variables)
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    file.write_text("".join(lines), encoding="utf-8")
    file.chmod(0o600)


async def _serve(settings: Settings, began: float) -> int:
    def welcome() -> None:
        seconds = time.monotonic() - began
        _say(_welcome(app.listener.port, settings.rules, seconds))

    app = App(settings, on_ready=welcome, warns_of_zones=False)
    return await app.run()


def _welcome(port: int, rules: Path, seconds: float) -> str:
    queries = "\n".join(f"    {query}" for query in QUERIES)
    return f"""\
Ready after {seconds:.0f} seconds. In another terminal:

{psql_line(port)}

Three queries to try (the last one is refused, and says what to do instead):

{queries}

TABLE noisegate.budget shows what is left, TABLE noisegate.columns what may be asked of each column: free.
What analysts may learn is written in {rules}
Change it, then:  kill -HUP {os.getpid()}
Other commands read it too (noisegate check, ledger show, grants, suggest), after the variables that it names:

    . {shlex.quote(str(rules.parent / ENVIRONMENT))}
    {called_as()} check {shlex.quote(str(rules))}

Ctrl-C ends the demo and leaves nothing behind.
"""


def psql_line(port: int) -> str:
    """Return what to paste. The wheel's own psql knows no TLS, and on this machine alone it needs none."""
    psql_path = shutil.which("psql")
    psql, mode = (psql_path, "require") if psql_path else (str(server_binaries(VERSION) / "psql"), "disable")
    target = f"host=127.0.0.1 port={port} dbname={DATABASE} user={ANALYST} sslmode={mode}"
    line = f'    PGPASSWORD={PASSWORD} {"psql" if psql_path else shlex.quote(psql)} "{target}"'
    note = "" if psql_path else "\n\n(No psql is on your PATH; this one came with the embedded PostgreSQL.)"
    return line + note


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
