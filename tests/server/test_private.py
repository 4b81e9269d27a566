"""Private statements meet the session: what a client sees of them, message by message."""

import asyncio
import os
import signal
from decimal import Decimal

import psycopg
import pytest

from proxy.session.private_request import _SETTINGS
from proxy.session.twin_probe import SessionState
from proxy.twin.embedded import Cluster
from proxy.wire.backend import (
    DataRow,
    NoticeResponse,
    ParameterDescription,
    ReadyForQuery,
    RowDescription,
)
from proxy.wire.buffer import Frame
from proxy.wire.frontend import PORTAL, STATEMENT, Bind, Close, Describe, Execute, Flush, Parse, Query, Sync
from rules.bind.inner_answers import InnerQuery
from rules.planner.plan import NeedsInner, Plan, Request
from rules.refusal import BudgetSpent
from tests.server.raw import Message, RawClient, errors, kinds
from tests.server.stage import DATABASE, Stage
from tests.support.waiting import is_active, until

COUNT = b"SELECT count(*) FROM orders"
GROUPS = b"SELECT status, count(*) AS n FROM orders GROUP BY status"
MORE_THAN = b"SELECT count(*), $2::text AS tag FROM orders WHERE amount > $1"


def rows(frames: list[Frame]) -> list[tuple[bytes | None, ...]]:
    return [DataRow.decode(frame.raw).values for frame in frames if frame.kind == DataRow.kind]


def state(frames: list[Frame]) -> bytes:
    return ReadyForQuery.decode(frames[-1].raw).status


async def leftovers(client: RawClient) -> list[tuple[bytes | None, ...]]:
    """Statements and portals of ours that are still there besides the probe."""
    names = b"SELECT name FROM pg_prepared_statements WHERE name ~ '^_ng' AND name <> '_ng_probe'"
    return rows(await client.ask(Query(names + b" UNION ALL SELECT name FROM pg_cursors WHERE name ~ '^_ng'")))


# The simple protocol


async def test_a_query_is_answered_from_the_noised_columns(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(Query(GROUPS))

    assert kinds(frames) == "TDDDCZ"
    assert rows(frames) == [(b"open", b"7"), (b"paid", b"-3"), (None, b"11")]
    assert stage.service.answered == 1
    assert await leftovers(client) == []


async def test_the_description_is_the_originals_with_the_tables_of_its_columns(stage: Stage) -> None:
    client, direct = await stage.client(), await stage.direct_client()

    frames = await client.ask(Query(GROUPS))
    native = await direct.ask(Parse(b"", GROUPS), Describe(STATEMENT, b""), Sync())

    assert frames[0].raw == next(frame.raw for frame in native if frame.kind == RowDescription.kind)
    assert RowDescription.decode(frames[0].raw).fields[0].table > 0


async def test_a_notice_tells_the_cost_just_before_the_tag(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(Query(COUNT))

    assert [frame.kind for frame in frames] == [b"T", b"D", b"N", b"C", b"Z"]
    assert NoticeResponse.decode(frames[2].raw).fields["M"] == "ε 0.1 spent"


@pytest.mark.parametrize("setting", [b"SET client_min_messages = warning", b"SET noisegate.notices = off"])
async def test_notices_can_be_turned_off(stage: Stage, setting: bytes) -> None:
    client = await stage.client()
    await client.ask(Query(setting))

    assert b"N" not in [frame.kind for frame in await client.ask(Query(COUNT))]


async def test_what_the_planner_gets_holds_at_that_moment(stage: Stage) -> None:
    client = await stage.client()
    for setting in (b"search_path = other, public", b"timezone = 'Asia/Tokyo'", b"noisegate.epsilon = 0.5"):
        await client.ask(Query(b"SET " + setting))
    await client.ask(Query(b"SET noisegate.reuse = off; SET noisegate.rows_per_unit = 3"))

    await client.ask(Query(b"SET search_path = public"))
    await client.ask(Query(COUNT))

    request = stage.service.requests[-1]
    assert request.search_path == ("pg_catalog", "public")
    assert (str(request.epsilon), request.rows_per_unit, request.time_zone) == ("0.5", 3, "Asia/Tokyo")
    assert request.now.endswith("+00")
    assert stage.service.reuses == [False]


async def test_a_table_of_the_same_name_elsewhere_is_not_protected(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"SET search_path = other, public"))

    frames = await client.ask(Query(COUNT))

    assert rows(frames) == [(b"2",)]
    assert stage.service.answered == 0


async def test_errors_of_postgresql_come_before_any_plan(stage: Stage) -> None:
    client, direct = await stage.client(), await stage.direct_client()

    for text in (
        b"SELECT 'x', nothing FROM orders",
        b"SELECT count(*) FROM orders WHERE no_such(id)",
        b"SELECT FROM FROM orders",
    ):
        assert await client.ask(Query(text)) == await direct.ask(Query(text))

    assert stage.service.requests == []


async def test_a_refusal_points_into_the_clients_text_and_leaves_the_session_usable(stage: Stage) -> None:
    client = await stage.client()
    text = "/* é */ SELECT note FROM orders"

    frames = await client.ask(Query(text.encode()))

    (error,) = errors(frames)
    assert (error.sqlstate, error.fields["P"]) == ("42501", str(text.index("note") + 1))
    assert state(frames) == b"I"
    assert rows(await client.ask(Query(COUNT))) == [(b"42",)]


async def test_a_function_that_is_forbidden_is_pointed_at(stage: Stage) -> None:
    client = await stage.client()
    text = "SELECT 1; /* é */ SELECT name, pg_read_file(name) FROM products"

    (error,) = errors(await client.ask(Query(text.encode())))

    assert (error.sqlstate, error.fields["P"]) == ("42501", str(text.index("pg_read_file") + 1))


async def test_a_refusal_fails_the_transaction_as_any_error_does(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"BEGIN"))

    assert state(await client.ask(Query(b"SELECT note FROM orders"))) == b"E"
    assert errors(await client.ask(Query(COUNT)))[0].sqlstate == "25P02"
    assert errors(await client.ask(Query(b"DELETE FROM products")))[0].sqlstate == "25P02"
    assert state(await client.ask(Query(b"ROLLBACK"))) == b"I"
    assert stage.service.answered == 0


async def test_an_answer_inside_a_transaction_leaves_it_open(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"BEGIN"))

    frames = await client.ask(Query(COUNT))

    assert (rows(frames), state(frames)) == ([(b"42",)], b"T")


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        (b"DELETE FROM products", "25006"),
        (b"CREATE TEMP TABLE t (x int)", "25006"),
        (b"DO $$ BEGIN END $$", "42501"),
        (b"LOCK TABLE products", "42501"),
        (b"COPY products FROM STDIN", "25006"),
        (b"COPY products TO '/tmp/x'", "42501"),
        (b"SET ROLE noisegate_owner", "42501"),
        (b"EXPLAIN ANALYZE SELECT count(*) FROM orders", "0A000"),
        (b"COPY orders TO STDOUT", "42501"),
        (b"TABLE orders", "42501"),
        (b"PREPARE _ng_x AS SELECT 1", "42501"),
        (b"DEALLOCATE _ng_probe", "42501"),
        (b"SELECT 1; DELETE FROM products", "25006"),
    ],
)
async def test_what_is_refused_by_kind_is_refused_in_both_protocols(stage: Stage, text: bytes, sqlstate: str) -> None:
    client = await stage.client()

    (simple,) = errors(await client.ask(Query(text)))
    assert simple.sqlstate == sqlstate
    if b";" not in text:
        (extended,) = errors(await client.ask(Parse(b"", text), Bind(b"", b""), Execute(b""), Sync()))
        assert extended.sqlstate == sqlstate
        assert extended.fields["M"] == simple.fields["M"]


@pytest.mark.parametrize("value", ["0", "-1", "NaN", "Infinity", "1e-320", "2", "x", "0x1"])
async def test_a_setting_without_sense_is_refused_when_it_is_used(stage: Stage, value: str) -> None:
    client = await stage.client()
    await client.ask(Query(f"SELECT set_config('noisegate.' || 'epsilon', '{value}', false)".encode()))

    (error,) = errors(await client.ask(Query(COUNT)))

    assert error.sqlstate == "22023"
    assert stage.service.answered == 0


@pytest.mark.parametrize(
    "setting",
    [
        "transform_null_equals = on",
        "standard_conforming_strings = off",
        "array_nulls = off",
        "TimeZone = 'UTC+25'",
        "TIME ZONE 16",
        "TimeZone = 'X15Y17'",
        "TimeZone = '<-03>3<+20>-20,M3.2.0,M11.1.0'",
    ],
)
async def test_settings_that_change_how_sql_or_an_answer_is_read_are_refused_with_private_statements(
    stage: Stage, setting: str
) -> None:
    client = await stage.client()
    await client.ask(Query(f"SET {setting}".encode()))

    assert [error.sqlstate for error in errors(await client.ask(Query(COUNT)))] == ["0A000"]
    assert stage.service.answered == 0


@pytest.mark.parametrize(
    "zone", ["Etc/GMT-14", "EST5EDT", "EST5EDT,M3.2.0,M11.1.0", "Pacific/Kiritimati", "<+0330>-03:30", "<X25>-1", "-12"]
)
async def test_zones_that_there_may_be_are_answered(stage: Stage, zone: str) -> None:
    client = await stage.client()
    assert kinds(await client.ask(Query(f"SET TimeZone = '{zone}'".encode()))).endswith("CZ")

    assert not errors(await client.ask(Query(COUNT)))


async def test_a_session_keeps_only_so_much_of_what_it_prepares(stage: Stage) -> None:
    client = await stage.client()
    long = b"/*" + b"x" * 60_000 + b"*/"
    for number in range(140):
        client.send(Parse(b"s%d" % number, COUNT + long + b"-- %d" % number))
    refused = errors(await client.ask(Sync()))
    assert [error.sqlstate for error in refused] == ["54001"]
    assert errors(await client.ask(Query(b"PREPARE p AS " + COUNT)))[0].sqlstate == "54001"
    assert kinds(await client.ask(Parse(b"", COUNT), Bind(b"", b""), Execute(b""), Sync())) == "12DCZ"

    await client.ask(Query(b"DEALLOCATE ALL"))

    assert kinds(await client.ask(Query(b"PREPARE p AS " + COUNT))) == "CZ"


async def test_a_budget_that_is_spent_is_told_in_either_protocol(stage: Stage) -> None:
    client = await stage.client()
    stage.service.failure = BudgetSpent("the budget is spent")

    assert errors(await client.ask(Query(COUNT)))[0].sqlstate == "53400"
    frames = await client.ask(Parse(b"", COUNT), Bind(b"", b""), Execute(b""), Sync())
    assert (kinds(frames), errors(frames)[0].sqlstate) == ("1EZ", "53400")


async def test_an_outer_statement_of_another_shape_is_never_charged(stage: Stage) -> None:
    client = await stage.client()
    text = b"SELECT count(*) AS wrong FROM orders"

    assert errors(await client.ask(Query(text)))[0].sqlstate == "XX000"
    assert errors(await client.ask(Parse(b"", text), Bind(b"", b""), Execute(b""), Sync()))[0].sqlstate == "XX000"
    assert stage.service.answered == 0


@pytest.mark.parametrize("before", [(), (Query(b"BEGIN"),)], ids=["outside", "in a transaction"])
async def test_a_refusal_after_an_error_of_our_own_on_the_twin_reaches_the_client(
    stage: Stage, before: tuple[Query, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def plan(request: Request, analyst: str) -> NeedsInner:
        return NeedsInner(InnerQuery(), "SELECT around.id")  # of a row that is not there

    monkeypatch.setattr(stage.service, "plan", plan)
    bound = Parse(b"", COUNT), Bind(b"", b""), Execute(b""), Sync()
    for said, messages in (("EZ", (Query(COUNT),)), ("CEZ", (Query(b"SET a.b = 1; " + COUNT),)), ("1EZ", bound)):
        client = await stage.client()
        for message in before:
            await client.ask(message)

        frames = await client.ask(*messages)

        assert (kinds(frames), errors(frames)[0].sqlstate) == (said, "0A000")
        assert state(frames) == (b"E" if before else b"I")
        assert kinds(await client.ask(Query(b"ROLLBACK"), Query(b"SELECT 1"))).endswith("CZ")
        assert kinds(await client.until()) == "TDCZ"


@pytest.mark.parametrize("is_inner", [False, True])
@pytest.mark.parametrize(("limit", "sqlstate"), [("statement_timeout", "57014"), ("lock_timeout", "55P03")])
async def test_a_text_of_ours_that_the_twin_does_not_read_in_time_is_told_as_that(
    stage: Stage, twin_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, *, is_inner: bool, limit: str, sqlstate: str
) -> None:
    locked = "SELECT count(*) FROM other.orders"

    async def plan(request: Request, analyst: str) -> Plan | NeedsInner:
        return NeedsInner(InnerQuery(), locked) if is_inner else Plan((), (locked,), 0, request.epsilon, Decimal(0))

    monkeypatch.setattr(stage.service, "plan", plan)
    client = await stage.client()
    await client.ask(Query(f"SET {limit} = '400ms'".encode()))
    with psycopg.connect(twin_cluster.dsn(DATABASE)) as owner:
        owner.execute("LOCK TABLE other.orders")
        simple = await client.ask(Query(COUNT))
        extended = await client.ask(Parse(b"", COUNT), Bind(b"", b""), Execute(b""), Sync())

    assert [error.sqlstate for error in errors(simple) + errors(extended)] == [sqlstate, sqlstate]
    assert stage.service.answered == 0


async def test_a_text_that_cannot_be_read_never_runs(stage: Stage) -> None:
    client, direct = await stage.client(), await stage.direct_client()

    assert await client.ask(Query(b"SELECT 'x")) == await direct.ask(Query(b"SELECT 'x"))
    invalid = b"SELECT '\xff'"
    assert await client.ask(Query(invalid)) == await direct.ask(Query(invalid))


# DECLARE, COPY, EXECUTE, strings


async def test_a_cursor_over_an_answer_scrolls(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(Query(b"DECLARE c SCROLL CURSOR WITH HOLD FOR " + GROUPS))
    assert kinds(frames) == "CZ"
    assert rows(await client.ask(Query(b"FETCH 2 FROM c"))) == [(b"open", b"7"), (b"paid", b"-3")]
    assert rows(await client.ask(Query(b"FETCH BACKWARD 1 FROM c"))) == [(b"open", b"7")]
    assert stage.service.answered == 1


@pytest.mark.parametrize(
    ("options", "data"),
    [(b"", b"open\t7\npaid\t-3\n\\N\t11\n"), (b" (FORMAT csv, HEADER)", b"status,n\nopen,7\npaid,-3\n,11\n")],
)
async def test_copy_of_an_answer(stage: Stage, options: bytes, data: bytes) -> None:
    client = await stage.client()

    frames = await client.ask(Query(b"COPY (" + GROUPS + b") TO STDOUT" + options))

    assert b"".join(frame.raw[5:] for frame in frames if frame.kind == b"d") == data
    assert [frame.kind for frame in frames][-4:] == [b"c", b"N", b"C", b"Z"]


async def test_a_prepared_statement_is_private_whoever_prepared_it_and_whoever_runs_it(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"PREPARE a AS " + COUNT))
    await client.ask(Parse(b"b", COUNT), Sync())

    for name in (b"a", b"b"):
        assert rows(await client.ask(Query(b"EXECUTE " + name))) == [(b"42",)]
        assert rows(await client.ask(Bind(b"", name), Execute(b""), Sync())) == [(b"42",)]
        assert rows(await client.ask(Parse(b"", b"EXECUTE " + name), Bind(b"", b""), Execute(b""), Sync())) == [
            (b"42",)
        ]

    await client.ask(Query(b"DEALLOCATE a"))
    assert errors(await client.ask(Query(b"EXECUTE a")))[0].sqlstate == "26000"


async def test_arguments_of_execute_become_canonical_values(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"SET datestyle = 'SQL, DMY'"))
    await client.ask(Query(b"PREPARE p (numeric, text) AS " + MORE_THAN))

    frames = await client.ask(Query(b"EXECUTE p(1.50 + 1, 'it''s')"))

    assert rows(frames) == [(b"42", b"it's")]
    assert stage.service.requests[-1].parameters == ("2.50", "it's")
    assert stage.service.requests[-1].parameter_types == ("numeric", "text")


@pytest.mark.parametrize(
    ("argument", "sqlstate"),
    [(b"(SELECT 1)", "0A000"), (b"(SELECT count(*) FROM orders)", "0A000"), (b"count(*)", "42803")],
)
async def test_rows_in_arguments_of_execute_are_refused_as_postgresql_does(
    stage: Stage, argument: bytes, sqlstate: str
) -> None:
    client = await stage.client()
    await client.ask(Query(b"PREPARE p (numeric, text) AS " + MORE_THAN))

    (error,) = errors(await client.ask(Query(b"EXECUTE p(" + argument + b", 'x')")))

    assert error.sqlstate == sqlstate
    assert "EXECUTE parameter" in error.fields["M"]
    assert not stage.service.requests


async def test_discard_all_forgets_the_names_and_our_own_statements(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"PREPARE p AS " + COUNT))
    await client.ask(Query(b"EXECUTE p"))

    for text in (b"DISCARD ALL", b"DEALLOCATE ALL"):
        await client.ask(Query(text))
        assert errors(await client.ask(Query(b"EXECUTE p")))[0].sqlstate == "26000"
        assert rows(await client.ask(Query(COUNT))) == [(b"42",)]


async def test_a_string_outside_a_transaction_stays_one_implicit_transaction(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(
        Query(b"DECLARE c CURSOR FOR " + GROUPS + b"; FETCH 1 FROM c; " + COUNT + b"; SELECT 'x' AS x")
    )

    assert kinds(frames) == "CTDCTDCTDCZ"
    assert rows(frames) == [(b"open", b"7"), (b"42",), (b"x",)]


async def test_a_string_with_begin_runs_one_by_one_and_stops_at_the_first_error(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(Query(b"BEGIN; SAVEPOINT a; " + COUNT + b"; SELECT nothing; " + COUNT))

    assert (kinds(frames), state(frames)) == ("CCTDCEZ", b"E")
    assert stage.service.answered == 1
    frames = await client.ask(Query(b"ROLLBACK; " + COUNT))
    assert (kinds(frames), state(frames)) == ("CTDCZ", b"I")


async def test_after_a_refusal_in_a_string_nothing_more_is_charged_or_run(stage: Stage) -> None:
    client = await stage.client()
    text = "SELECT 'é'; SELECT note FROM orders; SELECT count(*) FROM orders; SELECT 2"

    frames = await client.ask(Query(text.encode()))

    assert kinds(frames) == "TDCEZ"
    assert errors(frames)[0].fields["P"] == str(text.index("note") + 1)
    assert stage.service.answered == 0


async def test_positions_after_an_answer_in_a_string_are_those_of_the_clients_text(stage: Stage) -> None:
    client = await stage.client()
    text = "SELECT count(*) FROM orders; SELECT 'é', nothing"

    (error,) = errors(await client.ask(Query(text.encode())))

    assert error.fields["P"] == str(text.index("nothing") + 1)


@pytest.mark.parametrize(
    "between",
    [
        b"SELECT 1/0",
        b"SELECT nothing",
        b"EXECUTE nowhere",
        b"FETCH nowhere",
        b"DELETE FROM products",
        b"DISCARD ALL",
        b"SAVEPOINT a",
        b"COMMIT AND CHAIN",
    ],
)
async def test_what_follows_an_error_in_a_string_is_neither_run_nor_charged(stage: Stage, between: bytes) -> None:
    client = await stage.client()

    frames = await client.ask(Query(COUNT + b"; " + between + b"; " + GROUPS + b"; SELECT 2"))

    assert (kinds(frames), state(frames)) == ("TDCEZ", b"I")
    assert rows(frames) == [(b"42",)]
    assert stage.service.answered == 1


async def test_an_error_takes_back_what_a_string_has_set_before_it(stage: Stage) -> None:
    client = await stage.client()

    await client.ask(Query(b"SET work_mem = '7MB'; " + COUNT + b"; SELECT 1/0"))
    assert rows(await client.ask(Query(b"SHOW work_mem"))) == [(b"4MB",)]
    await client.ask(Query(b"SET work_mem = '7MB'; " + COUNT))
    assert rows(await client.ask(Query(b"SHOW work_mem"))) == [(b"7MB",)]


async def test_a_cursor_that_fails_at_the_end_of_its_string_has_no_tag(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(Query(COUNT + b"; DECLARE c CURSOR WITH HOLD FOR SELECT 1/0"))

    assert (kinds(frames), state(frames)) == ("TDCEZ", b"I")


async def test_a_string_has_no_warnings_of_a_transaction_that_it_did_not_begin(stage: Stage) -> None:
    client = await stage.client(**{"noisegate.notices": "off"})

    frames = await client.ask(Query(COUNT + b"; BEGIN; " + COUNT))

    assert (kinds(frames), state(frames)) == ("TDCCTDCZ", b"T")
    assert not [frame for frame in frames if frame.kind == NoticeResponse.kind]
    frames = await client.ask(Query(b"COMMIT; " + COUNT + b"; COMMIT"))
    (notice,) = [frame for frame in frames if frame.kind == NoticeResponse.kind]
    assert b"there is no transaction in progress" in notice.raw
    assert (kinds(frames), state(frames)) == ("CTDCCZ", b"I")


async def test_a_setting_just_before_a_private_statement_in_a_string_counts(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(Query(b"SET timezone = 'Asia/Tokyo'; " + COUNT))
    assert (kinds(frames), stage.service.requests[-1].time_zone) == ("CTDCZ", "Asia/Tokyo")
    frames = await client.ask(Query(b"BEGIN; SET timezone = 'UTC'; " + COUNT + b"; COMMIT"))
    assert (kinds(frames), stage.service.requests[-1].time_zone) == ("CCTDCCZ", "UTC")


# The extended protocol


async def test_types_come_first_and_the_answer_at_bind(stage: Stage) -> None:
    client = await stage.client()

    described = await client.ask(Parse(b"s", MORE_THAN), Describe(STATEMENT, b"s"), Sync())
    assert kinds(described) == "1tTZ"
    assert ParameterDescription.decode(described[1].raw).types == (1700, 25)
    assert stage.service.answered == 0

    bind = Bind(b"", b"s", (), (b"1.50", b"x"))
    frames = await client.ask(bind, Describe(PORTAL, b""), Execute(b""), Sync())
    assert kinds(frames) == "2TDCZ"
    assert rows(frames) == [(b"42", b"x")]
    assert stage.service.requests[-1].parameters == ("1.50", "x")
    assert await leftovers(client) == []


async def test_binary_parameters_and_results(stage: Stage) -> None:
    client = await stage.client()
    numeric = b"\0\1\0\0\0\0\0\0\0\7"  # 7
    bind = Bind(b"", b"", (1,), (numeric, b"x"), (1,))

    frames = await client.ask(Parse(b"", MORE_THAN), bind, Describe(PORTAL, b""), Execute(b""), Sync())

    assert kinds(frames) == "12TDCZ"
    assert [field.format for field in RowDescription.decode(frames[2].raw).fields] == [1, 1]
    assert rows(frames) == [(b"\0\0\0\0\0\0\0\x2a", b"x")]
    assert stage.service.requests[-1].parameters == ("7", "x")


async def test_dates_are_read_in_the_clients_style_and_planned_in_one(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"SET datestyle = 'SQL, DMY'"))

    await client.ask(Parse(b"", MORE_THAN, (1082,)), Bind(b"", b"", (), (b"01/02/2024", b"x")), Sync())
    await client.ask(
        Parse(b"", b"SELECT count(*) FROM orders WHERE day > $1"), Bind(b"", b"", (), (b"01/02/2024",)), Sync()
    )

    assert stage.service.requests[-1].parameters == ("2024-02-01",)


async def test_a_portal_of_an_answer_is_suspended_and_goes_on(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"BEGIN"))

    frames = await client.ask(Parse(b"", GROUPS), Bind(b"p", b""), Execute(b"p", 2), Sync())
    assert kinds(frames) == "12DDsZ"
    frames = await client.ask(Execute(b"p", 2), Describe(PORTAL, b"p"), Sync())
    assert kinds(frames) == "DCTZ"
    assert kinds(await client.ask(Query(b"MOVE FORWARD 1 IN p"))) == "CZ"
    assert stage.service.answered == 1


async def test_executing_again_is_the_same_answer_and_binding_again_is_another(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Parse(b"s", COUNT), Bind(b"", b"s"), Execute(b""), Execute(b""), Sync())
    assert stage.service.answered == 1
    await client.ask(Bind(b"", b"s"), Execute(b""), Sync())
    assert stage.service.answered == 2


async def test_a_pipeline_mixes_public_and_private(stage: Stage) -> None:
    client = await stage.client()
    public = Parse(b"", b"SELECT 1"), Bind(b"", b""), Execute(b"")
    private = Parse(b"", COUNT), Bind(b"", b""), Describe(PORTAL, b""), Execute(b"")

    frames = await client.ask(*public, *private, *public, *private, Sync())

    assert kinds(frames) == "12DC12TDC12DC12TDCZ"
    assert await client.ask(*public, Sync())


async def test_an_earlier_error_in_a_pipeline_keeps_a_private_statement_from_running(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(
        Parse(b"", b"SELECT 1/0"), Bind(b"", b""), Execute(b""), Parse(b"", COUNT), Bind(b"", b""), Execute(b""), Sync()
    )

    assert kinds(frames) == "1EZ"
    assert stage.service.answered == 0


async def test_a_refusal_in_a_pipeline_skips_to_the_sync(stage: Stage) -> None:
    client = await stage.client()
    refused = Parse(b"", b"SELECT note FROM orders"), Bind(b"", b""), Execute(b"")

    frames = await client.ask(*refused, Parse(b"", COUNT), Bind(b"", b""), Execute(b""), Sync())

    assert (kinds(frames), errors(frames)[0].sqlstate) == ("1EZ", "42501")
    assert stage.service.answered == 0
    assert kinds(await client.ask(Parse(b"", COUNT), Bind(b"", b""), Execute(b""), Sync())) == "12DCZ"


async def test_a_refusal_at_bind_points_into_the_text_of_the_parse(stage: Stage) -> None:
    client = await stage.client()
    text = b" /* \xc3\xa9 */ SELECT note FROM orders"

    (simple,) = errors(await client.ask(Query(text)))
    (bound,) = errors(await client.ask(Parse(b"s", text), Bind(b"", b"s"), Execute(b""), Sync()))
    await client.ask(Query(b"PREPARE p AS" + text))
    (prepared,) = errors(await client.ask(Bind(b"", b"p"), Execute(b""), Sync()))

    assert simple.fields["P"] == bound.fields["P"] == str(text.decode().index("note") + 1)
    assert "P" not in prepared.fields  # its text was printed anew


async def test_flush_instead_of_sync_is_answered_at_once(stage: Stage) -> None:
    client = await stage.client()

    client.send(Parse(b"s", COUNT), Describe(STATEMENT, b"s"), Flush())
    assert kinds(await client.until(RowDescription.kind)) == "1tT"
    client.send(Bind(b"", b"s"), Execute(b""), Flush())
    assert kinds(await client.until(b"C")) == "2DC"
    assert kinds(await client.ask(Sync())) == "Z"


@pytest.mark.parametrize(
    "bind",
    [
        Bind(b"", b"s", (), (b"x", b"y")),
        Bind(b"", b"s", (), (b"1",)),
        Bind(b"", b"s", (), (b"1", b"y"), (0, 0, 0)),
    ],
)
async def test_a_wrong_bind_is_told_in_postgresqls_words_and_costs_nothing(stage: Stage, bind: Bind) -> None:
    client, direct = await stage.client(), await stage.direct_client()
    public = MORE_THAN.replace(b"orders WHERE amount", b"(SELECT 1.5 AS amount) AS o WHERE amount")

    mine = await client.ask(Parse(b"s", MORE_THAN), bind, Execute(b""), Sync())
    native = await direct.ask(Parse(b"s", public), bind, Execute(b""), Sync())

    if len(bind.result_formats) != 3:
        assert errors(mine) == errors(native)
    assert kinds(mine) == kinds(native) == "1EZ"
    assert stage.service.answered == 0


@pytest.mark.parametrize("formats", [(0, 0, 0), (7,), (1, -1)])
@pytest.mark.parametrize("text", [MORE_THAN, b"EXECUTE p (1, 'y')"])
async def test_formats_of_columns_that_do_not_fit_are_refused_before_a_charge(
    stage: Stage, text: bytes, formats: tuple[int, ...]
) -> None:
    client = await stage.client()
    await client.ask(Query(b"PREPARE p AS " + MORE_THAN))
    values = () if text.startswith(b"EXECUTE") else (b"1", b"y")

    (error,) = errors(await client.ask(Parse(b"", text), Bind(b"", b"", (), values, formats), Execute(b""), Sync()))

    assert error.sqlstate == "08P01"
    assert stage.service.answered == 0
    assert kinds(await client.ask(Query(COUNT))) == "TDCZ"


@pytest.mark.parametrize("text", [COUNT, b"EXECUTE a", b"COPY (" + COUNT + b") TO STDOUT"])
async def test_a_portal_that_exists_is_told_before_anything_is_charged(stage: Stage, text: bytes) -> None:
    client = await stage.client()
    await client.ask(Query(b"PREPARE a AS " + COUNT))

    frames = await client.ask(Parse(b"", b"SELECT 1"), Bind(b"p", b""), Parse(b"", text), Bind(b"p", b""), Sync())

    assert (kinds(frames), errors(frames)[0].sqlstate) == ("121EZ", "42P03")
    assert stage.service.answered == 0
    assert kinds(await client.ask(Parse(b"", text), Bind(b"p", b""), Execute(b"p"), Sync())).endswith("CZ")


async def test_cursors_and_copies_work_in_the_extended_protocol_too(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"BEGIN"))
    declare = b"DECLARE c CURSOR FOR " + MORE_THAN

    frames = await client.ask(
        Parse(b"", declare), Bind(b"", b"", (), (b"1", b"x")), Describe(PORTAL, b""), Execute(b""), Sync()
    )
    assert kinds(frames) == "12nCZ"
    assert rows(await client.ask(Query(b"FETCH ALL FROM c"))) == [(b"42", b"x")]

    frames = await client.ask(Parse(b"", b"COPY (" + COUNT + b") TO STDOUT"), Bind(b"", b""), Execute(b""), Sync())
    assert kinds(frames) == "12HdcCZ"


@pytest.mark.parametrize(
    "message", [Parse(b"_ng", b"SELECT 1"), Bind(b"", b"_ng_probe"), Bind(b"_ng", b""), Execute(b"_ng")]
)
async def test_names_of_the_proxy_are_refused(stage: Stage, message: Parse | Bind | Execute) -> None:
    client = await stage.client()

    assert errors(await client.ask(message, Sync()))[0].sqlstate == "42501"
    assert errors(await client.ask(Close(STATEMENT, b"_ng_probe"), Sync()))[0].sqlstate == "42501"


async def test_a_function_call_is_refused(stage: Stage) -> None:
    client = await stage.client()

    frames = await client.ask(b"F\0\0\0\x0e" + (1598).to_bytes(4, "big") + bytes(6))

    assert (kinds(frames), errors(frames)[0].sqlstate) == ("EZ", "0A000")


async def test_a_route_that_slipped_past_the_planner_is_closed_in_our_words(stage: Stage) -> None:
    client = await stage.client()

    (error,) = errors(await client.ask(Query(b"EXPLAIN ANALYZE EXECUTE p; PREPARE p AS " + COUNT)))
    assert error.sqlstate == "26000"
    frames = await client.ask(Query(b"PREPARE q AS " + COUNT + b"; EXPLAIN ANALYZE EXECUTE q"))
    (error,) = errors(frames)
    assert (error.sqlstate, "EXPLAIN ANALYZE" in error.fields["M"]) == ("0A000", True)


async def test_what_one_string_prepares_and_executes_is_answered(stage: Stage) -> None:
    client = await stage.client()

    assert rows(await client.ask(Query(b"PREPARE q AS " + COUNT + b"; EXECUTE q; EXECUTE q"))) == [(b"42",)] * 2
    assert rows(await client.ask(Query(b"SELECT 1; EXECUTE q; DEALLOCATE q"))) == [(b"1",), (b"42",)]
    (error,) = errors(await client.ask(Query(b"PREPARE q AS " + COUNT + b"; DEALLOCATE q; EXECUTE q")))
    assert error.sqlstate == "26000"


# Time


@pytest.mark.parametrize("text", [b"SELECT count(*) FROM orders", b"SELECT count(*) FROM orders\0 WHERE id = 1\0"])
async def test_a_query_that_does_not_end_with_its_string_is_malformed(stage: Stage, text: bytes) -> None:
    client = await stage.client()

    frames = await client.ask(b"Q" + (4 + len(text)).to_bytes(4, "big") + text)

    assert [error.sqlstate for error in errors(frames)] == ["08P01"]
    assert stage.service.requests == []
    assert kinds(await client.ask(Query(b"SELECT count(*) FROM orders"))) == "TDCZ"


async def test_a_malformed_flush_ends_its_pipeline_and_not_the_order_of_replies(stage: Stage) -> None:
    for client in (await stage.direct_client(), await stage.client()):
        frames = await client.ask(b"H\0\0\0\5x", Query(b"SELECT 1"), Sync())
        assert (kinds(frames), errors(frames)[0].sqlstate) == ("EZ", "08P01")
    (session,) = stage.sessions.all()
    assert session.activity == "idle"
    assert rows(await client.ask(Query(COUNT))) == [(b"42",)]


async def test_cancel_stops_what_runs_inside(stage: Stage) -> None:
    client = await stage.client()
    stage.service.seconds = 30
    client.send(Query(COUNT))
    await until(lambda: stage.service.answered == 1)

    (session,) = stage.sessions.all()
    session.cancel()

    assert errors(await client.until())[0].sqlstate == "57014"
    stage.service.seconds = 0
    assert rows(await client.ask(Query(COUNT))) == [(b"42",)]


@pytest.mark.parametrize("extended", [False, True])
async def test_a_cancel_counts_from_the_first_step_of_a_statement_and_costs_nothing_before_the_charge(
    stage: Stage, extended: bool
) -> None:
    client = await stage.client()
    (session,) = stage.sessions.all()
    early = 0
    for place, rounds in enumerate((*range(60), *range(8))):  # of the event loop after the statement has come
        text = COUNT + b" " * place  # one that was not read yet
        asked, answered = session._heard, stage.service.answered
        client.send(*([Parse(b"", text), Bind(b"", b""), Execute(b""), Sync()] if extended else [Query(text)]))
        while session._heard == asked:
            await asyncio.sleep(0)
        for _ in range(rounds):
            await asyncio.sleep(0)
        is_early = stage.service.answered == answered

        session.cancel()
        frames = await client.until()

        if is_early:
            assert [error.sqlstate for error in errors(frames)] == ["57014"]
            assert stage.service.answered == answered
        early += is_early
    assert early > 10
    assert rows(await client.ask(Query(COUNT))) == [(b"42",)]


async def test_what_a_client_left_while_it_ran_inside_comes_to_an_end(stage: Stage) -> None:
    """It would wait for ever for a twin that nobody talks to any more."""
    stage.service.seconds = 60
    client = await stage.client()
    client.send(Query(COUNT))
    await until(lambda: stage.service.answered == 1)
    (session,) = stage.sessions.all()
    task = session._task
    assert task is not None

    client.writer.transport.abort()

    await until(task.done)
    assert task.cancelled()


async def test_cancel_stops_what_runs_on_the_twin_and_only_while_it_runs(stage: Stage, twin_cluster: Cluster) -> None:
    client = await stage.client()
    (session,) = stage.sessions.all()
    client.send(Query(b"SELECT pg_sleep(30)"))
    await until(lambda: is_active(twin_cluster.dsn(), "pg_sleep(30)"))
    session.cancel()
    assert errors(await client.until())[0].sqlstate == "57014"

    session.cancel()
    assert kinds(await client.ask(Query(b"SELECT pg_sleep(0.1)"))) == "TDCZ"


async def test_a_cancel_that_comes_late_does_not_stop_the_next_statement(stage: Stage, twin_cluster: Cluster) -> None:
    client = await stage.client()
    (session,) = stage.sessions.all()
    postmaster = int((twin_cluster.directory / "data" / "postmaster.pid").read_text().split()[0])
    client.send(Query(b"SELECT pg_sleep(0.3)"))
    await until(lambda: is_active(twin_cluster.dsn(), "pg_sleep(0.3)"))
    os.kill(postmaster, signal.SIGSTOP)  # which takes up the request only once the statement is over
    try:
        session.cancel()
        assert kinds(await client.until()) == "TDCZ"
        client.send(Query(b"SELECT pg_sleep(0.3)"))
        await asyncio.sleep(0.2)
    finally:
        os.kill(postmaster, signal.SIGCONT)

    assert kinds(await client.until()) == "TDCZ"


async def test_the_inner_deadline_is_the_clients_own(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"SET statement_timeout = '60s'"))

    await client.ask(Query(COUNT))

    assert 30 < stage.service.timeouts[-1] < 59.9


@pytest.mark.parametrize("text", [b"SELECT 1", COUNT])
async def test_a_time_out_between_two_messages_is_the_error_of_the_next_one(stage: Stage, text: bytes) -> None:
    told = []
    for client in (await stage.direct_client(), await stage.client()):
        await client.ask(Query(b"SET statement_timeout = '100ms'"))
        client.send(Parse(b"", text), Flush())
        await asyncio.sleep(0.3)
        client.send(Flush())  # at which PostgreSQL notices that the time is over
        await asyncio.sleep(0.2)
        client.send(Bind(b"", b""), Execute(b""), Sync())
        async with asyncio.timeout(10):
            frames = await client.until()
            assert kinds(await client.ask(Query(b"SELECT 1"))) == "TDCZ"
        told.append((kinds(frames), [error.sqlstate for error in errors(frames)]))

    assert told == [("1EZ", ["57014"])] * 2
    assert stage.service.answered == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", None), ("", None), ("250ms", 0.25), ("3s", 3), ("2min", 120), ("1h", 3600), ("1d", 86400)],
)
def test_time_outs_are_read_as_postgresql_shows_them(text: str, seconds: float | None) -> None:
    assert SessionState((), (), {"transaction_timeout": text}, "").seconds("transaction_timeout") == seconds


async def test_a_setting_of_many_blanks_is_kept_for_no_later_statement(stage: Stage) -> None:
    client = await stage.client()
    await client.ask(Query(b"SELECT set_config('noisegate.epsilon', repeat(' ', 100000), false)"))

    for _ in range(3):
        assert kinds(await client.ask(Query(COUNT))) == "TDCZ"

    assert not [key for key, (kept, _) in _SETTINGS._kept.items() if len(str(kept)) > 10_000]


@pytest.mark.parametrize("opening", [b"ROLLBACK", b"BEGIN"])
@pytest.mark.parametrize("ask", [(Query(COUNT),), (Parse(b"", COUNT), Bind(b"", b""), Execute(b""), Sync())])
async def test_a_session_is_not_idle_while_its_statement_runs_inside(
    stage: Stage, opening: bytes, ask: tuple[Message, ...]
) -> None:
    client = await stage.client()
    await client.ask(Query(b"SET idle_in_transaction_session_timeout = '300ms'"))
    await client.ask(Query(b"SET idle_session_timeout = '300ms'"))
    await client.ask(Query(opening))
    stage.service.seconds = 1

    assert kinds(await client.ask(*ask))[-3:] == "DCZ"

    assert [error.sqlstate for error in errors(await client.rest())] == ["25P03" if opening == b"BEGIN" else "57P05"]


async def test_a_client_that_leaves_stops_what_runs_for_it(stage: Stage) -> None:
    client = await stage.client()
    stage.service.seconds = 30
    client.send(Query(COUNT))
    await until(lambda: stage.service.answered == 1)

    await client.close()

    await until(lambda: stage.sessions.all() == [])


async def test_messages_behind_a_slow_answer_wait_in_order_and_are_held_when_they_are_many(stage: Stage) -> None:
    client = await stage.client()
    stage.service.seconds = 0.2
    client.send(Query(COUNT), *[Query(b"SELECT 1 -- " + b"x" * 1000)] * 300, Query(b"SELECT 'last'"))

    for _ in range(301):
        await client.until()

    assert rows(await client.until()) == [(b"last",)]
