"""Any sequence of messages, however senseless, comes back through the proxy as from PostgreSQL alone.

Where the proxy is sent a private statement, PostgreSQL is sent a constant one that gives the same row; where the
proxy is sent what it refuses, PostgreSQL is sent what fails. So the choreography around both is compared as well.
"""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proxy.session.errors import REFUSED_SQL
from proxy.wire.backend import ErrorResponse, NoticeResponse, ParameterStatus, ReadyForQuery
from proxy.wire.buffer import Frame
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Flush, Parse, Query, Sync, Terminate
from tests.server.raw import Message, RawClient
from tests.server.stage import Stage

PLAIN = [
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "SELECT 1",
    "SELECT i FROM generate_series(1, 4) AS i",
    "SELECT $1::int + 1",
    "SELECT 1/0",
    "SELECT nothing",
    "SELEC",
    "",
    "SET search_path = other, public",
    "RESET search_path",
    "SHOW search_path",
    "SELECT * FROM other.orders",
    "DECLARE c CURSOR FOR SELECT i FROM generate_series(1, 4) AS i",
    "FETCH 2 FROM c",
    "FETCH 2 FROM p",
    "CLOSE c",
    "COPY (SELECT 1) TO STDOUT",
    "PREPARE a AS SELECT 7",
    "EXECUTE a",
    "EXECUTE b(1.5, 'x')",
    "DEALLOCATE a",
    "DEALLOCATE ALL",
    "DISCARD ALL",
    "SELECT 1; SELECT nothing; SELECT 2",
    "BEGIN; SELECT 3",
    "ROLLBACK; SELECT 4",
]

COUNT, FORTY_TWO = "SELECT count(*) FROM public.orders", "SELECT 42::bigint AS count"
PRIVATE = {  # what the proxy is sent, and PostgreSQL
    COUNT: FORTY_TWO,
    f"DECLARE c CURSOR FOR {COUNT}": f"DECLARE c CURSOR FOR {FORTY_TWO}",
    f"COPY ({COUNT}) TO STDOUT": f"COPY ({FORTY_TWO}) TO STDOUT",
    f"PREPARE a AS {COUNT}": f"PREPARE a AS {FORTY_TWO}",
    "SELECT count(*), $2::text AS tag FROM public.orders WHERE amount > $1": (
        "SELECT 42::bigint AS count, $2::text AS tag WHERE $1::numeric IS NULL OR true"
    ),
    "PREPARE b (numeric, text) AS SELECT count(*), $2::text AS tag FROM public.orders WHERE amount > $1": (
        "PREPARE b (numeric, text) AS SELECT 42::bigint AS count, $2 AS tag WHERE $1 IS NULL OR true"
    ),
    f"SELECT 5; {COUNT}; SELECT 6": f"SELECT 5; {FORTY_TWO}; SELECT 6",
    f"BEGIN; {COUNT}; COMMIT": f"BEGIN; {FORTY_TWO}; COMMIT",
}
REFUSED = {
    "DELETE FROM products": REFUSED_SQL,
    "SELECT 1; DELETE FROM products; SELECT 2": f"SELECT 1; {REFUSED_SQL}; SELECT 2",
}
TEXTS = {**{text: text for text in PLAIN}, **PRIVATE, **REFUSED}

STRING_TEXTS = {**{text: text for text in PLAIN if ";" not in text and text != "SELEC"}, **PRIVATE, **REFUSED} | {
    text: text
    for text in (
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "COMMIT AND CHAIN",
        "COMMIT AND NO CHAIN",
        "ROLLBACK AND CHAIN",
        "RELEASE s",
        "SET LOCAL search_path = other",
        "DECLARE h CURSOR WITH HOLD FOR SELECT 1/0",
        "FETCH h",
    )
}
strings = st.lists(st.lists(st.sampled_from(list(STRING_TEXTS)), min_size=2, max_size=6), min_size=1, max_size=3)

texts = st.sampled_from([text.encode() for text in TEXTS])
statements = st.sampled_from([b"", b"a", b"b"])
portals = st.sampled_from([b"", b"p", b"c"])
values = st.sampled_from([(), (b"1",), (b"1.5", b"x"), (None,), (b"x", b"y")])
formats = st.sampled_from([(), (0,), (1,), (0, 1)])

messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Query, texts),
    st.builds(Parse, statements, texts),
    st.builds(Bind, portals, statements, st.just(()), values, formats),
    st.builds(Describe, st.just(STATEMENT), statements),
    st.builds(Describe, st.just(PORTAL), portals),
    st.builds(Execute, portals, st.sampled_from([0, 1, 2])),
    st.builds(Close, st.just(STATEMENT), statements),
    st.builds(Close, st.just(PORTAL), portals),
    st.builds(Sync),
    st.builds(Flush),
)
wholes = st.builds(  # random single messages rarely meet
    lambda text, portal, given, rows, wanted: [
        Parse(b"", text), Bind(portal, b"", (), given, wanted), Describe(PORTAL, portal), Execute(portal, rows), Sync(),
    ],
    texts, portals, values, st.sampled_from([0, 2]), formats,
)  # fmt: skip
traffic = st.lists(st.one_of(messages.map(lambda message: [message]), wholes), max_size=12)


@settings(deadline=None, max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(traffic)
async def test_no_traffic_tells_the_proxy_from_postgresql(stage: Stage, traffic: list[list[Message]]) -> None:
    script = orderly([message for part in traffic for message in part])

    direct = await play(await stage.direct_client(), [for_postgresql(message) for message in script])
    proxied = await play(await stage.client(**{"noisegate.notices": "off"}), script)

    assert [comparable(frame) for frame in proxied] == [comparable(frame) for frame in direct]


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(strings)
@example([[f"DECLARE h CURSOR WITH HOLD FOR SELECT 1/0; {COUNT}", "FETCH h"]])
@example([[COUNT, "DECLARE h CURSOR WITH HOLD FOR SELECT 1/0"], ["SELECT 1"]])
@example([[COUNT, "SELECT 1/0", COUNT], ["SHOW search_path"]])
@example([["SET search_path = other", COUNT, "BEGIN", "SELECT 1/0"], ["ROLLBACK", COUNT, COUNT]])
async def test_no_string_of_statements_tells_the_proxy_from_postgresql(stage: Stage, strings: list[list[str]]) -> None:
    script = [Query("; ".join(pieces).encode()) for pieces in strings]
    replaced = [Query("; ".join(STRING_TEXTS.get(piece, piece) for piece in pieces).encode()) for pieces in strings]

    direct = await play(await stage.direct_client(), replaced)
    proxied = await play(await stage.client(**{"noisegate.notices": "off"}), script)

    assert reported(proxied) == reported(direct)


def reported(frames: Sequence[Frame]) -> list[tuple[bytes, object]]:
    """Frames as they compare, where only the last report of a setting before ReadyForQuery counts.

    In a string PostgreSQL reports what all statements together have changed; the proxy does after each.
    """
    said: list[tuple[bytes, object]] = []
    known = {"search_path": '"$user", public'}  # as a session begins
    for frame in frames:
        if frame.kind == ParameterStatus.kind:
            status = ParameterStatus.decode(frame.raw)
            known[status.name] = status.value
        else:
            said.append(comparable(frame))
        if frame.kind == ReadyForQuery.kind:
            said.append((b"S", dict(known)))
    return said


def orderly(messages: Sequence[Message]) -> list[Message]:
    """A Sync before a Query that follows a Bind without an Execute.

    The proxy's probe is executed at such a Bind, and since PostgreSQL 17 that makes a Query in the same pipeline part
    of its implicit transaction. And no EXECUTE is prepared by name: the proxy refuses some of them.
    """
    script: list[Message] = []
    is_bound = False
    for message in messages:
        if isinstance(message, Query) and is_bound:
            script.append(Sync())
        if isinstance(message, Parse) and message.sql.startswith(b"EXECUTE"):
            message = replace(message, statement=b"")
        if isinstance(message, Bind | Execute | Sync | Query):
            is_bound = isinstance(message, Bind)
        script.append(message)
    return script


def for_postgresql(message: Message) -> Message:
    """What PostgreSQL is sent in place of what the proxy is sent."""
    match message:
        case Query(text):
            return Query(TEXTS[text.decode()].encode())
        case Parse(name, text, types):
            return Parse(name, TEXTS[text.decode()].encode(), types)
    return message


def comparable(frame: Frame) -> tuple[bytes, object]:
    """A frame without what must differ: words of refusals, places in texts that are not equal, lines of C."""
    if frame.kind not in (ErrorResponse.kind, NoticeResponse.kind):
        return frame
    fields = ErrorResponse.decode(b"E" + frame.raw[1:]).fields
    is_refusal = "_ng_refused" in fields["M"] or fields["C"] in ("25006", "42501")
    return frame.kind, "refused" if is_refusal else [fields.get(code) for code in "SVCMDH"]


async def play(client: RawClient, script: Sequence[Message]) -> list[Frame]:
    client.send(*script, Sync(), Terminate())
    return await client.rest()
