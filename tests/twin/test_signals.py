"""Who cancels its own session by SQL is heard by the proxy; nobody can pretend to."""

import asyncio

import psycopg
import pytest
from psycopg import AsyncConnection

from proxy.twin.twin import Twin
from tests.support.waiting import is_active, until


class Heard(list[tuple[str, int]]):
    async def wait(self) -> tuple[str, int]:
        await until(lambda: bool(self))
        return self.pop(0)


@pytest.fixture
def heard(twin: Twin) -> Heard:
    heard = Heard()
    twin.on_signal = lambda signal, process: heard.append((signal, process))
    return heard


async def test_cancelling_ones_own_other_session_is_heard_and_done(twin: Twin, heard: Heard) -> None:
    async with (
        await AsyncConnection.connect(twin.dsn("ada"), autocommit=True) as first,
        await AsyncConnection.connect(twin.dsn("ada"), autocommit=True) as second,
    ):
        process = first.info.backend_pid
        running = asyncio.create_task(first.execute("SELECT pg_sleep(60)"))
        await until(lambda: is_active(twin.dsn("ada"), "pg_sleep(60)"))
        cursor = await second.execute(f"SELECT pg_cancel_backend({process})")
        assert await cursor.fetchone() == (True,)
        assert await heard.wait() == ("cancel", process)
        with pytest.raises(psycopg.errors.QueryCanceled):
            await running

        await second.execute(f"SELECT pg_terminate_backend({process}), pg_terminate_backend(NULL)")
        assert await heard.wait() == ("terminate", process)


async def test_a_forged_signal_is_not_heard(twin: Twin, heard: Heard) -> None:
    async with (
        await AsyncConnection.connect(twin.dsn("bob"), autocommit=True) as bob,
        await AsyncConnection.connect(twin.dsn("ada"), autocommit=True) as ada,
    ):
        await ada.execute(f"SELECT pg_catalog.noisegate_tell('cancel', {bob.info.backend_pid})")
        await ada.execute(f"NOTIFY noisegate, 'cancel {bob.info.backend_pid}'")
        cursor = await ada.execute("SELECT prosrc FROM pg_proc WHERE pronamespace = 'noisegate'::regnamespace")
        await ada.execute(f"SELECT pg_catalog.noisegate_tell('boom', {ada.info.backend_pid})")
        await ada.execute(
            "SELECT pg_catalog.noisegate_tell('cancel ' || n, pg_backend_pid()) FROM generate_series(1, 1000) AS n"
        )
        channel = twin._channel
        assert not [source for (source,) in await cursor.fetchall() if channel in source]
    await asyncio.sleep(0.3)
    assert heard == []


async def test_a_signal_that_fails_is_not_the_last_that_is_heard(twin: Twin, heard: Heard) -> None:
    def fail(signal: str, process: int) -> None:
        twin.on_signal = lambda *said: heard.append(said)
        raise KeyError(signal, process)

    twin.on_signal = fail
    async with await AsyncConnection.connect(twin.dsn("ada"), autocommit=True) as ada:
        async with asyncio.timeout(10):
            while not heard:
                await ada.execute(
                    "SELECT pg_cancel_backend(NULL), pg_catalog.noisegate_tell('cancel', pg_backend_pid())"
                )
                await asyncio.sleep(0.1)


async def test_backends_are_ended_whatever_they_run(twin: Twin) -> None:
    async with await AsyncConnection.connect(twin.dsn("ada"), autocommit=True) as ada:
        running = asyncio.create_task(ada.execute("SET statement_timeout = 0; SELECT pg_sleep(60)"))
        await until(lambda: is_active(twin.dsn("ada"), "pg_sleep(60)"))

        await twin.end_backends([ada.info.backend_pid])

        with pytest.raises(psycopg.errors.AdminShutdown):
            await running
