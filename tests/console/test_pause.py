"""PAUSE waits for what runs; whoever asked for it may cancel it, or leave."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from proxy.console.commands import Console, NotDone
from proxy.console.session import ConsoleSession
from proxy.console.vitals import Vitals
from proxy.execute.load_limits import Gate
from proxy.session.interfaces import ClientPort, Login, Session
from proxy.wire.frontend import Query
from rules.policy.freeze import Unseen
from rules.policy.model import Policy
from tests.server.door import serve
from tests.server.raw import RawClient, errors, kinds
from tests.support.waiting import until

PAUSE = Query(b"PAUSE")


class Office:
    """A console, and the operators who come to it in their order."""

    def __init__(self, path: Path) -> None:
        self.gate, self.sessions, self._path = Gate(), list[ConsoleSession](), path
        vitals = cast(Vitals, SimpleNamespace(service=SimpleNamespace(gate=self.gate)))
        self._console = Console(vitals, self._policy, self._unseen, lambda: True, self._reload, self._refresh)

    async def open_session(self, login: Login, client: ClientPort) -> Session:
        self.sessions.append(ConsoleSession(self._console, login, client))
        return self.sessions[-1]

    async def operator(self) -> RawClient:
        client = await RawClient.connect(self._path, user="root", database="noisegate")
        await client.until()
        return client

    def _policy(self) -> Policy:
        raise AssertionError("nobody asks for the rules")

    def _unseen(self) -> Sequence[Unseen]:
        return ()

    async def _reload(self) -> str:
        return ""

    async def _refresh(self) -> bool:
        return True


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    office = Office(tmp_path / "console")
    server = await serve(office.open_session, tmp_path / "console", database="noisegate")
    yield office
    server.close()


async def test_an_operator_who_leaves_while_pause_waits_leaves_no_task_behind(office: Office) -> None:
    before = asyncio.all_tasks()
    async with office.gate.passed(asyncio.get_running_loop().time() + 60):
        client = await office.operator()
        client.send(PAUSE)
        await until(lambda: office.gate.is_closed)

        await client.close()

        await until(lambda: asyncio.all_tasks() == before)
    assert office.gate.is_closed


async def test_a_cancel_is_for_the_pause_of_its_own_session(office: Office) -> None:
    first, second = await office.operator(), await office.operator()
    async with office.gate.passed(asyncio.get_running_loop().time() + 60):
        for client in (first, second):
            client.send(PAUSE)
        await until(lambda: office.gate.is_closed)
        await asyncio.sleep(0.05)

        office.sessions[0].cancel()

        frames = await first.until()
        assert (kinds(frames), errors(frames)[0].sqlstate) == ("EZ", "57014")
        assert kinds(await first.ask(Query(b"SHOW UNSEEN"))) == "TCZ"
        office.sessions[0].cancel()  # it waits for nothing now
    assert kinds(await second.until()) == "CZ"


async def test_resume_ends_the_pause_of_another_operator(office: Office) -> None:
    first, second = await office.operator(), await office.operator()
    async with office.gate.passed(asyncio.get_running_loop().time() + 60):
        first.send(PAUSE)
        await until(lambda: office.gate.is_closed)

        assert kinds(await second.ask(Query(b"RESUME"))) == "CZ"

        frames = await first.until()
        assert (kinds(frames), errors(frames)[0].sqlstate) == ("EZ", NotDone.sqlstate)
    assert not office.gate.is_closed
