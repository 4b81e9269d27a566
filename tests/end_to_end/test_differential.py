"""Whatever does not read a protected table goes through the proxy as if it were not there, message by message.

Each script is sent twice, as raw bytes: to the twin's PostgreSQL and through a session. All that comes back must be
equal to the byte: kinds, descriptions, rows, tags, errors with their positions, transaction states.
"""

import asyncio
from collections.abc import Sequence

import pytest

from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Flush, Parse, Query, Sync, Terminate
from tests.server.raw import Message, RawClient
from tests.server.stage import Stage

Script = Sequence[Message]


def queries(*texts: str) -> Script:
    return [Query(text.encode()) for text in texts]


def run(text: str, *parameters: bytes | None, rows: int = 0, formats: tuple[int, ...] = ()) -> Script:
    """Parse to Execute of an unnamed statement, without a Sync."""
    bind = Bind(b"", b"", (), parameters, formats)
    return [Parse(b"", text.encode()), bind, Describe(PORTAL, b""), Execute(b"", rows)]


SIMPLE: dict[str, Script] = {
    "one row": queries("SELECT 1 AS a, 'x' AS b"),
    "types": queries(
        "SELECT 1::int2, 2.5, 'x'::text, now() IS NOT NULL, ARRAY[1,2], NULL, 'open'::status, '{}'::jsonb",
    ),
    "table": queries("SELECT * FROM products ORDER BY id"),
    "empty": queries("", ";", "  ", "-- nothing", "/* nothing */;;"),
    "syntax error": queries("SELEC 1", "SELECT (", "SELECT 1 1 1", "SELECT 'x", 'SELECT "x', "SELECT $$x"),
    "unknown things": queries("SELECT nothing FROM products", "SELECT * FROM nowhere", "SELECT no_such(1)"),
    "position after é": queries("SELECT 'éé', nothing FROM products"),
    "error at run time": queries("SELECT 1/0", "SELECT 'a'::int", "SELECT 1"),
    "transaction": queries("BEGIN", "SELECT 1", "COMMIT", "COMMIT", "ROLLBACK"),
    "failed transaction": queries("BEGIN", "SELECT 1/0", "SELECT 1", "SELECT nothing", "ROLLBACK", "SELECT 1"),
    "failed commit": queries("BEGIN", "SELECT nothing", "COMMIT", "SELECT 1"),
    "savepoints": queries(
        "BEGIN", "SAVEPOINT a", "SELECT 1/0", "ROLLBACK TO SAVEPOINT a", "SELECT 1", "RELEASE a", "COMMIT"
    ),
    "modes": queries("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SHOW transaction_isolation", "COMMIT"),
    "settings": queries(
        "SET datestyle = 'SQL, DMY'", "SELECT date '2024-02-01'", "SHOW datestyle", "RESET datestyle", "SHOW ALL"
    ),
    "reported settings": queries(
        "SET application_name = 'x'", "SET TIME ZONE 'UTC'", "SET nonsense = 1", "SET a.b = 1",
    ),
    "client encoding": queries("SET client_encoding = 'LATIN1'", "SELECT 'é' AS \"é\"", "SELECT chr(322)"),
    "set config": queries("SELECT set_config('jit', 'off', false)", "SELECT current_setting('jit')"),
    "set local": queries("BEGIN", "SET LOCAL work_mem = '1MB'", "SHOW work_mem", "ROLLBACK", "SHOW work_mem"),
    "cursor": queries(
        "BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT * FROM products ORDER BY id", "FETCH 2 FROM c", "MOVE 3 IN c",
        "FETCH BACKWARD 1 FROM c", "FETCH 0 FROM c", "CLOSE c", "FETCH 1 FROM c", "ROLLBACK",
    ),
    "cursor outside": queries("DECLARE c CURSOR FOR SELECT 1", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "FETCH c"),
    "copy out": queries(
        "COPY (SELECT * FROM products ORDER BY id) TO STDOUT", "COPY products TO STDOUT (FORMAT csv, HEADER)",
        "COPY (SELECT 1, 'a') TO STDOUT (FORMAT binary)", "COPY (SELECT 1/0) TO STDOUT", "COPY nowhere TO STDOUT",
    ),
    "prepare": queries(
        "PREPARE p (int) AS SELECT $1 + 1", "EXECUTE p(1)", "EXECUTE p('x')", "EXECUTE p", "EXECUTE q",
        "PREPARE p AS SELECT 1", "DEALLOCATE p", "EXECUTE p(1)", "DEALLOCATE p", "DEALLOCATE ALL",
    ),
    "discard": queries("PREPARE p AS SELECT 1", "SET work_mem = '1MB'", "DISCARD ALL", "EXECUTE p", "SHOW work_mem"),
    "explain": queries("EXPLAIN (COSTS off) SELECT * FROM products", "EXPLAIN SELECT nothing"),
    "values and table": queries(
        "VALUES (1, 'a'), (2, 'b')", "TABLE products", "WITH a AS (SELECT 1 AS x) SELECT * FROM a",
    ),
    "another schema": queries(
        "SELECT * FROM other.orders", "SET search_path = other", "SELECT * FROM orders", "RESET search_path",
    ),
    "a name that means something else": queries(
        "WITH orders AS (SELECT 1 AS id) SELECT * FROM orders", "SELECT 1 AS orders", "SELECT 'orders'::regclass"
    ),
    "notices": queries("SET client_min_messages = debug1", "ROLLBACK", "SET client_min_messages = notice", "ROLLBACK"),
    "catalog": queries(
        "SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
        "SELECT count(*) FROM pg_catalog.pg_attribute WHERE attrelid = 'orders'::regclass",
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'orders' ORDER BY 1",
        "SELECT * FROM pg_authid",
    ),
    "listen": queries("LISTEN a", "UNLISTEN a", "UNLISTEN *"),
    "closing": queries("CLOSE ALL", "SELECT pg_advisory_unlock_all()", "RESET ALL"),
    "many rows": queries("SELECT i, repeat('x', 100) FROM generate_series(1, 5000) AS i"),
    "wide rows": queries("SELECT repeat('x', 300000)"),
}  # fmt: skip

STRINGS: dict[str, Script] = {
    "two": queries("SELECT 1; SELECT 2"),
    "implicit block": queries(
        "DECLARE c CURSOR FOR SELECT * FROM products ORDER BY id; FETCH 1 FROM c", "FETCH 1 FROM c",
    ),
    "stops at an error": queries("SELECT 1; SELECT 1/0; SELECT 2", "SELECT 3"),
    "error with a position": queries("SELECT 1; SELECT 'é'; SELECT nothing; SELECT 2"),
    "begin in it": queries("SET a.b = 'x'; BEGIN; SELECT 1", "SHOW a.b", "COMMIT"),
    "begin and a cursor": queries("BEGIN;declare \"c\" cursor with hold for select 1;fetch 3 in \"c\"", "COMMIT"),
    "whole transaction": queries("BEGIN; SELECT 1; COMMIT; SELECT 2"),
    "in a transaction": queries(
        "BEGIN", "SAVEPOINT a; SELECT 1; RELEASE a", "SELECT 1/0; SELECT 2", "ROLLBACK; SELECT 3",
    ),
    "prepares and executes": queries("PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE p; EXECUTE p", "SELECT 1"),
    "in a transaction with names": queries(
        "BEGIN", "PREPARE p AS SELECT 1; EXECUTE p; SELECT nothing; SELECT 2", "ROLLBACK", "DEALLOCATE ALL; SELECT 1"
    ),
    "copy in it": queries("SELECT 1; COPY (SELECT 2) TO STDOUT; SELECT 3"),
    "discard in it": queries("SELECT 1; DISCARD ALL", "DISCARD ALL; SELECT 1"),
    "settings in it": queries("SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isolation"),
}  # fmt: skip

EXTENDED: dict[str, Script] = {
    "one": [*run("SELECT $1::int + 1 AS n", b"41"), Sync()],
    "steps with a Sync each": [
        Parse(b"s", b"SELECT $1::int"), Sync(), Describe(STATEMENT, b"s"), Sync(), Bind(b"", b"s", (), (b"1",)),
        Describe(PORTAL, b""), Sync(), Bind(b"", b"s", (), (b"1",)), Execute(b""), Sync(), Close(STATEMENT, b"s"),
        Sync(),
    ],
    "binary": [
        Parse(b"", b"SELECT $1 + 1, $2", (23, 25)),
        Bind(b"", b"", (1, 0), (b"\0\0\0\x07", b"x"), (1,)), Describe(PORTAL, b""), Execute(b""), Sync(),
    ],
    "row limits": [
        Parse(b"", b"SELECT * FROM products ORDER BY id"), Bind(b"c", b""), Execute(b"c", 3), Execute(b"c", 3),
        Execute(b"c", 100), Execute(b"c", 1), Sync(), Execute(b"c"), Sync(),
    ],
    "portal across Syncs": [
        Query(b"BEGIN"), Parse(b"", b"SELECT * FROM products ORDER BY id"), Bind(b"c", b""), Execute(b"c", 3), Sync(),
        Execute(b"c", 3), Sync(), Query(b"FETCH 2 FROM c"), Close(PORTAL, b"c"), Sync(), Execute(b"c"), Sync(),
        Query(b"ROLLBACK"),
    ],
    "flush": [
        Parse(b"s", b"SELECT 1"), Describe(STATEMENT, b"s"), Flush(), Bind(b"", b"s"), Execute(b""), Flush(), Sync(),
    ],
    "error skips to Sync": [
        *run("SELECT 1"), *run("SELECT nothing"), *run("SELECT 2"), Query(b"SELECT 3"), Sync(), *run("SELECT 4"),
        Sync(),
    ],
    "error in each step": [
        Parse(b"", b"SELEC"), Sync(), Bind(b"", b"none"), Sync(), Describe(PORTAL, b"none"), Sync(),
        Describe(STATEMENT, b"none"), Sync(), Execute(b"none"), Sync(), Close(STATEMENT, b"none"), Sync(),
        Parse(b"", b"SELECT $1::int"), Bind(b"", b"", (), (b"x",)), Sync(), Bind(b"", b""), Sync(),
    ],
    "error at Execute": [*run("SELECT 1/0"), *run("SELECT 1"), Sync(), *run("SELECT 1"), Sync()],
    "error in a transaction": [
        *run("BEGIN"), Sync(), *run("SELECT 1/0"), Sync(), *run("SELECT 1"), Sync(), *run("ROLLBACK"), Sync(),
        *run("SELECT 1"), Sync(),
    ],
    "rollback in a pipeline": [
        *run("BEGIN"), Sync(), *run("SELECT x"), Sync(), *run("ROLLBACK"), *run("SELECT 1"), Sync(),
    ],
    "empty": [*run(""), Sync(), *run(";"), Sync(), *run("-- x"), Sync()],
    "two statements in a Parse": [*run("SELECT 1; SELECT 2"), Sync()],
    "names": [
        Parse(b"a", b"SELECT 1"), Parse(b"a", b"SELECT 2"), Sync(), Close(STATEMENT, b"a"), Parse(b"a", b"SELECT 3"),
        Bind(b"", b"a"), Execute(b""), Sync(), Query(b"EXECUTE a"), Query(b"DEALLOCATE a"), Bind(b"", b"a"), Sync(),
    ],
    "prepared by SQL": [
        Query(b"PREPARE p AS SELECT 1"), Describe(STATEMENT, b"p"), Bind(b"", b"p"), Execute(b""), Sync(),
        *run("PREPARE q AS SELECT 2"), *run("EXECUTE q"), Sync(), *run("DEALLOCATE ALL"), *run("EXECUTE q"), Sync(),
    ],
    "the unnamed statement lives until the next": [
        Parse(b"", b"SELECT 1"), Sync(), Bind(b"", b""), Execute(b""), Sync(), Query(b"SELECT 2"), Bind(b"", b""),
        Sync(),
    ],
    "pipelined Syncs": [*run("SELECT 1"), Sync(), *run("SELECT x"), Sync(), Sync(), *run("SELECT 2"), Sync()],
    "cursors": [
        *run("BEGIN"), *run("DECLARE c CURSOR FOR SELECT id FROM products WHERE id > $1 ORDER BY 1", b"5"),
        *run("FETCH 2 FROM c"), Describe(PORTAL, b"c"), Execute(b"c", 2), *run("CLOSE c"), *run("COMMIT"), Sync(),
    ],
    "copy": [*run("COPY (SELECT 1) TO STDOUT"), *run("COPY products TO STDOUT (FORMAT binary)"), Sync()],
    "settings": [*run("SET timezone = 'Asia/Tokyo'"), *run("SHOW timezone"), Sync(), *run("DISCARD ALL"), Sync()],
    "a table that means something else": [
        Query(b"SET search_path = other"), Parse(b"s", b"SELECT * FROM orders"), Describe(STATEMENT, b"s"), Sync(),
        Bind(b"", b"s"), Describe(PORTAL, b""), Execute(b""), Sync(), *run("SELECT * FROM orders WHERE id = $1",
        b"1"), Sync(),
        Query(b"PREPARE p AS SELECT * FROM orders"), Query(b"EXECUTE p"), *run("EXECUTE p"), Sync(),
        *run("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM orders"), *run("COPY orders TO STDOUT"), Sync(),
    ],
    "Query in a pipeline": [Parse(b"s", b"SELECT 1"), Query(b"SELECT 2"), Bind(b"", b"s"), Execute(b""), Sync()],
    "nothing but Sync": [Sync(), Sync(), Flush()],
    "copy messages that nobody asked for": [b"d\0\0\0\x05x", b"c\0\0\0\4", Query(b"SELECT 1")],
    "malformed": [
        b"P\0\0\0\6ab", Sync(), b"B\0\0\0\5\0", Sync(), b"D\0\0\0\6X\0", Sync(), b"E\0\0\0\5\0", Sync(),
        *run("SELECT 1"), Sync(),
    ],
    "lying Bind": [Parse(b"s", b"SELECT * FROM other.orders WHERE id = $1"), Bind(b"", b"s", (), (b"1", b"2")), Sync()],
    "no message of the protocol": [Query(b"SELECT 1"), b"z\0\0\0\4"],
    "many": [*(each for i in range(200) for each in (*run(f"SELECT {i}", rows=1), *[Sync()][: i % 7])), Sync()],
}  # fmt: skip

SCRIPTS = {**SIMPLE, **STRINGS, **EXTENDED}
LEFT_OUT = (b"K",)  # the key: each backend has its own


@pytest.mark.parametrize("pace", ["at once", "one by one"])
@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_client_cannot_tell_the_proxy_from_postgresql(stage: Stage, name: str, pace: str) -> None:
    script = SCRIPTS[name]

    direct = await play(await stage.direct_client(), script, pace)
    proxied = await play(await stage.client(), script, pace)

    assert proxied == direct


async def test_the_greeting_is_that_of_the_twin(stage: Stage) -> None:
    settings = {
        "application_name": "x",
        "DateStyle": "SQL, DMY",
        "options": "-c search_path=other",
        "client_encoding": "LATIN1",
    }
    greetings = []
    for path in (stage.direct, stage.proxied):
        client = await RawClient.connect(path, user="ada", database="twin", **settings)
        greetings.append([frame for frame in await client.until() if frame.kind not in LEFT_OUT])

    assert greetings[0] == greetings[1]


async def test_a_setting_that_the_twin_refuses_at_startup_is_refused_in_its_words(stage: Stage) -> None:
    refusals = []
    for path in (stage.direct, stage.proxied):
        client = await RawClient.connect(path, user="ada", database="twin", DateStyle="nonsense")
        refusals.append([frame for frame in await client.rest() if frame.kind == b"E"])

    assert refusals[0] == refusals[1] != []


async def play(client: RawClient, script: Script, pace: str) -> list[tuple[bytes, bytes]]:
    """Everything that comes back until the connection ends."""
    for message in script:
        client.send(message)
        if pace == "one by one":
            await asyncio.sleep(0.002)
    if b"z\0\0\0\4" not in script:  # that has ended the connection
        client.send(Terminate())
    return [(frame.kind, frame.raw) for frame in await client.rest() if frame.kind not in LEFT_OUT]
