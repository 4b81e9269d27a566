"""A twin by the programs of another PostgreSQL than the wheel's choice, and refusals of those that cannot be one."""

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.embedded import ClusterError, server_binaries
from proxy.twin.server_programs import ServerPrograms
from proxy.twin.twin import Twin, TwinLimits
from tests.conftest import RealDatabase
from tests.support import shop as shop_data


async def test_a_twin_runs_the_programs_that_it_is_given(shop: RealDatabase) -> None:
    engine = PostgresEngine(shop.reader_dsn)
    catalog = replace(await engine.catalog(), version=160000)  # for which the wheel's choice is 16
    policy = shop_data.policy(shop.reader_dsn)
    twin = await Twin.open(catalog, policy, engine, TwinLimits(), server_binaries(18))
    try:
        with psycopg.connect(twin.dsn("ada")) as session:
            assert session.info.server_version // 10_000 == 18
            assert session.execute("SELECT count(*) FROM products").fetchone() == (30,)
    finally:
        await twin.close()
        await engine.close()


def _program(directory: Path, name: str, words: str = "") -> None:
    (directory / name).write_text(f"#!/bin/sh\necho '{words}'\n")
    (directory / name).chmod(0o755)


def test_what_is_missing_is_said(cluster_home: Path) -> None:
    cluster_home.chmod(0o755)

    def refusal(server_version: int = 160000) -> str:
        with pytest.raises(ClusterError) as caught:
            ServerPrograms.of_machine(cluster_home, server_version)
        return str(caught.value)

    assert "has no program postgres: name the bin directory of a server" in refusal()
    _program(cluster_home, "postgres", "BusyBox")
    assert "has no program initdb" in refusal()
    _program(cluster_home, "initdb")
    assert "does not say its version" in refusal()
    _program(cluster_home, "postgres", "postgres (PostgreSQL) 15.18 (Debian 15.18-0)")
    assert "is PostgreSQL 15, and the twin can be 16 to 18" in refusal()
    _program(cluster_home, "postgres", "postgres (PostgreSQL) 17.4")
    assert "is PostgreSQL 17, older than the database, which is 18" in refusal(180001)
    assert ServerPrograms.of_machine(cluster_home, 170010).version == 17
