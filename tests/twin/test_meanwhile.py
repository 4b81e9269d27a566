"""Sessions whose twin changes under them: what PostgreSQL says of torn catalogs is told as what can be tried again."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.session.sessions import Sessions
from proxy.settings import SessionSettings
from proxy.twin.embedded import Cluster
from proxy.twin.steps import Step, apply
from proxy.twin.twin import Twin
from proxy.wire.frontend import Query
from rules.planner.plan import Plan, Request
from tests.conftest import RealDatabase, make_shop
from tests.server.door import serve
from tests.server.raw import RawClient, errors, kinds
from tests.server.stage import FewStatements
from tests.support import shop as shop_data
from tests.support.waiting import until

CONSTRAINTS = b"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'products_pkey'"
GROUPS = b"SELECT status, count(*) AS n FROM orders GROUP BY status"


@dataclass
class _Planning(FewStatements):
    """A service whose plans take as long as a change of the schema."""

    house: "_House | None" = None

    async def plan(self, request: Request, analyst: str) -> Plan:
        if self.house is not None:
            await self.house.change("ALTER TYPE status RENAME TO state")
        return await super().plan(request, analyst)


@dataclass
class _House:
    """A real database, its twin, and sessions on it."""

    real: RealDatabase
    engine: PostgresEngine
    twin: Twin
    service: _Planning
    proxied: Path

    async def client(self) -> RawClient:
        client = await RawClient.connect(self.proxied, user="ada", database=self.twin.database)
        await client.until()
        return client

    async def change(self, sql: str) -> None:
        """Change the real database, and the twin after it."""
        with self.real.connect() as owner:
            owner.execute(sql.encode())
        await self.twin.refresh(await self.engine.catalog(), shop_data.policy())


@pytest.fixture
async def house(real_cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[_House]:
    real = make_shop(real_cluster, f"torn {request.node.name}"[:60])
    engine = PostgresEngine(real.reader_dsn)
    twin = await Twin.open(await engine.catalog(), shop_data.policy(), engine)
    service = _Planning()
    sessions = Sessions(
        service,
        socket=lambda _: twin.socket,
        end_backends=twin.end_backends,
        reset_roles=lambda _: twin.reset_roles(),
        database=twin.database,
        settings=SessionSettings(),
    )
    sessions.twin_changes = lambda _: twin.changes.number
    server = await serve(sessions.open, tmp_path / "proxy", database=twin.database)
    yield _House(real, engine, twin, service, tmp_path / "proxy")
    server.close()
    await twin.close()
    await engine.close()


async def test_a_relation_that_a_change_has_dropped_meanwhile_is_no_internal_error(house: _House) -> None:
    client = await house.client()
    await client.ask(Query(b"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class"))
    await house.change("DROP TABLE order_items, products")

    frames = await client.ask(Query(CONSTRAINTS))

    (error,) = errors(frames)
    assert (error.sqlstate, error.fields["M"]) == ("40001", "the schema changed while the statement ran")
    assert (error.fields["H"], frames[-1].raw[5:6]) == ("Run it again.", b"E")
    assert kinds(await client.ask(Query(b"ROLLBACK"))) == "CZ"
    assert kinds(await client.ask(Query(CONSTRAINTS))) == "TCZ"


async def test_an_internal_error_that_no_change_has_caused_stays_postgresqls(house: _House) -> None:
    client = await house.client()
    await client.ask(Query(b"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class"))
    with psycopg.connect(house.twin.owner_dsn, autocommit=True) as owner:
        owner.execute("DROP TABLE order_items, products")

    (error,) = errors(await client.ask(Query(CONSTRAINTS)))

    assert (error.sqlstate, error.fields["M"].startswith("cache lookup failed")) == ("XX000", True)


async def test_a_deadlock_with_a_change_is_one_that_can_be_tried_again(house: _House) -> None:
    client = await house.client()
    await client.ask(Query(b"BEGIN; SELECT count(*) FROM products"))
    steps = [f"ALTER TABLE public.{table} ADD COLUMN extra int" for table in ("order_items", "products")]

    async def change() -> None:
        async with (
            house.twin.changes,
            await psycopg.AsyncConnection.connect(house.twin.owner_dsn, autocommit=True) as owner,
        ):
            await apply(owner, [Step(steps[0]), Step("SELECT pg_sleep(0.6)"), Step(steps[1])])

    changing = asyncio.create_task(change())
    await until(lambda: _is_locked(house, "order_items"))
    frames = await client.ask(Query(b"SELECT * FROM order_items LIMIT 0"))
    await client.ask(Query(b"ROLLBACK"))
    await changing

    assert [(error.sqlstate, error.fields["M"]) for error in errors(frames)] == [
        ("40001", "the schema changed while the statement ran")
    ]


def _is_locked(house: _House, table: str) -> bool:
    asked = "SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = %s::regclass"
    with psycopg.connect(house.twin.owner_dsn, autocommit=True) as owner:
        return owner.execute(asked, [table]).fetchone() is not None


async def test_a_plan_that_a_change_has_overtaken_is_no_misreading_of_ours(house: _House) -> None:
    client = await house.client()
    house.service.house = house

    (error,) = errors(await client.ask(Query(GROUPS)))

    assert (error.sqlstate, error.fields["M"]) == ("40001", "the schema changed while the statement ran")
    assert house.service.answered == 0
