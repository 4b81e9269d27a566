"""NOTICEs while a real PostgreSQL keeps a statement waiting: by a lock that another connection holds there."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

from tests.clients.conftest import PSQLS, locked
from tests.clients.questions import RULES
from tests.conftest import RealDatabase
from tests.support.running import Noisegate, noisegate

Session = psycopg.Connection
pytestmark = pytest.mark.extended

_NUMBERS = count(1)


@contextmanager
def heard(proxy: Noisegate, every: str) -> Iterator[tuple[Session, list[str]]]:
    """A session and all that it is told of statements that run."""
    said: list[str] = []
    with psycopg.connect(proxy.dsn(), options=f"-c noisegate.progress={every}", autocommit=True) as session:
        session.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        yield session, said


def question() -> str:
    """Ask what nobody has asked before."""
    return f"SELECT count(*) FROM customers WHERE id > -{next(_NUMBERS) + 7000}"


def shown(text: str, *seconds: int, limit: int = 300) -> list[str]:
    return [f"still running after {second} s ({limit} s at most): {text}" for second in seconds]


@pytest.mark.parametrize("psql", PSQLS.values(), ids=PSQLS)
def test_psql_prints_it_above_the_answer(psql: str, proxy: Noisegate, shop: RealDatabase) -> None:
    mode = "disable" if "pginstall" in psql else "require"  # the wheel's libpq knows no TLS
    text = question()
    with locked(shop, "customers", 2.5):
        done = subprocess.run(
            [psql, "-X", "-A", "-t", proxy.dsn(sslmode=mode)],
            input=f"SET noisegate.progress = 1;\n{text};\n",
            capture_output=True, text=True, timeout=60, check=False, env=os.environ | {"LC_ALL": "C.UTF-8"},
        )  # fmt: skip

    lines = done.stderr.splitlines()
    assert lines[:2] == [f"NOTICE:  {words}" for words in shown(text, 1, 2)]
    assert "spent" in lines[-1] and done.stdout.splitlines()[0] == "SET"


@pytest.mark.parametrize("way", ["simple", "prepared", "cursor", "pipeline", "copy"])
def test_psycopg_hears_it_by_every_way_of_asking(proxy: Noisegate, shop: RealDatabase, way: str) -> None:
    text = question()
    with heard(proxy, "1") as (session, said), locked(shop, "customers", 2.3):
        if way == "cursor":
            with session.transaction(), session.cursor("c") as cursor:
                rows = cursor.execute(text).fetchall()
        elif way == "pipeline":
            with session.pipeline():
                session.execute("SELECT 1")
                answers = session.execute(text), session.execute("SELECT 2")
            rows, (last,) = answers[0].fetchall(), answers[1].fetchall()
            assert last == (2,)
        elif way == "copy":
            with session.cursor().copy(f"COPY ({text}) TO STDOUT") as copy:
                rows = list(copy.rows())
        else:
            rows = session.execute(text, prepare=way == "prepared").fetchall()

        assert [words.partition(" s ")[0] for words in said[:2]] == [f"still running after {n}" for n in (1, 2)]
        assert all(text[:20] in words or way in ("cursor", "copy") for words in said[:2])
        assert 390 < int(rows[0][0]) < 410 and "spent" in said[-1]


def test_a_statement_that_times_out_has_said_so_by_its_own_limit(proxy: Noisegate, shop: RealDatabase) -> None:
    text = question()
    with heard(proxy, "1") as (session, said), locked(shop, "customers", 2.5):
        session.execute("SET statement_timeout = '2s'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            session.execute(text)

        assert said == shown(text, 1, limit=2)


def test_with_padding_a_fast_and_a_slow_statement_say_the_same(shop: RealDatabase, tmp_path: Path) -> None:
    """All is said at multiples of the session's own seconds, up to the point of the grid."""
    with noisegate(tmp_path, shop.reader_dsn, rules=f"pad_to: 2500 ms\n{RULES}") as proxy, heard(proxy, "1") as told:
        session, said = told
        fast, slow = question(), question()
        session.execute(fast)
        of_fast, said[:] = list(said), []
        with locked(shop, "customers", 1.5):
            session.execute(slow)

        assert of_fast[:-1] == shown(fast, 1, 2) and "spent" in of_fast[-1]
        assert said[:-1] == shown(slow, 1, 2) and "spent" in said[-1]
