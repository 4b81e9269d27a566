"""One private statement: charged before anything is looked at, noised, kept, and served again for free."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from proxy.engines.engine import Row
from proxy.engines.postgres.opening import Opening
from proxy.execute import audit
from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Answer
from proxy.ledger.connection import Connection
from proxy.settings import LoadLimits
from rules.accounting.budgets import period_of
from rules.accounting.store import LedgerError
from rules.kernel.statement import Bounded, Marginals, Tally
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.noised_outputs import Chosen, Count, Sum
from rules.mechanisms.release_plan import Choice, Measure, PublicGroups, Quantile
from rules.planner.plan import Request
from rules.refusal import (
    AnalystStopped,
    BadSetting,
    BudgetSpent,
    CannotRun,
    InnerFailure,
    Interrupted,
    Mismatch,
    Refusal,
    RulesChanged,
    TooComplex,
    Unavailable,
)
from rules.sql.statement import Kind, RelationName, Statement
from rules.values.time_zones import ZoneUse
from tests.conftest import RealDatabase
from tests.execute.desk import Desk
from tests.execute.plans import FAULTY, FOUND, IDS, UNITS, HandPlanner, block_of, plan_of
from tests.execute.watched_engine import WatchedEngine, WatchedSnapshot
from tests.planner.planned import whole
from tests.support.waiting import is_active, until
from tests.support.written import WrittenService, statement_of, with_written

NO_NUMBER = "SELECT city, email::int8 FROM public.customers WHERE id = 7"
MANY_ROWS = "SELECT 'Berlin', (SELECT id FROM public.customers)"
SLEEP = "SELECT city, count(pg_sleep(0.05)) FROM public.customers GROUP BY city"


def exact(shop: RealDatabase, expression: str) -> dict[str | None, int]:
    with shop.connect() as connection:
        return dict(connection.execute(f"SELECT city, {expression} FROM customers GROUP BY city").fetchall())


async def test_every_group_of_the_list_is_answered_with_its_noised_number(desk: Desk, shop: RealDatabase) -> None:
    desk.noise.constant = 5
    answer = await desk.ask(block_of(UNITS))

    counts = exact(shop, "count(*)")
    assert answer.columns == (
        ("Berlin", "Lyon", "Atlantis", None),
        tuple(str(counts.get(city, 0) + 5) for city in ("Berlin", "Lyon", "Atlantis", None)),
    )


async def test_the_columns_of_several_blocks_follow_each_other(desk: Desk) -> None:
    answer = await desk.ask(block_of(UNITS), block_of(UNITS, IDS, canonical="another"))

    assert len(answer.columns) == 2 + 3
    assert len(desk.engine.seen) == 2


async def test_a_statement_without_private_blocks_is_free_and_asks_nobody(desk: Desk) -> None:
    assert await desk.ask() == Answer(())
    assert (desk.engine.seen, await desk.spent()) == ([], (0, 0))


async def test_a_charge_that_does_not_fit_is_refused_before_the_database_is_asked(desk: Desk) -> None:
    with pytest.raises(BudgetSpent):
        await desk.ask(block_of(replace(UNITS, epsilon=Decimal(501))), analyst="bob")

    assert desk.engine.seen == []
    assert await desk.spent("bob") == (0, 0)


async def test_noise_is_drawn_before_the_database_is_asked(desk: Desk) -> None:
    with pytest.raises(InnerFailure):
        await desk.ask(block_of(UNITS, sql=FAULTY))

    assert [count for count, *_ in desk.noise.asked] == [4]


async def test_a_database_that_is_away_costs_nothing(desk: Desk) -> None:
    away = Desk(WatchedEngine("host=/nowhere dbname=shop"), desk.ledger, desk.policy, desk.catalog)
    with pytest.raises(Unavailable):
        await away.ask(block_of(UNITS))

    assert await desk.spent() == (0, 0)


@pytest.mark.parametrize("row", ["'Berlin', 'not a number'", "'Berlin', 1, 2", "'Berlin'", "'Berlin', 9.5"])
async def test_a_row_that_is_not_what_was_asked_for_is_dropped_and_fails_nothing(desk: Desk, row: str) -> None:
    answer = await desk.ask(block_of(UNITS, sql=f"SELECT {row}"))

    assert answer.columns[1] == ("0", "0", "0", "0")


@pytest.mark.parametrize(
    "sql",
    [
        FAULTY,
        NO_NUMBER,
        MANY_ROWS,
        "SELECT city, count(*) / (count(*) - count(*)) FROM public.customers GROUP BY city",
        SLEEP,
    ],
)
async def test_whatever_fails_after_the_charge_is_the_same_refusal_and_is_paid(desk: Desk, sql: str) -> None:
    with pytest.raises(InnerFailure) as caught:
        await desk.ask(block_of(UNITS, sql=sql), seconds=1.5)

    assert str(caught.value) == "the statement failed after it was charged"
    assert (caught.value.detail, caught.value.__cause__) == ("", None)
    assert await desk.spent() == (1, 1)


@pytest.mark.parametrize(
    ("asked", "words", "spent"),
    [
        (1, "the schema changed while the statement was planned", (0, 0)),
        (2, "the schema changed while the statement ran", (1, 1)),
    ],
)
async def test_a_table_that_changes_meanwhile_is_told_as_a_change_of_the_schema_and_stops_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, asked: int, words: str, spent: tuple[int, int]
) -> None:
    answers = iter(f"; SELECT {str(turn == asked).lower()}" for turn in (1, 2))  # before the charge, and after it
    monkeypatch.setattr(Opening, "rechecking", lambda _: next(answers))
    with pytest.raises(RulesChanged) as caught:
        await desk.ask(block_of(UNITS))

    assert (caught.value.message, caught.value.sqlstate) == (words, "40001")
    assert (await desk.spent(), await desk.ledger.stops()) == (spent, ())


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 'Berlin', salary FROM public.staff", ": permission denied for table staff"),
        ("SELECT 'Berlin', 1 FROM public.nowhere", ': relation "public.nowhere" does not exist'),
        ("SELECT city, missing FROM public.customers", ""),
        ("SELECT 'Berlin', FROM", ""),
    ],
)
async def test_what_the_real_database_cannot_plan_is_refused_for_nothing(desk: Desk, sql: str, words: str) -> None:
    with pytest.raises(CannotRun) as caught:
        await desk.ask(block_of(UNITS), block_of(IDS, sql=sql, canonical="broken"))

    assert caught.value.message == f"the real database cannot run this statement{words}"
    assert (desk.engine.seen, await desk.spent(), await desk.ledger.stops()) == ([], (0, 0), ())
    await desk.ask(block_of(UNITS))


@pytest.mark.parametrize(
    "sql", ["SELECT city, CASE WHEN id = -1 THEN 1 / 0 ELSE id END FROM public.customers", "SELECT 'Berlin', 'x'::int"]
)
async def test_what_fails_on_a_value_in_planning_is_paid_for_it_may_be_one_of_the_statistics(
    desk: Desk, sql: str
) -> None:
    with pytest.raises(InnerFailure):
        await desk.ask(block_of(IDS, sql=sql, canonical="broken"))
    assert (desk.engine.seen, await desk.spent(), len(await desk.ledger.stops())) == ([], (1, 1), 1)


@pytest.mark.parametrize("sql", [FAULTY, NO_NUMBER, MANY_ROWS])
async def test_after_the_first_fault_nothing_is_run_for_that_analyst_until_it_is_forgiven(desk: Desk, sql: str) -> None:
    known = await desk.ask(block_of(UNITS))
    with pytest.raises(InnerFailure):
        await desk.ask(block_of(UNITS, sql=sql, canonical="broken"))
    other = desk.open(desk.policy)  # another proxy, or this one after a restart
    for service in (desk.service, other):
        desk.service, seen = service, len(desk.engine.seen)
        desk.now += timedelta(hours=1)
        with pytest.raises(AnalystStopped):
            await desk.ask(block_of(IDS))
        assert len(desk.engine.seen) == seen

    assert await desk.spent() == (2, 2)
    assert (await desk.ask(block_of(UNITS))).columns == known.columns  # what is paid stays paid
    await desk.ask(block_of(IDS), analyst="bob")
    assert await desk.ledger.forgive("ada", desk.now)
    await desk.ask(block_of(IDS), reuse=False)


@pytest.mark.extended
async def test_statements_that_run_while_a_fault_happens_end_like_it_and_are_not_kept(desk: Desk) -> None:
    slow = asyncio.create_task(desk.ask(block_of(UNITS, sql=SLEEP.replace("0.05", "0.01"))))
    while not desk.engine.seen:
        await asyncio.sleep(0.01)
    with pytest.raises(InnerFailure):
        await desk.ask(block_of(UNITS, sql=FAULTY, canonical="broken"))

    with pytest.raises(InnerFailure):
        await slow
    with pytest.raises(AnalystStopped):
        await desk.ask(block_of(UNITS))


@pytest.mark.extended
async def test_time_outs_and_lost_connections_are_paid_and_stop_nobody(desk: Desk, shop: RealDatabase) -> None:
    for number in range(5):
        with pytest.raises(InnerFailure):
            await desk.ask(block_of(UNITS, sql=SLEEP, canonical=str(number)), seconds=0.5)
    lost = asyncio.create_task(desk.ask(block_of(UNITS, sql=SLEEP, canonical="lost")))
    await until(lambda: is_active(shop.dsn, "pg_sleep"))
    with shop.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'noisegate_reader'")
    with pytest.raises(InnerFailure):
        await lost

    assert await desk.ledger.stops() == ()
    await desk.ask(block_of(UNITS))
    assert await desk.spent() == (7, 7)


@pytest.mark.parametrize(
    ("done", "undone"),
    [
        ("REVOKE USAGE ON SCHEMA public FROM noisegate_reader, PUBLIC", "GRANT USAGE ON SCHEMA public TO PUBLIC"),
        ("ALTER SCHEMA public RENAME TO moved", "ALTER SCHEMA moved RENAME TO public"),
    ],
)
async def test_a_dba_who_takes_away_what_a_statement_reads_stops_nobody(
    desk: Desk, shop: RealDatabase, monkeypatch: pytest.MonkeyPatch, done: str, undone: str
) -> None:
    run = WatchedSnapshot.run

    async def taken_away(snapshot: WatchedSnapshot, statement: Bounded | Marginals | Tally) -> Sequence[Row]:
        owner.execute(done)
        return await run(snapshot, statement)

    monkeypatch.setattr(WatchedSnapshot, "run", taken_away)
    with shop.connect() as owner:
        try:
            with pytest.raises(InnerFailure):
                await desk.ask(block_of(UNITS))
        finally:
            owner.execute(undone)
            owner.execute("GRANT USAGE ON SCHEMA public TO noisegate_reader")

    assert (await desk.spent(), await desk.ledger.stops()) == ((1, 1), ())


async def test_a_table_that_rows_say_is_missing_stops_as_any_fault_does(desk: Desk) -> None:
    with pytest.raises(InnerFailure):
        await desk.ask(block_of(UNITS, sql="SELECT city, city::regclass::oid FROM public.customers"))

    assert await desk.ledger.stops()


async def test_who_cancels_at_the_moment_of_a_fault_is_stopped_all_the_same(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, entered, fault = asyncio.Event(), asyncio.Event(), desk.ledger.fault

    async def held(charge: int, time: datetime, *, cause: str, stops: bool) -> None:
        entered.set()
        await written.wait()
        await fault(charge, time, cause=cause, stops=stops)

    monkeypatch.setattr(desk.ledger, "fault", held)
    asking = asyncio.create_task(desk.ask(block_of(UNITS, sql=FAULTY)))
    await entered.wait()
    asking.cancel()
    with pytest.raises(Interrupted):
        await asking
    written.set()

    with pytest.raises(AnalystStopped):
        await desk.ask(block_of(UNITS))


async def test_a_fault_that_the_ledger_did_not_take_is_written_before_the_next_charge(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(charge: int, time: datetime, *, cause: str, stops: bool) -> None:
        raise LedgerError("the ledger is away")

    with monkeypatch.context() as patch:
        patch.setattr(desk.ledger, "fault", away)
        with pytest.raises(Unavailable):
            await desk.ask(block_of(UNITS, sql=FAULTY))
        with pytest.raises(LedgerError):
            await desk.ask(block_of(UNITS))

    with pytest.raises(AnalystStopped):
        await desk.ask(block_of(UNITS))
    assert [stop.analyst for stop in await desk.ledger.stops()] == ["ada"]
    assert await desk.spent() == (1, 1)


async def test_what_the_ledger_does_not_take_is_told_in_the_same_words_be_it_a_fault_or_an_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop that is lost with its proxy, before the ledger has it, has told nothing."""
    words = []

    async def away(*args: object, **named: object) -> None:
        raise LedgerError("the ledger does not respond", hint="Nothing was charged.")

    for block, analyst, job in ((block_of(UNITS, sql=FAULTY), "ada", "fault"), (block_of(UNITS), "bob", "settle")):
        with monkeypatch.context() as patch:
            patch.setattr(desk.ledger, job, away)
            with pytest.raises(Unavailable) as refusal:
                await desk.ask(block, analyst=analyst)
        words.append((refusal.value.sqlstate, refusal.value.message, refusal.value.hint))

    failed = "the privacy ledger has failed, so the statement is not answered"
    assert words == [("57P03", failed, "Its ε is spent.")] * 2


async def test_what_ran_beside_a_fault_is_not_told_before_the_ledger_has_that(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(charge: int, time: datetime, *, cause: str, stops: bool) -> None:
        raise LedgerError("the ledger is away")

    monkeypatch.setattr(desk.ledger, "fault", away)
    beside = asyncio.create_task(desk.ask(block_of(UNITS, sql=SLEEP.replace("0.05", "0.002"), canonical="slow")))
    while not desk.engine.seen:
        await asyncio.sleep(0.01)
    with pytest.raises(Unavailable):
        await desk.ask(block_of(UNITS, sql=FAULTY))
    assert not beside.done()

    with pytest.raises(Unavailable):
        await beside


async def test_a_fault_that_the_ledger_did_not_take_stops_at_other_proxies_soon(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, failures = desk.ledger.fault, [LedgerError("the ledger is away")] * 3

    async def away(charge: int, time: datetime, *, cause: str, stops: bool) -> None:
        if failures:
            raise failures.pop()
        await fault(charge, time, cause=cause, stops=stops)

    monkeypatch.setattr(desk.ledger, "fault", away)
    monkeypatch.setattr(audit, "_RETRY_SECONDS", 0.01)
    with pytest.raises(Unavailable):
        await desk.ask(block_of(UNITS, sql=FAULTY))
    desk.service = desk.open(desk.policy)  # another proxy, which knows the ledger alone
    async with asyncio.timeout(10):
        while not await desk.ledger.stops():
            await asyncio.sleep(0.01)
    with pytest.raises(AnalystStopped):
        await desk.ask(block_of(IDS))


async def test_a_cancelled_statement_stays_charged_and_stops_in_the_database(desk: Desk, shop: RealDatabase) -> None:
    asking = asyncio.create_task(desk.ask(block_of(UNITS, sql=SLEEP)))
    while not desk.engine.seen:
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(Interrupted):
        await asking

    assert await desk.spent() == (1, 1)
    await until(lambda: not is_active(shop.dsn, "pg_sleep"))
    await desk.ask(block_of(UNITS))  # and no fault was counted


async def test_one_analysts_slow_statements_leave_connections_for_others(desk: Desk, shop: RealDatabase) -> None:
    slow = "SELECT city, count(*) FROM public.customers, pg_sleep(60) GROUP BY city"
    tasks = [asyncio.create_task(desk.ask(block_of(UNITS, sql=slow, canonical=f"{n}"))) for n in range(12)]
    await until(lambda: is_active(shop.dsn, "pg_sleep(60)"))

    await desk.ask(block_of(UNITS), analyst="bob")

    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_large_answer_keeps_nobody_else_waiting(desk: Desk) -> None:
    groups = PublicGroups(tuple((f"city {number}",) for number in range(10_000)))
    large = replace(
        block_of(UNITS, IDS, groups=groups),
        outputs=(Count(0), Sum(1, Fraction(1), 0)) * 50,
        output_types=("bigint",) * 100,
    )
    await desk.ask(large)
    longest, began = 0.0, time.process_time()  # what this thread works at a stretch, of what all of ours do

    asking = asyncio.create_task(desk.ask(large))
    while not asking.done():
        before = time.thread_time()
        await asyncio.sleep(0.001)
        longest = max(longest, time.thread_time() - before)

    assert longest < (time.process_time() - began) / 3


async def test_a_time_out_before_the_charge_is_free(desk: Desk) -> None:
    with pytest.raises(Interrupted):
        await desk.ask(block_of(UNITS), seconds=0)

    assert await desk.spent() == (0, 0)


async def test_the_same_question_is_answered_again_for_nothing(desk: Desk) -> None:
    desk.noise.constant = 5
    first = await desk.ask(block_of(UNITS))
    desk.noise.constant = 99
    again = await desk.ask(block_of(UNITS))

    assert again.columns == first.columns
    assert len(desk.engine.seen) == 1
    assert await desk.spent() == (1, 1)


async def test_only_what_is_new_in_a_question_is_paid(desk: Desk) -> None:
    await desk.ask(block_of(UNITS))
    desk.noise.constant = 99
    both = await desk.ask(block_of(IDS, UNITS))

    assert await desk.spent() == (2, 2)
    assert both.columns[2] == (await desk.ask(block_of(UNITS))).columns[1]


async def test_what_others_paid_for_costs_the_analyst_once_and_the_dataset_nothing(desk: Desk) -> None:
    await desk.ask(block_of(UNITS))
    for _ in range(3):
        await desk.ask(block_of(UNITS), analyst="bob")

    assert await desk.spent("bob") == (1, 1)
    assert len(desk.engine.seen) == 1


async def test_a_pivot_of_others_costs_what_it_cost_them(desk: Desk) -> None:
    pivot = block_of(replace(UNITS, vector=0), replace(IDS, vector=0))
    await desk.ask(pivot)
    answer = await desk.ask(pivot, analyst="bob")
    assert await desk.spent("bob") == (1, 1)

    foreseen = replace(plan_of(), foreseen=(pivot,))
    explained = await desk.service.answer(foreseen, analyst="eve", session="s", timeout_seconds=9)
    assert any("cost epsilon=1 at first sight" in (text or "") for text in explained.columns[-1])
    assert (await desk.ask(pivot, analyst="bob")).columns == answer.columns
    assert await desk.spent("bob") == (1, 1)


async def test_a_column_of_a_pivot_that_others_have_is_not_paid_beside_the_draw_of_the_others(desk: Desk) -> None:
    await desk.ask(block_of(UNITS))
    await desk.ask(block_of(replace(UNITS, vector=0), replace(IDS, vector=0)), analyst="bob")
    assert await desk.spent("bob") == (1, 2)

    await desk.ask(block_of(replace(UNITS, vector=0), replace(IDS, vector=0)), analyst="bob")
    assert await desk.spent("bob") == (1, 2)


async def test_a_pivot_whose_columns_others_have_one_by_one_costs_at_most_twice_what_is_asked_for(desk: Desk) -> None:
    more = replace(UNITS, epsilon=Decimal("1.5")), IDS
    for measure in more:
        await desk.ask(block_of(measure))
    await desk.ask(block_of(*(replace(measure, vector=0, epsilon=Decimal(1)) for measure in more)), analyst="bob")

    assert await desk.spent("bob") == (1, Decimal("3.5"))


@pytest.mark.parametrize("noise_of_the_other", [100, -1000])  # it finds the same cities, or none
async def test_a_price_does_not_tell_whether_lists_that_others_found_are_equal(
    desk: Desk, noise_of_the_other: int
) -> None:
    desk.noise.constant = 100
    await desk.ask(block_of(UNITS, groups=FOUND))
    desk.noise.constant = noise_of_the_other
    await desk.ask(block_of(replace(UNITS, epsilon=Decimal(2)), IDS, groups=FOUND))
    desk.noise.constant = 100

    await desk.ask(block_of(UNITS, IDS, groups=FOUND), analyst="bob")

    assert await desk.spent("bob") == (2, 5)  # the count of the first, and a sum of his own


@pytest.mark.parametrize("noise_of_the_other", [100, -1000])
async def test_a_price_does_not_tell_whether_a_list_of_others_is_equal_to_an_own_one(
    desk: Desk, noise_of_the_other: int
) -> None:
    desk.noise.constant = 100
    await desk.ask(block_of(UNITS, IDS, groups=FOUND), analyst="bob")
    desk.noise.constant = noise_of_the_other
    await desk.ask(block_of(replace(UNITS, epsilon=Decimal(2)), groups=FOUND))
    desk.noise.constant = 100

    await desk.ask(block_of(replace(UNITS, epsilon=Decimal(2)), IDS, groups=FOUND), analyst="bob")

    assert await desk.spent("bob") == (5, 5)  # the count of the other, and a sum over its groups


async def test_what_others_drew_at_once_is_shown_at_once(desk: Desk) -> None:
    desk.noise.constant = 100
    await desk.ask(block_of(UNITS, IDS, groups=FOUND))

    await desk.ask(block_of(UNITS, IDS, groups=FOUND), analyst="bob")

    assert await desk.spent("bob") == (2, 2)


async def test_a_first_sight_that_does_not_fit_is_refused(desk: Desk) -> None:
    await desk.ask(block_of(replace(UNITS, epsilon=Decimal(501))))
    asked = block_of(replace(UNITS, epsilon=Decimal(251)))
    with pytest.raises(BudgetSpent) as caught:
        await desk.ask(asked, analyst="bob")

    assert "noisegate.reuse = off" in caught.value.hint
    await desk.ask(asked, analyst="bob", reuse=False)
    assert await desk.spent("bob") == (251, 752)


@pytest.mark.parametrize(("paid", "charged"), [("1.5", "1.5"), ("2", "2"), ("2.1", "1"), ("500", "1")])
async def test_an_answer_of_others_costs_at_most_twice_what_is_asked_for(desk: Desk, paid: str, charged: str) -> None:
    await desk.ask(block_of(replace(UNITS, epsilon=Decimal(paid))))
    await desk.ask(block_of(UNITS), analyst="bob")

    own, shared = await desk.spent("bob")
    assert own == Decimal(charged)
    assert shared == Decimal(paid) + (Decimal(1) if charged != paid else 0)


async def ask_with_more_epsilon(desk: Desk) -> None:
    await desk.ask(block_of(replace(UNITS, epsilon=Decimal(2))))


async def ask_for_a_new_answer(desk: Desk) -> None:
    await desk.ask(block_of(UNITS), reuse=False)


async def ask_a_day_later(desk: Desk) -> None:
    desk.now += timedelta(days=1, seconds=1)
    await desk.ask(block_of(UNITS))


async def ask_with_another_bound(desk: Desk) -> None:
    await desk.ask(block_of(replace(UNITS, sensitivity=2)))


async def ask_for_other_groups(desk: Desk) -> None:
    await desk.ask(block_of(UNITS, groups=PublicGroups((("Lyon",),))))


async def ask_another_block(desk: Desk) -> None:
    await desk.ask(block_of(UNITS, canonical="others"))


async def ask_by_other_rules(desk: Desk) -> None:
    await desk.service.load(desk.policy.model_copy(update={"group_size": 2}), desk.catalog)
    plan = replace(plan_of(block_of(UNITS)), generation=1)
    await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=9)


@pytest.mark.parametrize(
    "ask",
    [
        ask_with_more_epsilon,
        ask_for_a_new_answer,
        ask_a_day_later,
        ask_with_another_bound,
        ask_for_other_groups,
        ask_another_block,
        ask_by_other_rules,
    ],
)
async def test_a_question_that_means_something_else_is_asked_anew(desk: Desk, ask: Callable[..., object]) -> None:
    await desk.ask(block_of(UNITS))
    asking = ask(desk)
    assert asyncio.iscoroutine(asking)
    await asking

    assert len(desk.engine.seen) == 2


async def test_what_is_shown_again_is_made_of_the_same_releases_by_the_same_block(desk: Desk) -> None:
    """However often it is shown: what is remembered of it is no other block's, and no other releases'."""
    block = block_of(UNITS)
    first = await desk.ask(block)
    for _ in range(2):
        again = await desk.ask(block)
        assert again.columns == first.columns
        assert again.notices[0] == first.notices[0].replace("ε 1 spent", "ε 0 spent")

    bare = replace(block, outputs=(Count(0, shown_bare=True), Count(0)), output_types=("bigint", "bigint"))
    assert [len((await desk.ask(each)).columns) for each in (bare, block, bare)] == [3, 2, 3]
    desk.noise.constant = 5
    fresh = await desk.ask(block, reuse=False)
    mean = await desk.ask(block)
    assert first.columns != mean.columns != fresh.columns
    assert (await desk.ask(block)).columns == mean.columns


async def test_what_is_remembered_of_releases_that_the_ledger_has_lost_is_not_shown_for_those_that_have_their_numbers(
    desk: Desk,
) -> None:
    """What was kept without waiting for the disk may be gone when the ledger's home comes back, and the proxy be there
    all the time. Its numbers are given again."""
    block = block_of(UNITS)
    first = await desk.ask(block)
    await desk.ask(block)  # so that it is remembered

    def lose(connection: Connection) -> None:
        for deleted in ("seen", "releases", "entries WHERE kind = 'settle'"):
            connection.execute(f"DELETE FROM {deleted}")

    await desk.ledger._batches.run(lose, durable=False)
    desk.noise.constant = 5
    other = await desk.ask(block, analyst="bob")

    assert (await desk.ask(block)).columns == other.columns != first.columns


async def test_an_answer_is_given_whole_again_until_the_ledger_or_the_clock_says_something_else(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactions: list[object] = []
    run = desk.ledger._batches.run

    async def counted(*given: object, **how: object) -> object:
        transactions.append(given)
        return await run(*given, **how)  # type: ignore[arg-type]

    plan = plan_of(block_of(UNITS))

    async def ask(analyst: str = "ada", *, reuse: bool = True) -> tuple[Answer, bool]:
        """The answer, and whether the ledger was asked for it."""
        before = len(transactions)
        answer = await desk.service.answer(plan, analyst=analyst, session="s", timeout_seconds=20, reuse=reuse)
        return answer, len(transactions) > before

    monkeypatch.setattr(desk.ledger._batches, "run", counted)
    first, _ = await ask()
    (again, was_asked), (third, is_asked) = await ask(), await ask()
    assert (was_asked, is_asked) == (True, False)
    assert again == third and again.columns == first.columns

    assert (await ask("bob"))[1]  # who has not paid for it
    told, is_asked = await ask()
    assert is_asked and told.columns == first.columns  # somebody has been charged, so it may tell of other sums

    desk.noise.constant = 3
    await ask(reuse=False)
    both, is_asked = await ask()
    assert is_asked and both.columns != first.columns

    assert not (await ask())[1]
    desk.now += desk.policy.fresh_for + timedelta(seconds=1)
    stale, is_asked = await ask()
    assert is_asked and stale.columns != both.columns


async def test_an_answer_is_not_given_again_in_a_new_period_before_it_is_paid_there(desk: Desk) -> None:
    daily = {"budget": desk.policy.budget.model_copy(update={"per": "day"}), "fresh_for": timedelta(days=9)}
    desk.service = desk.open(desk.policy.model_copy(update=daily))
    plan, spent = plan_of(block_of(UNITS)), []
    for _ in range(2):
        for _ in range(3):
            await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=20)
        spent.append(await desk.spent())
        desk.now += timedelta(days=1)

    assert spent == [(1, 1), (1, 1)]


async def test_an_answer_that_is_looked_for_while_a_period_ends_is_paid_in_the_next(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks many questions at once decides when the ledger is read for the last of them."""
    monthly = desk.policy.model_copy(update={"budget": desk.policy.budget.model_copy(update={"per": "month"})})
    desk.service = desk.open(monthly)
    await desk.ask(block_of(UNITS))
    genuine = desk.ledger.find_releases

    async def found(*wanted: Any, **about: Any) -> Any:
        kept = await genuine(*wanted, **about)
        desk.now += timedelta(days=20)
        return kept

    monkeypatch.setattr(desk.ledger, "find_releases", found)
    await desk.ask(block_of(UNITS))

    assert await desk.spent() == (1, 1)


async def test_the_own_page_shows_answers_of_the_running_period_and_role_alone(desk: Desk) -> None:
    daily = desk.policy.model_copy(update={"budget": desk.policy.budget.model_copy(update={"per": "day"})})
    desk.service = desk.open(daily)
    budgets, service = desk.service.rulebook.budgets, desk.service
    await desk.ask(block_of(UNITS))

    today, tomorrow = (period_of(desk.now + timedelta(days=days), budgets) for days in (0, 1))
    assert len(service.recent.of("ada", today, budgets)) == 1
    assert not service.recent.of("ada", tomorrow, budgets)
    moved = replace(budgets, roles={"team": budgets.dataset}, members={"ada": "team"})
    assert not service.recent.of("ada", today, moved)

    desk.now += timedelta(days=1)
    await desk.ask(block_of(UNITS))
    assert len(service.recent.of("ada", tomorrow, budgets)) == 1


async def test_a_change_of_budgets_alone_forgets_no_answer(desk: Desk) -> None:
    await desk.ask(block_of(UNITS))
    richer = desk.policy.model_copy(update={"budget": desk.policy.budget.model_copy(update={"epsilon": Decimal(900)})})
    await desk.service.load(richer, desk.catalog)
    plan = replace(plan_of(block_of(UNITS)), generation=1)
    await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=9)

    assert len(desk.engine.seen) == 1


async def test_equal_questions_at_the_same_time_are_asked_once(desk: Desk) -> None:
    askers = [desk.ask(block_of(UNITS), analyst=analyst) for analyst in ["ada", "bob"] * 5]
    answers = await asyncio.gather(*askers)

    assert len({answer.columns for answer in answers}) == 1
    assert len(desk.engine.seen) == 1
    assert await desk.spent() == (1, 1)


@pytest.mark.extended
async def test_who_waits_for_an_equal_question_waits_no_longer_than_his_own_time(desk: Desk) -> None:
    slow = asyncio.create_task(desk.ask(block_of(UNITS, sql=SLEEP.replace("0.05", "0.01"))))
    while not desk.engine.seen:
        await asyncio.sleep(0.01)
    with pytest.raises(Interrupted):
        await desk.ask(block_of(UNITS), analyst="bob", seconds=0.1)

    assert len((await slow).columns) == 2
    assert await desk.spent("bob") == (0, 1)


async def test_groups_once_released_are_a_public_list_for_later_measures(desk: Desk, shop: RealDatabase) -> None:
    found = block_of(UNITS, groups=FOUND)
    keys, _ = (await desk.ask(found)).columns
    assert keys == ("Berlin", "Graz", "Lyon", "Porto")  # the few without a city are below the threshold

    gone = "SELECT city, count(*), sum(id) FROM public.customers WHERE city IN ('Berlin', 'Rome') GROUP BY city"
    answer = await desk.ask(replace(block_of(UNITS, IDS, groups=FOUND, sql=gone)))

    assert answer.columns[0] == keys
    assert answer.columns[2] == (str(exact(shop, "sum(id)")["Berlin"]), "0", "0", "0")
    assert await desk.spent() == (2, 2)


async def test_more_groups_than_the_rules_allow_are_refused_after_the_threshold(desk: Desk) -> None:
    desk.service = desk.open(desk.policy.model_copy(update={"groups_limit": 3}))
    for _ in range(2):
        with pytest.raises(TooComplex):
            await desk.ask(block_of(UNITS, groups=FOUND))

    assert await desk.spent() == (1, 1)


async def test_a_choice_brings_its_own_statement_and_is_served_again(desk: Desk) -> None:
    sql = "SELECT city, (id / 100)::int, count(*) FROM public.customers WHERE id < 300 GROUP BY 1, 2"
    median = Choice("median of id", 1, Decimal(1), statement_of(sql), 3, Quantile(Fraction(1, 2)))
    block = block_of(UNITS)
    outputs = (Count(0), Chosen(1, ("0-99", "100-199", "200-299")))
    block = replace(block, measures=(UNITS, median), outputs=outputs, output_types=("bigint", "text"))
    answer = await desk.ask(block)
    desk.noise.constant = 99

    assert answer.columns[2][0] == "100-199"
    assert len(desk.engine.seen) == 2
    assert (await desk.ask(block)).columns == answer.columns
    assert await desk.spent() == (2, 2)


async def test_a_plan_made_by_old_rules_is_refused_and_nothing_is_spent(desk: Desk) -> None:
    plan = plan_of(block_of(UNITS))
    await desk.service.load(desk.policy, desk.catalog)
    with pytest.raises(RulesChanged):
        await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=9)

    assert await desk.spent() == (0, 0)


async def test_a_table_that_is_not_what_it_was_is_not_read_and_nothing_is_spent(desk: Desk) -> None:
    tables = tuple(replace(table, fingerprint="of old") for table in desk.catalog.tables)
    await desk.service.load(desk.policy, replace(desk.catalog, tables=tables))
    plan = replace(plan_of(block_of(UNITS)), generation=1)
    with pytest.raises(RulesChanged):
        await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=9)

    assert desk.service.schema_changed.is_set()
    assert (desk.engine.seen, await desk.spent()) == ([], (0, 0))
    await desk.service.load(desk.policy, await desk.engine.catalog())
    await desk.service.answer(replace(plan, generation=2), analyst="ada", session="s", timeout_seconds=9)
    assert not desk.service.schema_changed.is_set()


async def test_a_time_zone_that_the_real_database_does_not_know_is_said_to_be_wrong(desk: Desk) -> None:
    plan = replace(plan_of(block_of(UNITS)), time_zone="Europe/Atlantis")
    with pytest.raises(BadSetting):
        await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=9)

    assert await desk.spent() == (0, 0)


async def test_a_plan_that_reads_an_unknown_table_is_not_run(desk: Desk) -> None:
    with pytest.raises(Mismatch):
        await desk.ask(replace(block_of(UNITS), tables=("nowhere",)))


async def test_plans_carry_the_session_s_time_zone_and_the_rules_generation(desk: Desk) -> None:
    service = WrittenService(
        with_written(Rulebook.of(desk.policy, desk.catalog, 7)),
        HandPlanner(plan_of(block_of(UNITS))),
        desk.engine,
        desk.ledger,
        noise=desk.noise,
        clock=lambda: desk.now,
    )
    plan = whole(await service.plan(Request("0", ("public",), epsilon=Decimal(1), time_zone="Europe/Lisbon"), "ada"))

    assert (plan.time_zone, plan.generation, plan.size) == ("Europe/Lisbon", 7, 1)


async def test_a_plan_is_made_once_for_the_same_request_and_rules_unless_it_stands_on_the_clock(desk: Desk) -> None:
    planner = HandPlanner(plan_of(block_of(UNITS)), replace(plan_of(block_of(UNITS)), depends_on_time=True))
    service = WrittenService(
        with_written(Rulebook.of(desk.policy, desk.catalog, 7)),
        planner,
        desk.engine,
        desk.ledger,
        noise=desk.noise,
        clock=lambda: desk.now,
    )
    request = Request("0", ("public",), epsilon=Decimal(2), now="2026-11-21 12:00:00+00")
    plan = await service.plan(request, "ada")

    assert await service.plan(replace(request, now="2026-11-21 12:00:01+00"), "grace") is plan
    assert await service.plan(replace(request, epsilon=request.epsilon / 2), "ada") is not plan
    assert await service.plan(replace(request, time_zone="Europe/Lisbon"), "ada") is not plan
    for _ in range(2):
        await service.plan(replace(request, text="1"), "ada")
    await service.load(desk.policy, desk.catalog)
    assert whole(await service.plan(request, "ada")).generation == 8
    assert [request.text for request in planner.asked] == ["0", "0", "0", "1", "1", "0"]


async def test_an_analyst_is_told_cost_remainder_margin_and_age(desk: Desk) -> None:
    first = await desk.ask(block_of(UNITS, IDS))
    desk.now += timedelta(minutes=5)
    again = await desk.ask(block_of(UNITS, IDS))

    assert first.notices == (
        "ε 2 spent, 998 of 1000 left; 95% of counts within ±3, of sums within ±3,000; no row is cut",
    )
    assert again.notices == (
        "ε 0 spent, 998 of 1000 left; 95% of counts within ±3, of sums within ±3,000; no row is cut",
        "reused the answer of 2026-11-21 12:00 UTC; for a fresh one, at a new charge, SET noisegate.reuse = off",
    )


async def test_an_answer_that_is_drawn_in_part_is_not_told_to_be_reused_as_a_whole(desk: Desk) -> None:
    await desk.ask(block_of(UNITS))
    answer = await desk.ask(block_of(UNITS, IDS))

    assert answer.notices[0].startswith("ε 1 spent")
    assert answer.notices[1].startswith("reused in part the answer of 2026-11-21 12:00 UTC; ")


@pytest.mark.parametrize("sql", [None, FAULTY])
async def test_answers_and_failures_come_on_the_grid(desk: Desk, sql: str | None) -> None:
    desk.service = desk.open(desk.policy.model_copy(update={"pad_to": timedelta(seconds=1)}))
    start = time.monotonic()
    outcome = await asyncio.gather(desk.ask(block_of(UNITS, sql=sql)), return_exceptions=True)

    assert isinstance(outcome[0], Answer if sql is None else Refusal)
    assert (time.monotonic() - start) % 1 < 0.5
    assert time.monotonic() - start >= 1


@pytest.mark.extended
@pytest.mark.parametrize(
    ("padding", "slept", "limit", "expected"),
    [
        (timedelta(seconds=0.5), 0.6, 30, 1.0),
        (timedelta(seconds=0.5), 1.1, 30, 2.0),
        (timedelta(seconds=0.5), 9, 3, 2.0),
        ("full", 0, 1.5, 1.5),
        ("full", 9, 1.5, 1.5),
    ],
)
async def test_the_grid_doubles_and_time_outs_are_on_it(
    desk: Desk, padding: timedelta | str, slept: float, limit: float, expected: float
) -> None:
    sql = f"SELECT city, count(*) FROM public.customers, pg_sleep({slept}) GROUP BY city"
    desk.service = desk.open(desk.policy.model_copy(update={"pad_to": padding}))
    start = time.monotonic()
    outcome = await asyncio.gather(desk.ask(block_of(UNITS, sql=sql), seconds=limit), return_exceptions=True)

    assert isinstance(outcome[0], Interrupted if slept > limit else Answer)
    assert expected <= time.monotonic() - start < expected + 0.4


async def test_a_part_that_is_answered_first_leaves_half_of_the_time_to_the_rest(desk: Desk) -> None:
    """Or what is padded to its whole time is charged, and the statement around it is always too late."""
    desk.service = desk.open(desk.policy.model_copy(update={"pad_to": "full"}))
    plan, start = plan_of(block_of(UNITS)), time.monotonic()

    await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=2, is_first=True)

    assert 1 <= time.monotonic() - start < 1.4


@pytest.mark.parametrize("slept", [0, 9])
async def test_who_cancels_is_told_at_once_whether_it_was_done_or_not(desk: Desk, slept: float) -> None:
    sql = f"SELECT city, count(*) FROM public.customers, pg_sleep({slept}) GROUP BY city"
    desk.service = desk.open(desk.policy.model_copy(update={"pad_to": "full"}))
    asking = asyncio.create_task(desk.ask(block_of(UNITS, sql=sql), seconds=20))
    await asyncio.sleep(1)
    start = time.monotonic()
    asking.cancel()

    with pytest.raises(Interrupted):
        await asking
    assert time.monotonic() - start < 0.3


async def test_nothing_tells_before_the_grid_that_an_answer_is_there(desk: Desk) -> None:
    """Another session of the analyst could watch noisegate.ledger, or EXPLAIN."""
    desk.service = desk.open(desk.policy.model_copy(update={"pad_to": timedelta(seconds=3)}))

    async def told() -> tuple[list[str], bool]:
        review = await desk.ledger.review("ada", desk.service.rulebook.budgets, desk.now, most_charges=1)
        known = await desk.service.find_released([block_of(UNITS)], analyst="ada", session="2", time_zone="UTC")
        return [charge.state for charge in review.charges], known is not None

    asking = asyncio.create_task(desk.ask(block_of(UNITS)))
    await asyncio.sleep(2)  # it takes some milliseconds
    assert await told() == (["charged"], False)
    await asking
    assert await told() == (["settled"], True)


@pytest.mark.extended
async def test_whose_turn_is_next_does_not_tell_before_the_grid_that_a_statement_is_done(desk: Desk) -> None:
    """Another session of the analyst could watch noisegate.ledger, which has the charge of the next one in line."""
    desk.service = desk.open(desk.policy.model_copy(update={"pad_to": timedelta(seconds=2)}))
    most = LoadLimits().most_per_analyst

    async def charged() -> int:
        review = await desk.ledger.review("ada", desk.service.rulebook.budgets, desk.now, most_charges=2 * most)
        return len(review.charges)

    blocks = [block_of(UNITS, canonical=f"{number}") for number in range(most + 1)]
    asking = asyncio.gather(*(desk.ask(block) for block in blocks))
    await asyncio.sleep(1)  # they take some milliseconds
    assert await charged() == most
    await asking
    assert await charged() == most + 1


@pytest.mark.extended
async def test_a_look_at_a_time_zone_has_a_turn_too_and_does_not_begin_before_the_grid(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a connection, which is free as soon as a statement is done; what follows begins after it."""
    desk.service = desk.open(desk.policy.model_copy(update={"pad_to": timedelta(seconds=2)}))
    most, looked = LoadLimits().most_per_analyst, list[float]()
    genuine, start = desk.engine.clock_offsets, time.monotonic()

    async def look(
        zones: Sequence[str], seconds: Sequence[int], *, by_name: bool, timeout_seconds: float
    ) -> Mapping[str, list[int]]:
        looked.append(time.monotonic() - start)
        return await genuine(zones, seconds, by_name=by_name, timeout_seconds=timeout_seconds)

    monkeypatch.setattr(desk.engine, "clock_offsets", look)
    others = asyncio.gather(*(desk.ask(block_of(UNITS, canonical=f"{number}")) for number in range(most)))
    await asyncio.sleep(0.5)
    plan = replace(plan_of(block_of(UNITS)), zones=(ZoneUse("Asia/Tokyo", by_name=True, first=0, last=1),))
    await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=20)
    await others

    assert len(looked) == 1
    assert looked[0] >= 2


async def test_a_limit_before_the_first_point_is_refused_and_costs_nothing(desk: Desk) -> None:
    desk.service = desk.open(desk.policy.model_copy(update={"pad_to": timedelta(seconds=2)}))
    with pytest.raises(BadSetting):
        await desk.ask(block_of(UNITS), seconds=1)
    assert await desk.spent() == (0, 0)


async def test_real_noise_is_added(desk: Desk) -> None:
    desk.service = WrittenService(
        with_written(Rulebook.of(desk.policy, desk.catalog, 0)),
        HandPlanner(),
        desk.engine,
        desk.ledger,
        noise=OpenDPNoise(),
        clock=lambda: desk.now,
    )
    loud = Measure("units", 1000, Decimal("0.001"))
    answers = {(await desk.ask(block_of(loud), reuse=False)).columns for _ in range(5)}

    assert len(answers) == 5


def test_tables_are_protected_by_name_and_schema(desk: Desk) -> None:
    def touches(name: str) -> bool:
        return desk.service.may_touch(Statement(Kind.QUERY, "", 0, (RelationName(None, name, 1),)))

    assert touches("orders") and not touches("products") and not touches("staff")
    assert desk.service.is_protected("public", "orders")
    assert not desk.service.is_protected("other", "orders")
    assert not desk.service.is_protected("public", "products")


async def test_an_analyst_pays_in_the_period_that_runs_now(desk: Desk) -> None:
    """By which sessions know what is no more to be told of cursors."""
    monthly = desk.policy.model_copy(update={"budget": desk.policy.budget.model_copy(update={"per": "month"})})
    service = desk.open(monthly)
    assert service.paid_in("ada") == ("month:2026-11", None)

    desk.now += timedelta(days=10)

    assert service.paid_in("ada") == ("month:2026-12", None)
