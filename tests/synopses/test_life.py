"""The life of synopses over a real database and a real ledger: who is charged when, and what is shown then."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.execute.rulebook import Rulebook
from proxy.policy_in_force import Freeze
from proxy.synopses.fit_release import FitFailed, fitted_schema
from proxy.synopses.make import Maker, drop
from proxy.twin.synthetic import SyntheticSchema
from rules.accounting.store import KeptRelease, LedgerError, Release
from rules.catalog import TableName, TypeName
from rules.mechanisms.draw import Drawable, OpenDPNoise
from rules.policy.finding import Severity
from rules.policy.freeze import see
from rules.refusal import BudgetSpent, InnerFailure
from rules.synopses.check import check_whole, hide_since
from rules.synopses.plan import SynopsisPlan
from tests.synopses.stage import RULES, SYNOPSIS, Shown, SynopsisStage, synopsis_stage


class BrokenNoise(OpenDPNoise):
    """A machine that dies while it draws."""

    def draw(self, noise: Drawable, count: int) -> tuple[int, ...]:
        raise MemoryError


place = pytest.fixture(synopsis_stage)


async def test_it_is_made_once_and_a_restart_shows_the_same_for_nothing(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook())
    first = place.schema
    await place.shelf.follow(place.rulebook())
    await place.started().follow(place.rulebook())

    assert len(await place.charges()) == len(await place.charges("ada")) == len(await place.charges("bob")) == 1
    assert place.shown.times == 2, "what is shown already was shown again"
    assert place.schema.tables == first.tables
    assert place.schema.readers == ("ada", "bob")


async def test_accounts_pay_the_same_and_the_budget_of_all_once(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook())

    balances = {who: await place.ledger.balances(who, place.rulebook().budgets, place.now) for who in ("ada", "bob")}
    (ada, shared, _), (bob, _, _) = balances["ada"], balances["bob"]
    assert ada.spent == shared.spent
    assert Decimal("9.9") < ada.spent <= 10
    assert Decimal("9.9") < bob.spent <= 10


async def test_a_new_period_makes_it_anew_and_the_old_rows_stay_until_then(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook())
    first = place.schema
    place.now += timedelta(days=20)
    await place.shelf.follow(place.rulebook())

    assert len(await place.charges()) == 2
    assert place.schema.tables != first.tables
    assert place.schema.shape == first.shape


async def test_without_a_refresh_a_new_period_charges_nobody(place: SynopsisStage) -> None:
    rules = place.rulebook(RULES + SYNOPSIS.replace("refresh: month, ", ""))
    await place.shelf.follow(rules)
    place.now += timedelta(days=40)
    await place.shelf.follow(rules)
    await place.started().follow(rules)

    assert len(await place.charges()) == len(await place.charges("ada")) == 1
    assert place.schema.readers == ("ada", "bob")


async def test_the_newest_stays_in_a_new_period_also_where_an_older_one_was_cheaper(place: SynopsisStage) -> None:
    lasting = RULES + SYNOPSIS.replace("refresh: month, ", "")
    await place.shelf.follow(place.rulebook(lasting.replace("epsilon: 10,", "epsilon: 2,")))
    newest = await place.maker.make("explore", place.rulebook(lasting))
    await place.shelf.follow(place.rulebook(lasting))
    place.now += timedelta(days=40)
    shelf = place.started()
    await shelf.follow(place.rulebook(lasting))

    assert shelf.shown["explore"].release == newest.id


async def test_a_reader_who_comes_later_pays_before_it_is_readable(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook(RULES + SYNOPSIS.replace("refresh:", "analysts: [ada], refresh:")))
    assert list(place.schema.readers) == ["ada"]
    assert not await place.charges("bob")

    await place.shelf.follow(place.rulebook())

    assert place.schema.readers == ("ada", "bob")
    assert [charge.shape for charge in await place.charges("bob")] == ["synopsis explore"]
    assert len(await place.charges()) == 1


async def test_who_cannot_pay_is_left_out_and_the_others_read(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook((RULES + SYNOPSIS).replace("epsilon: 12", "epsilon: 3")))

    assert place.schema.readers == ("ada",)
    assert not await place.charges("bob")


async def test_a_budget_that_does_not_hold_it_runs_nothing(place: SynopsisStage) -> None:
    rules = place.rulebook((RULES + SYNOPSIS).replace("epsilon: 10,", "epsilon: 31,"))

    with pytest.raises(BudgetSpent):
        await place.maker.make("explore", rules)
    await place.shelf.follow(rules)

    assert not place.shown.schemas
    assert not await place.charges()


async def test_what_fails_after_its_charge_stays_charged_and_is_not_tried_again(place: SynopsisStage) -> None:
    place.maker = replace(place.maker, noise=BrokenNoise())
    with pytest.raises(InnerFailure):
        await place.maker.make("explore", place.rulebook())
    place.maker = replace(place.maker, noise=OpenDPNoise())
    shelf = place.started()
    await shelf.follow(place.rulebook())
    place.now += timedelta(hours=2)
    await shelf.follow(place.rulebook())

    assert not place.shown.schemas
    assert [charge.state for charge in await place.charges()] == ["failed"]
    assert not await place.charges("ada")


async def test_counts_that_the_ledger_does_not_take_stop_no_later_make(
    place: SynopsisStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(charge: int, releases: Sequence[Release]) -> None:
        raise LedgerError("the ledger is away")

    with monkeypatch.context() as patch:
        patch.setattr(place.ledger, "settle", away)
        with pytest.raises(LedgerError):
            await place.maker.make("explore", place.rulebook())

    assert await place.ledger.stops() == ()
    place.now += timedelta(days=31)
    await place.shelf.follow(place.rulebook())
    assert place.shown.schemas


async def test_two_makes_at_once_are_two_charges_and_the_newest_is_shown(place: SynopsisStage) -> None:
    one, two = await asyncio.gather(*(place.maker.make("explore", place.rulebook()) for _ in range(2)))
    await place.shelf.follow(place.rulebook())

    assert len(await place.charges()) == 2
    assert {one.id, two.id}
    assert place.shelf.shown["explore"].release == max(one.id, two.id)


async def test_two_proxies_that_find_it_due_at_once_make_it_once(place: SynopsisStage) -> None:
    shelves = [place.started() for _ in range(2)]
    for _ in range(2):
        await asyncio.gather(*(shelf.follow(place.rulebook()) for shelf in shelves))

    assert [await place.paid(who) for who in ("", "ada", "bob")] == [1, 1, 1]
    assert all(shelf.shown for shelf in shelves)


async def test_a_make_that_fails_before_its_charge_is_tried_again_after_an_hour_or_by_other_rules(
    place: SynopsisStage, caplog: pytest.LogCaptureFixture
) -> None:
    def failures() -> int:
        return sum("synopsis_failed" in record.getMessage() for record in caplog.records)

    costly = place.rulebook((RULES + SYNOPSIS).replace("epsilon: 10,", "epsilon: 31,"))
    for _ in range(4):
        await place.shelf.follow(costly)
        place.now += timedelta(seconds=10)
    assert failures() == 1
    place.now += timedelta(hours=1)
    await place.shelf.follow(costly)
    assert failures() == 2

    await place.shelf.follow(replace(place.rulebook(), generation=1))
    assert place.schema.state == "ready"


async def test_rows_that_cannot_be_fitted_are_tried_again_after_an_hour(
    place: SynopsisStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    async def fail(plan: SynopsisPlan, kept: KeptRelease, readers: tuple[str, ...], rulebook: Rulebook) -> None:
        tried.append(kept.id)
        raise FitFailed("there is no memory for them")

    with monkeypatch.context() as broken:
        broken.setattr("proxy.synopses.shelf.fitted_schema", fail)
        for _ in range(3):
            await place.shelf.follow(place.rulebook())
        place.now += timedelta(hours=1, seconds=1)
        await place.shelf.follow(place.rulebook())
    assert tried == [1, 1]

    place.now += timedelta(hours=1, seconds=1)
    await place.shelf.follow(place.rulebook())
    assert place.schema.state == "ready"
    assert len(await place.charges()) == len(await place.charges("ada")) == 1


@pytest.mark.parametrize("refresh", ["day", "month"])
async def test_a_midnight_that_the_clocks_show_twice_begins_one_period(place: SynopsisStage, refresh: str) -> None:
    """In Havana the first hour of 1 November 2026 came twice."""
    rules = (RULES + SYNOPSIS).replace("refresh: month", f"refresh: {refresh}")
    rulebook = place.rulebook(rules.replace("per: month}", "per: month, time_zone: America/Havana}"))
    place.now = datetime(2026, 11, 1, 4, 30, tzinfo=UTC)
    await place.shelf.follow(rulebook)
    place.now += timedelta(hours=1)
    await place.shelf.follow(rulebook)

    assert len(await place.charges()) == 1


async def test_other_columns_leave_the_rows_as_outdated_until_the_next_make(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook())
    first = place.schema
    other = place.rulebook(RULES + SYNOPSIS.replace("is_vip", "country"))
    await place.shelf.follow(other)

    assert place.schema.state == "outdated"
    assert place.schema.tables == first.tables
    await place.maker.make("explore", other)
    await place.shelf.follow(other)
    assert place.schema.state == "ready"
    assert "country" in place.schema.tables[0].columns


async def test_a_proxy_that_finds_one_made_by_other_rules_tells_so_once(
    place: SynopsisStage, caplog: pytest.LogCaptureFixture
) -> None:
    """As a new version does, where plans mean something else."""
    await place.shelf.follow(place.rulebook())
    other, later = place.rulebook(RULES + SYNOPSIS.replace("is_vip", "country")), place.started()
    for _ in range(2):
        await later.follow(other)

    assert sum("synopsis_outdated" in record.getMessage() for record in caplog.records) == 1
    assert len(await place.charges()) == 1


async def test_another_protection_takes_the_rows_away_at_once(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook())
    await place.shelf.withdraw(place.policy(RULES + SYNOPSIS))
    assert place.shown.schemas

    await place.shelf.withdraw(place.policy(RULES + SYNOPSIS + "group_size: 2\n"))
    await place.shelf.follow(place.rulebook(RULES + SYNOPSIS + "group_size: 2\n"))

    assert not place.shown.schemas
    assert len(await place.charges()) == 1


@pytest.mark.parametrize("step", ["make", "fit", "show"])
async def test_what_is_made_or_fitted_while_the_rules_change_is_shown_by_the_new_ones_alone(
    place: SynopsisStage, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Rows of another protection do not come back, and nobody is charged by a budget that holds no more."""
    of_pairs, poor = RULES + SYNOPSIS + "group_size: 2\n", (RULES + SYNOPSIS).replace("epsilon: 12", "epsilon: 3")
    changed = poor if step == "make" else of_pairs
    make, fit, show = Maker.make, fitted_schema, Shown.show_synopsis

    async def make_slowly(maker: Maker, name: str, rulebook: Rulebook, *, once_since: datetime | None) -> KeptRelease:
        made = await make(maker, name, rulebook, once_since=once_since)
        await place.shelf.withdraw(place.policy(changed))
        return made

    async def fit_slowly(
        plan: SynopsisPlan, kept: KeptRelease, readers: tuple[str, ...], rulebook: Rulebook
    ) -> SyntheticSchema:
        fitted = await fit(plan, kept, readers, rulebook)
        await place.shelf.withdraw(place.policy(changed))
        return fitted

    async def show_slowly(shown: Shown, schema: SyntheticSchema) -> None:
        await show(shown, schema)
        await place.shelf.withdraw(place.policy(changed))

    with monkeypatch.context() as slow:
        if step == "make":
            slow.setattr(Maker, "make", make_slowly)
        elif step == "fit":
            slow.setattr("proxy.synopses.shelf.fitted_schema", fit_slowly)
        else:
            slow.setattr(Shown, "show_synopsis", show_slowly)
        await place.shelf.follow(place.rulebook())
    assert not place.shown.schemas
    assert step != "make" or not await place.charges("bob")

    await place.shelf.follow(place.rulebook(changed))
    assert step != "make" or place.schema.readers == ("ada",)


async def test_without_its_rules_it_is_gone(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook())
    await place.shelf.follow(place.rulebook(RULES))

    assert not place.shown.schemas


async def test_a_drop_takes_the_rows_away_for_nothing_until_the_next_make(place: SynopsisStage) -> None:
    assert not await drop("explore", place.rulebook(), place.ledger, place.now), "nothing was made"
    await place.shelf.follow(place.rulebook())
    spent = (await place.ledger.balances("ada", place.rulebook().budgets, place.now))[:2]

    assert await drop("explore", place.rulebook(), place.ledger, place.now)
    await place.shelf.follow(place.rulebook())
    assert not place.shown.schemas
    await place.started().follow(place.rulebook())
    assert not place.shown.schemas, "after a restart it is there again"
    assert not await drop("explore", place.rulebook(), place.ledger, place.now)
    assert (await place.ledger.balances("ada", place.rulebook().budgets, place.now))[:2] == spent

    await place.maker.make("explore", place.rulebook())
    await place.shelf.follow(place.rulebook())
    assert place.schema.state == "ready"


async def test_what_was_dropped_is_made_again_by_its_refresh(place: SynopsisStage) -> None:
    await place.shelf.follow(place.rulebook())
    await drop("explore", place.rulebook(), place.ledger, place.now)
    await place.shelf.follow(place.rulebook())
    assert not place.shown.schemas

    place.now += timedelta(days=20)
    await place.shelf.follow(place.rulebook())

    assert place.schema.state == "ready"


async def test_without_delta_it_is_paid_as_epsilon(place: SynopsisStage) -> None:
    rules = (RULES + SYNOPSIS).replace(", delta: 1e-6", "").replace(", delta: 1e-9", "")
    await place.shelf.follow(place.rulebook(rules))

    ((charge,),) = [await place.charges()]
    assert [mechanism.epsilon for mechanism in charge.fresh] == [Decimal(10)]
    assert place.schema.epsilon == 10


async def test_what_rests_on_a_column_that_is_hidden_is_hidden_with_it(place: SynopsisStage) -> None:
    """Or a column whose type somebody alters keeps all of its table from being answered, and a proxy from starting."""
    cube = "  daily: {epsilon: 1, table: orders, cube: [customers.city]}\n"
    cube += "  other: {epsilon: 1, table: orders, cube: [status]}\n"
    rules = place.policy(RULES + SYNOPSIS.replace("synopses: {", "synopses:\n  ").replace("}}}", "}}") + cube)
    customers = place.catalog.find_table(TableName("public", "customers"))
    assert customers is not None
    columns = [
        replace(column, type=TypeName("varchar(60)", "varchar")) if column.name == "city" else column
        for column in customers.columns
    ]
    tables = [replace(table, columns=tuple(columns)) if table is customers else table for table in place.catalog.tables]
    altered, seen = replace(place.catalog, tables=tuple(tables)), see(rules, place.catalog)

    shown = hide_since(rules, altered, seen)

    assert list(shown.synopses) == ["other"]
    assert not [finding for finding in check_whole(shown, altered) if finding.severity is Severity.ERROR]
    assert hide_since(rules, place.catalog, seen) == rules
    freeze = Freeze(Path("rules.yaml"), seen)
    assert [finding.path for finding in freeze.resting(rules, altered)] == ["synopses.explore", "synopses.daily"]
