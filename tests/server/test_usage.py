"""What sessions take of the twin's machine has a limit, and so has the time for which they do nothing."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.session.usage_limits import Used, memory_bytes, temporary_bytes, too_much
from proxy.settings import MEGABYTE, SessionSettings, UsageLimits
from proxy.twin.embedded import Cluster
from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync
from tests.server.raw import RawClient, errors, kinds
from tests.server.stage import DATABASE, Stage
from tests.support.waiting import until

GREEDY = b"BEGIN; SET LOCAL work_mem = '400MB'; DECLARE c CURSOR FOR SELECT DISTINCT repeat('x', 500) || n FROM "
GREEDY += b"generate_series(1, 200000) AS n; FETCH 1 FROM c"  # some 100 MB, for as long as the transaction is open
SPILLING = b"BEGIN; SET LOCAL work_mem = '64kB'; DECLARE c CURSOR FOR SELECT repeat('x', 500) || n AS t FROM "
SPILLING += b"generate_series(1, 100000) AS n ORDER BY 1; FETCH 1 FROM c"

linux_alone = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux alone tells what a process holds")


@pytest.fixture
async def watched(stage: Stage) -> AsyncIterator[Stage]:
    watching = asyncio.create_task(stage.sessions.watch())
    yield stage
    watching.cancel()


@pytest.mark.extended
@linux_alone
@pytest.mark.parametrize("limited", ["memory_per_analyst", "memory", "temporary_per_analyst", "temporary"])
async def test_sessions_that_take_too_much_together_are_ended_until_they_do_not(
    watched: Stage, twin_cluster: Cluster, limited: str
) -> None:
    small = await watched.client()
    greedy = [await watched.client() for _ in range(2)]
    for client in greedy:
        assert errors(await client.ask(Query(GREEDY if limited.startswith("memory") else SPILLING))) == []
    processes = [session._relay.link.key.process_id for session in watched.sessions.all()]
    files = temporary_bytes(watched.direct)
    taken = sum(memory_bytes(process) if limited.startswith("memory") else files[process] for process in processes)
    assert taken > 60 * MEGABYTE

    watched.sessions.settings = SessionSettings(usage=replace(UsageLimits(), **{limited: taken * 3 // 4}))
    await until(lambda: any(_has_ended(client) for client in greedy))
    ended = [client for client in greedy if _has_ended(client)]
    assert [error.sqlstate for client in ended for error in errors(await client.rest())] == ["53200"]
    assert kinds(await small.ask(Query(b"SELECT 1"))) == "TDCZ"
    (gone,) = set(processes) - {session._relay.link.key.process_id for session in watched.sessions.all()}
    await until(lambda: gone not in _backends(twin_cluster))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("opening", "settings", "sqlstate"),
    [
        (b"BEGIN; SET idle_in_transaction_session_timeout = 0", SessionSettings(idle_transaction_seconds=0.5), "25P03"),
        (b"SET idle_session_timeout = 0", SessionSettings(idle_session_seconds=0.5), "57P05"),
    ],
)
async def test_a_client_that_does_nothing_is_ended_whatever_it_sets(
    watched: Stage, opening: bytes, settings: SessionSettings, sqlstate: str
) -> None:
    client = await watched.client()
    await client.ask(Query(opening))
    watched.sessions.settings = settings

    assert [error.sqlstate for error in errors(await client.rest())] == [sqlstate]


@pytest.mark.extended
async def test_a_session_that_works_is_not_idle(watched: Stage) -> None:
    watched.sessions.settings = replace(SessionSettings(), idle_transaction_seconds=1.5, idle_session_seconds=1.5)
    watched.service.seconds = 3

    client = await watched.client()

    assert (
        kinds(await client.ask(Query(b"BEGIN; SELECT pg_sleep(3); SELECT count(*) FROM orders; COMMIT")))[-2:] == "CZ"
    )


each_used = st.builds(Used, st.integers(1, 99), st.sampled_from(["ada", "bob"]), st.integers(0, 50))
used = st.lists(each_used, unique_by=lambda each: each.process_id)


@given(used, st.integers(0, 100), st.integers(0, 200))
def test_those_who_stay_keep_every_limit_and_nobody_goes_in_vain(
    used: list[Used], per_analyst: int, in_all: int
) -> None:
    going = too_much(used, per_analyst, in_all)

    staying: Counter[str] = Counter()
    for each in used:
        if each.process_id not in going:
            staying[each.analyst] += each.bytes
    assert all(size <= per_analyst for size in staying.values())
    assert staying.total() <= in_all
    if sum(each.bytes for each in used) <= min(per_analyst, in_all):
        assert going == []


def _backends(cluster: Cluster) -> set[int]:
    with psycopg.connect(cluster.dsn()) as owner:
        return {process for (process,) in owner.execute("SELECT pid FROM pg_stat_activity")}


def _has_ended(client: RawClient) -> bool:
    """Whether all has arrived, read or not."""
    return bool(client.reader._eof)  # type: ignore[attr-defined]


async def test_a_twin_that_is_just_away_does_not_end_the_watch(stage: Stage) -> None:
    def away(_: str) -> Path:
        raise FileNotFoundError

    client = await stage.client()
    stage.sessions._socket = away

    stage.sessions._check_usage()

    assert kinds(await client.ask(Query(b"SELECT 1"))) == "TDCZ"


MAKE = b"CREATE TEMP VIEW v AS SELECT 1"


async def test_a_session_makes_only_so_many_temporary_views_in_its_life(stage: Stage, twin_cluster: Cluster) -> None:
    stage.sessions.settings = replace(stage.sessions.settings, most_views=3)
    client = await stage.client()
    with psycopg.connect(twin_cluster.dsn(DATABASE), autocommit=True) as owner:
        owner.execute("GRANT TEMP ON DATABASE twin TO PUBLIC")
        try:
            drop = Query(b"DROP VIEW v")
            await client.ask(Parse(b"p", MAKE), Sync())
            assert kinds(await client.ask(Bind(b"", b"p"), Execute(b""), Sync())) == "2CZ"
            await client.ask(drop)
            assert kinds(await client.ask(Query(MAKE + b"; DROP VIEW v"))) == "CCZ"
            assert kinds(await client.ask(Query(MAKE))) == "CZ"
            await client.ask(drop)

            for frames in (
                await client.ask(Query(MAKE)),
                await client.ask(Query(b"SELECT 1; " + MAKE)),
                await client.ask(Bind(b"", b"p"), Execute(b""), Sync()),
                await client.ask(Parse(b"", MAKE), Sync()),
            ):
                (error,) = errors(frames)
                assert error.sqlstate == "54000"
            assert kinds(await client.ask(Query(b"DROP VIEW IF EXISTS v"))) == "CZ"
        finally:
            owner.execute("REVOKE TEMP ON DATABASE twin FROM PUBLIC")
