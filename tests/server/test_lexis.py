"""The twin reads no text in another way than the proxy has read it, whatever changes where strings end, and however.

Every text here is one statement to the proxy, and to a twin with other settings two: the second would outlive the
session.
"""

import itertools

import psycopg
import pytest

from proxy.session.classify import ADMITTED, find_codec, is_refused
from proxy.session.replies import encoded
from proxy.twin.embedded import Cluster
from proxy.twin.steps import literal
from proxy.wire.backend import DataRow
from proxy.wire.buffer import Frame
from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync
from rules.refusal import Untranslatable
from tests.server.raw import Message, RawClient, errors, kinds
from tests.server.stage import DATABASE, Stage

HARM = b"ALTER ROLE ada SET statement_timeout = 1"
ODD = rb"SELECT '\', ' ; " + HARM + b"; --'"  # two where a backslash escapes
HALF = b"SELECT E'\x81\\' ; " + HARM + b"; --'"  # two in SJIS, where the first two bytes are one character
COUNT = b"SELECT count(*) FROM orders"

STRINGS = [
    b"SET standard_conforming_strings = off",
    b"SELECT set_config('standard_' || 'conforming_strings', 'off', false)",
]
ENCODINGS = [
    b"SELECT set_config('client_' || 'encoding', 'SJIS', false), set_config('backslash_quote', 'on', false)",
    b"SELECT set_config('client_' || 'encoding', 'SHIFT_JIS_2004', false)",
]
SETTINGS = [*((setting, ODD) for setting in STRINGS), *((setting, HALF) for setting in ENCODINGS)]

_READ_OR_NULL = """
CREATE FUNCTION pg_temp.read(data bytea, encoding name) RETURNS text LANGUAGE plpgsql AS $$
BEGIN RETURN convert_from(data, encoding); EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$"""


def run(text: bytes) -> list[Message]:
    """In the extended protocol, without Sync."""
    return [Parse(b"", text), Bind(b"", b""), Execute(b"")]


@pytest.mark.parametrize(("setting", "text"), SETTINGS)
@pytest.mark.parametrize("extended", [False, True], ids=["Query", "Parse"])
@pytest.mark.parametrize(
    "between", [[], [Sync()], [Sync(), *run(b"SELECT 1")]], ids=["no Sync", "a Sync", "a Sync in between"]
)
async def test_a_text_is_not_run_that_ends_its_strings_elsewhere_than_it_is_read(
    stage: Stage, twin_cluster: Cluster, setting: bytes, text: bytes, extended: bool, between: list[Message]
) -> None:
    client = await stage.client(client_encoding="LATIN1")
    assert kinds(await client.ask(Query(text))) == "TDCZ"  # it is known from here on
    message: list[Message] = run(text) if extended else [Query(text)]

    client.send(*run(setting), *between, *message, Sync(), Query(b"SELECT 'the last'"))
    frames = await _until_the_last(client)

    assert [error.sqlstate for error in errors(frames)] in (["0A000"], ["42501"], ["42601"])
    assert _settings_of_roles(twin_cluster) == []


@pytest.mark.parametrize(("setting", "text"), SETTINGS)
async def test_a_string_that_is_run_piece_by_piece_is_read_by_the_settings_of_its_beginning(
    stage: Stage, twin_cluster: Cluster, setting: bytes, text: bytes
) -> None:
    client = await stage.client(client_encoding="LATIN1")
    await client.ask(Query(b"BEGIN"))

    (error,) = errors(await client.ask(Query(COUNT + b"; " + setting + b"; " + text)))

    assert error.sqlstate == "0A000"
    await client.ask(Query(b"ROLLBACK"))
    assert _settings_of_roles(twin_cluster) == []
    assert kinds(await client.ask(Query(text))) == "TDCZ"


async def test_a_setting_that_is_changed_and_changed_back_is_known(stage: Stage) -> None:
    """The twin reports what has changed since its last report: of this, nothing."""
    client = await stage.client()
    off, on = b"SET standard_conforming_strings = off", b"SET standard_conforming_strings = on"
    text = rb"SELECT 'a\b'"

    frames = await client.ask(*run(off), Parse(b"", ODD), Sync())
    assert errors(frames)[0].sqlstate == "0A000"
    assert _rows(await client.ask(*run(off), *run(b"SELECT 1"), *run(on), *run(text), Sync()))[-1] == rb"a\b"
    assert _rows(await client.ask(Query(text))) == [rb"a\b"]
    latin, unicode = b"SET client_encoding = LATIN1", b"SET client_encoding = UTF8"
    frames = await client.ask(*run(latin), *run(b"SELECT '\xe9'"), *run(unicode), *run("SELECT 'ł'".encode()), Sync())
    assert _rows(frames) == [b"\xe9", "ł".encode()]
    assert _rows(await client.ask(Query("SELECT 'ł'".encode()))) == ["ł".encode()]


async def test_a_text_after_a_statement_of_the_same_pipeline_is_as_from_postgresql(stage: Stage) -> None:
    """Drivers send BEGIN and the first statement together."""
    client, direct = await stage.client(), await stage.direct_client()
    script = [*run(b"BEGIN"), *run("SELECT 'Zürich'".encode()), *run(rb"SELECT E'a\tb'"), Sync()]

    assert await client.ask(*script) == await direct.ask(*script)
    assert await client.ask(*script[:3], Query(rb"SELECT '\\x'")) == await direct.ask(
        *script[:3], Query(rb"SELECT '\\x'")
    )


@pytest.mark.parametrize("between", [[], [Sync()]], ids=["no Sync", "a Sync"])
async def test_a_private_statement_is_answered_in_the_encoding_that_the_same_pipeline_has_set(
    stage: Stage, between: list[Message]
) -> None:
    """Its text is ASCII, so that its reading is at hand; its values and labels are not."""
    client = await stage.client()
    tagged = b"SELECT count(*), $2::text AS tag FROM orders WHERE amount > $1"
    assert kinds(await client.ask(Parse(b"tagged", tagged), Sync())) == "1Z"
    bound = Bind(b"", b"tagged", (), (b"1", b"\xe9")), Execute(b"")

    client.send(*run(b"SET client_encoding = LATIN1"), *between, *bound, Sync(), Query(b"SELECT 'the last'"))
    frames = await _until_the_last(client)

    assert stage.service.requests[-1].parameters == ("1", "é")
    assert DataRow((b"42", b"\xe9")).encode() in [frame.raw for frame in frames]


@pytest.mark.parametrize(
    "names",
    [(b"\xe9", b"\xe8"), (62 * b"a" + "é".encode(), 62 * b"a" + "Ł".encode())],
    ids=["in an encoding that is not yet reported", "cut in a character"],
)
async def test_names_are_as_different_as_postgresql_finds_them(stage: Stage, names: tuple[bytes, bytes]) -> None:
    client = await stage.client()
    begin = [] if len(names[0]) > 1 else run(b"SET client_encoding = LATIN1")
    parses = map(Parse, names, (COUNT, b"SELECT count(*) FROM public.orders"))

    frames = await client.ask(*begin, *parses, Bind(b"", names[0]), Execute(b""), Sync())

    assert kinds(frames).endswith("112DCZ")
    assert stage.service.requests[-1].text == COUNT.decode()


async def test_settings_that_cannot_be_asked_end_the_pipeline_as_any_statement_would(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"BEGIN; SELECT 1/0"))

    frames = await client.ask(*run(b""), *run("SELECT 'Zürich'".encode()), Sync())

    assert [error.sqlstate for error in errors(frames)] == ["25P02"]
    assert kinds(await client.ask(Query(b"ROLLBACK"))) == "CZ"


async def test_a_startup_that_changes_where_strings_end_is_heard(stage: Stage) -> None:
    client = await stage.client(standard_conforming_strings="off")

    assert errors(await client.ask(Query(ODD)))[0].sqlstate == "0A000"
    assert errors(await client.ask(Parse(b"", ODD), Sync()))[0].sqlstate == "0A000"
    assert kinds(await client.ask(Query(b"SELECT 'plain'"))) == "TDCZ"
    await client.ask(Query(b"SET standard_conforming_strings = on"))
    assert kinds(await client.ask(Query(ODD))) == "TDCZ"


@pytest.mark.parametrize(
    "encoding",
    ["SJIS", "GB18030", "BIG5", "GBK", "UHC", "JOHAB", "SHIFT_JIS_2004", "EUC_JP", "EUC_JIS_2004", "EUC_KR"],
)
async def test_an_encoding_that_is_not_read_as_postgresql_reads_it_is_refused(stage: Stage, encoding: str) -> None:
    client = await stage.client()

    for text in (f"SET client_encoding = '{encoding}'", f"SET NAMES '{encoding}'"):
        assert errors(await client.ask(Query(text.encode())))[0].sqlstate == "0A000"
        assert errors(await client.ask(*run(text.encode()), Sync()))[0].sqlstate == "0A000"
    begun = await RawClient.connect(stage.proxied, user="ada", database=DATABASE, client_encoding=encoding)
    assert kinds(await begun.rest()) in ("R", "RE")


async def test_an_encoding_that_is_refused_at_the_startup_is_named_where_it_was_given(stage: Stage) -> None:
    begun = await RawClient.connect(stage.proxied, user="ada", database=DATABASE, options="-c client_encoding=SJIS")

    (refused,) = errors(await begun.rest())
    assert refused.fields["M"] == "the session's client_encoding is not supported"


@pytest.mark.parametrize("setting", ENCODINGS)
async def test_no_private_statement_is_answered_in_an_encoding_that_was_set_unseen(
    stage: Stage, setting: bytes
) -> None:
    client = await stage.client()
    await client.ask(Parse(b"tagged", b"SELECT count(*), $2::text AS tag FROM orders WHERE amount > $1"), Sync())
    await client.ask(Query(setting))

    asked = Bind(b"", b"tagged", (), (b"1", b"\x83\x41")), Execute(b""), Sync()
    for frames in await client.ask(*asked), await client.ask(Query(COUNT)):
        assert errors(frames)[0].fields["M"] == "the session's client_encoding is not supported"
    assert stage.service.answered == 0


def test_the_encodings_that_are_refused_are_those_of_postgresql_that_are_not_admitted(twin_cluster: Cluster) -> None:
    with psycopg.connect(twin_cluster.dsn()) as connection:
        rows = connection.execute(
            "SELECT pg_encoding_to_char(n) FROM generate_series(0, 60) AS n WHERE pg_encoding_to_char(n) <> ''"
        ).fetchall()

    assert {name for (name,) in rows if not is_refused(name)} == set(ADMITTED)


@pytest.mark.parametrize("encoding", ADMITTED)
def test_an_admitted_encoding_is_the_identity_on_ascii(encoding: str) -> None:
    codec = find_codec(encoding)
    assert codec is not None
    ascii_bytes = bytes(range(128))
    assert ascii_bytes.decode(codec) == ascii_bytes.decode("ascii")
    for first, *rest in itertools.product(range(128, 256), (0x27, 0x5C, 0x3B, 0x41, 0xA1, 0xFE), (0x27, 0x5C, 0xA1)):
        data = bytes((first, *rest))
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            continue
        assert [ord(each) for each in text if each < "\x80"] == [byte for byte in data if byte < 0x80]


@pytest.mark.parametrize("encoding", [name for name, codec in ADMITTED.items() if codec != "utf-8"])
def test_an_admitted_encoding_is_read_and_written_as_postgresql_does(twin_cluster: Cluster, encoding: str) -> None:
    codec = ADMITTED[encoding]
    seconds = range(0xA1, 0xFF) if encoding.startswith("EUC") else ()
    data = [bytes((first,)) for first in range(128, 256)]
    data += [bytes(pair) for pair in itertools.product(range(0xA1, 0xFF), seconds)]
    letters = [letter for each in data if (letter := each.decode(codec, "ignore"))]
    with psycopg.connect(twin_cluster.dsn()) as connection:
        connection.execute(_READ_OR_NULL)
        read = connection.execute("SELECT pg_temp.read(d, %s) FROM unnest(%s::bytea[]) AS d", [encoding, data])
        assert [text for (text,) in read] == [each.decode(codec, "ignore") or None for each in data]
        written = connection.execute("SELECT convert_to(l, %s) FROM unnest(%s::text[]) AS l", [encoding, letters])
        assert [data for (data,) in written] == [encoded(letter, codec) for letter in letters]


@pytest.mark.parametrize("encoding", ADMITTED)
def test_no_other_character_is_written_as_ascii(encoding: str) -> None:
    """A yen sign that becomes a backslash ends strings elsewhere than was written."""
    codec = find_codec(encoding)
    assert codec is not None
    for character in map(chr, (*range(128, 0xD800), *range(0xE000, 0x11000))):
        try:
            data = encoded(f"'{character}'", codec)
        except Untranslatable:
            continue
        assert data.decode(codec) == f"'{character}'"
        assert data.count(b"'") == 2
        assert not any(byte < 128 for byte in data[1:-1])


@pytest.mark.parametrize(
    "text",
    [
        b"EXECUTE p(set_config('standard_conforming_strings', 'off', false))",
        b"EXPLAIN EXECUTE p(set_config('standard_conforming_strings', 'off', false))",
        b"CREATE TEMP VIEW v AS SELECT set_config('standard_conforming_strings', 'off', false)",
        b"SELECT count(*), set_config('a.b', 'c', false) FROM orders",
        b"PREPARE q AS SELECT count(*), set_config('a.b', 'c', false) FROM orders; EXECUTE q",
    ],
)
async def test_settings_are_not_changed_where_it_is_not_seen(stage: Stage, text: bytes) -> None:
    client = await stage.client()
    await client.ask(Query(b"PREPARE p (text) AS SELECT $1"))

    (error,) = errors(await client.ask(Query(text)))

    assert error.sqlstate == "0A000"
    assert stage.service.answered == 0


async def test_literals_mean_the_same_whatever_strings_are(stage: Stage) -> None:
    for strings in ("on", "off"):
        direct = await stage.direct_client(standard_conforming_strings=strings)
        for value in ("\\", "\\'", "'\\", "a\\nb", "it's"):
            assert _rows(await direct.ask(Query(f"SELECT {literal(value)}".encode()))) == [value.encode()]


async def test_nothing_that_the_proxy_relies_on_is_prepared_in_the_session(stage: Stage) -> None:
    """What is prepared a session can prepare anew, should the proxy ever misread a text."""
    client = await stage.client()
    assert kinds(await client.ask(Query(COUNT))) == "TDCZ"
    assert kinds(await client.ask(*run(COUNT), Sync())) == "12DCZ"

    assert _rows(await client.ask(Query(b"SELECT name FROM pg_prepared_statements WHERE name <> ''"))) == []


async def _until_the_last(client: RawClient) -> list[Frame]:
    frames: list[Frame] = []
    while b"the last" not in _rows(frames):
        frames += await client.until()
    return frames


def _rows(frames: list[Frame]) -> list[bytes | None]:
    return [DataRow.decode(frame.raw).values[0] for frame in frames if frame.kind == DataRow.kind]


def _settings_of_roles(cluster: Cluster) -> list[str]:
    with psycopg.connect(cluster.dsn()) as owner:
        rows = owner.execute("SELECT setconfig::text FROM pg_db_role_setting WHERE setrole <> 0").fetchall()
    return [text for (text,) in rows]
