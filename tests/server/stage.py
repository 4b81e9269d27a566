"""A twin, sessions on it, and a service that knows a handful of statements: what tests of sessions stand on."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from proxy.execute.public_rows import PublicRows
from proxy.execute.service import Answer, Service
from proxy.execute.system_views import OwnRows
from proxy.session.sessions import Sessions
from proxy.settings import SessionSettings
from proxy.twin.embedded import PORT, Cluster
from proxy.twin.own_objects import create_moment
from rules.accounting.budgets import PaidIn
from rules.mechanisms.release_plan import Block
from rules.planner.plan import Plan, PreviewRows, PublicQuery, Request
from rules.refusal import Interrupted, NotAllowed, Refusal
from rules.sql.read import read
from rules.sql.session_settings import SettingLimits
from rules.sql.statement import Reading, Statement
from tests.server.door import serve
from tests.server.raw import RawClient

DATABASE = "twin"
ANALYST = "ada"

TWIN = """
CREATE TYPE status AS ENUM ('open', 'paid');
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, status status, amount numeric(10,2), day date, note text);
CREATE TABLE products (id int PRIMARY KEY, name text);
INSERT INTO products SELECT i, 'Product ' || i FROM generate_series(1, 20) AS i;
CREATE SCHEMA other;
CREATE TABLE other.orders (id int);
INSERT INTO other.orders VALUES (1), (2);
CREATE SCHEMA noisegate;
CREATE FUNCTION pg_catalog.noisegate_canon(value anyelement) RETURNS text LANGUAGE sql STABLE
    SET datestyle = 'ISO, YMD' SET intervalstyle = postgres SET extra_float_digits = 1 SET timezone = 'UTC'
    AS 'SELECT value::text';
CREATE ROLE ada LOGIN;
ALTER DATABASE twin SET noisegate.epsilon = '0.1';
GRANT REFERENCES ON orders TO ada;
GRANT SELECT ON products, other.orders TO ada;
GRANT USAGE ON SCHEMA noisegate, other TO ada;
REVOKE CREATE, TEMP ON DATABASE twin FROM PUBLIC;
"""

OUTERS: dict[str, tuple[str | int, ...]] = {
    "SELECT count(*) FROM orders": (
        "SELECT m AS count FROM (SELECT a.m::bigint AS m FROM unnest(",
        1,
        "::text[]) AS a(m)) AS b",
    ),
    "SELECT status, count(*) AS n FROM orders GROUP BY status": (
        "SELECT k AS status, m AS n FROM (SELECT a.k::status AS k, a.m::bigint AS m FROM unnest(",
        1,
        "::text[], ",
        2,
        "::text[]) AS a(k, m)) AS b",
    ),
    "SELECT count(*), $2::text AS tag FROM orders WHERE amount > $1": (
        "SELECT m AS count, ",
        2,
        "::text AS tag FROM (SELECT a.m::bigint AS m FROM unnest(",
        3,
        "::text[]) AS a(m)) AS b",
    ),
    "SELECT count(*) AS wrong FROM orders": ("SELECT m::int AS wrong FROM unnest(", 1, "::text[]) AS a(m)"),
}  # fmt: skip
COLUMNS: dict[int, tuple[tuple[str | None, ...], ...]] = {
    1: (("42",),),
    2: (("open", "paid", None), ("7", "-3", "11")),
}
LIMITS = SettingLimits(Decimal("0.1"), Decimal(1), Decimal(0))


@dataclass
class FewStatements(Service):
    """A service that plans the statements above, and answers each with the same columns."""

    requests: list[Request] = field(default_factory=list)
    answered: int = 0
    seconds: float = 0.0  # that an inner run takes
    timeouts: list[float] = field(default_factory=list)
    reuses: list[bool] = field(default_factory=list)
    failure: Refusal | None = None
    period: str = "month:2026-11"
    last: tuple[str, ...] = ()  # rows of noisegate.last that the newest statement could be told
    limits: SettingLimits = LIMITS

    def __repr__(self) -> str:
        return f"{self.answered} answers"  # short, for reports of failed examples

    async def read(self, text: str, analyst: str) -> Reading:
        return read(text)

    def paid_in(self, analyst: str) -> PaidIn:
        return self.period, None

    def limits_of(self, analyst: str) -> SettingLimits:
        return self.limits

    def may_touch(self, statement: Statement) -> bool:
        return any(relation.name == "orders" for relation in statement.relations)

    def is_protected(self, schema: str, name: str) -> bool:
        return (schema, name) == ("public", "orders")

    def synopsis(self, schema: str) -> None:
        """There are none here."""

    def preview_rows(self, analyst: str) -> tuple[PreviewRows, ...]:
        return ()

    def find_plan(self, request: Request) -> None:
        """Each is planned anew."""

    def find_answer(self, plan: Plan, *, analyst: str, session: str) -> None:
        """Each is answered anew."""

    async def plan(self, request: Request, analyst: str) -> Plan:
        self.requests.append(request)
        outer = OUTERS.get(" ".join(request.text.replace("public.", "").split()))
        if outer is None:
            position = request.text.find("note") + 1 or None
            raise NotAllowed("rows of orders are protected", hint="Ask for count(*).", position=position)
        return Plan((), outer, len(request.parameters), request.epsilon, Decimal(0))

    public: PublicRows = field(default_factory=PublicRows)

    async def read_public(
        self, query: PublicQuery, width: int, *, analyst: str, zone: str, seconds: float
    ) -> tuple[tuple[str | None, ...], ...]:
        raise AssertionError("no table is closed")

    async def find_released(self, blocks: Sequence[Block], *, analyst: str, session: str, time_zone: str) -> None:
        """Nothing is kept."""

    async def check_affordable(
        self, first: Plan, rest: Sequence[Plan], *, analyst: str, session: str, reuse: bool
    ) -> None:
        """Nothing costs anything here."""

    async def answer(
        self,
        plan: Plan,
        *,
        analyst: str,
        session: str,
        timeout_seconds: float,
        reuse: bool = True,
        is_first: bool = False,
        own: OwnRows = dict,
    ) -> Answer:
        self.answered += 1
        self.timeouts.append(timeout_seconds)
        self.reuses.append(reuse)
        self.last = own().get("last", ())
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.sleep(self.seconds)
        except (TimeoutError, asyncio.CancelledError):
            raise Interrupted("canceling statement due to user request") from None
        if self.failure is not None:
            raise self.failure
        holes = len([part for part in plan.outer if isinstance(part, int) and part > plan.parameters])
        return Answer(COLUMNS[holes], ("ε 0.1 spent",), ("the margins",))


@dataclass
class Stage:
    """Where raw clients go: to the twin itself, or through sessions of the proxy."""

    direct: Path
    proxied: Path
    service: FewStatements
    sessions: Sessions

    def __repr__(self) -> str:
        return repr(self.service)

    async def client(self, *, user: str = ANALYST, **settings: str) -> RawClient:
        """Through the proxy, its greeting read."""
        client = await RawClient.connect(self.proxied, user=user, database=DATABASE, **settings)
        await client.until()
        return client

    async def direct_client(self, *, user: str = ANALYST, **settings: str) -> RawClient:
        """To the same PostgreSQL, without the proxy."""
        client = await RawClient.connect(self.direct, user=user, database=DATABASE, **settings)
        await client.until()
        return client


@pytest.fixture(scope="session", params=[18, pytest.param(16, marks=pytest.mark.extended)], ids=["on 18", "on 16"])
def twin_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A PostgreSQL that plays the twin, with empty protected tables, in the versions that a twin may have."""
    cluster = make_twin(request.param)
    yield cluster
    cluster.stop()


def make_twin(version: int) -> Cluster:
    """A cluster with what tests of sessions expect in it."""
    cluster = Cluster.start(version=version)
    with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {DATABASE}")
    with psycopg.connect(cluster.dsn(DATABASE), autocommit=True) as owner:
        owner.execute(TWIN)
        for step in create_moment("pg_catalog.noisegate_"):
            owner.execute(step.sql)
    return cluster


@pytest_asyncio.fixture
async def stage(twin_cluster: Cluster) -> AsyncIterator[Stage]:
    service = FewStatements()
    direct = twin_cluster.directory / f".s.PGSQL.{PORT}"

    async def end_backends(process_ids: Collection[int]) -> None:
        async with await psycopg.AsyncConnection.connect(twin_cluster.dsn()) as owner:
            await owner.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s) AS pid", [list(process_ids)])

    async def reset_roles(analyst: str) -> bool:
        async with await psycopg.AsyncConnection.connect(twin_cluster.dsn()) as owner:
            return (await owner.execute("DELETE FROM pg_db_role_setting WHERE setrole <> 0")).rowcount > 0

    sessions = Sessions(
        service,
        socket=lambda analyst: direct,
        end_backends=end_backends,
        reset_roles=reset_roles,
        database=DATABASE,
        settings=SessionSettings(),
    )
    with tempfile.TemporaryDirectory() as place:
        proxied = Path(place) / "proxy"
        server = await serve(sessions.open, proxied, database=DATABASE)
        yield Stage(direct, proxied, service, sessions)
        server.close()
