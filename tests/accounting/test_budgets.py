"""Budgets and periods: what is new when, and the words of a refusal."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.accounting.accountant import Limit, Totals
from rules.accounting.budgets import Budgets, Change, Per, RunningPeriod, check_fits, period_of
from rules.mechanisms.cost import Mechanism
from rules.refusal import BudgetSpent

NEW_YEAR = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("per", "zone", "period"),
    [
        ("ever", "UTC", "ever"),
        ("day", "UTC", "day:2026-12-31"),
        ("day", "Europe/Berlin", "day:2027-01-01"),
        ("month", "Europe/Berlin", "month:2027-01"),
        ("week", "UTC", "week:2026-53"),
    ],
)
def test_a_period_begins_at_midnight_of_the_stated_zone(per: Per, zone: str, period: str) -> None:
    assert period_of(NEW_YEAR, Budgets(Limit(Decimal(1)), {}, per, zone)) == period


@given(moments=st.lists(st.datetimes(timezones=st.just(UTC)), min_size=1, max_size=6))
def test_a_clock_set_back_never_reopens_a_period(moments: list[datetime]) -> None:
    budgets, latest = Budgets(Limit(Decimal(1)), {}, "day"), ""
    for moment in moments:
        following = period_of(moment.replace(year=2000 + moment.year % 100), budgets, latest)
        assert following >= latest
        latest = following


@given(
    st.lists(st.integers(-40 * 24 * 60, 40 * 24 * 60), min_size=1, max_size=20),
    st.sampled_from(("ever", "day", "week", "month")),
    st.sampled_from(("UTC", "Europe/Berlin", "America/Havana", "America/Asuncion", "Asia/Beirut", "Pacific/Apia")),
)
def test_the_running_period_is_that_of_the_moment_wherever_the_clock_goes(
    minutes: list[int], per: Per, zone: str
) -> None:
    running, budgets = RunningPeriod(), Budgets(Limit(Decimal(1)), {}, per, zone)

    for minute in minutes:
        for base in (datetime(2024, 3, 31, tzinfo=UTC), datetime(2024, 11, 3, tzinfo=UTC)):
            moment = base + timedelta(minutes=minute)
            assert running.at(moment, budgets) == period_of(moment, budgets)


def test_a_change_of_the_period_s_length_starts_a_period_of_the_new_length() -> None:
    monthly = Budgets(Limit(Decimal(1)), {}, "month")
    assert period_of(NEW_YEAR, monthly, "week:2027-01") == "month:2026-12"


def paying(before: str, after: str) -> Change:
    return Change(Totals().plus([Mechanism.pure(Decimal(before))]), Totals().plus([Mechanism.pure(Decimal(after))]))


def test_both_accounts_must_have_room_and_strangers_have_none() -> None:
    budgets = Budgets(Limit(Decimal(2)), {"ada": Limit(Decimal(1))}, "month")

    check_fits("ada", paying("0.5", "1"), paying("1.5", "2"), budgets, reused=False)
    with pytest.raises(BudgetSpent, match="your privacy budget this month"):
        check_fits("ada", paying("0.5", "1.1"), paying("1", "1.6"), budgets, reused=False)
    with pytest.raises(BudgetSpent, match="that all analysts share this month"):
        check_fits("ada", paying("0.5", "1"), paying("1.6", "2.1"), budgets, reused=False)
    with pytest.raises(BudgetSpent, match="your privacy budget"):
        check_fits("eve", paying("0", "0.1"), paying("0", "0.1"), budgets, reused=False)


def test_a_refusal_says_what_was_asked_and_what_is_left() -> None:
    budgets = Budgets(Limit(Decimal(2)), {"ada": Limit(Decimal(1))}, "month")
    with pytest.raises(BudgetSpent) as caught:
        check_fits("ada", paying("0.75", "1.25"), paying("0.75", "1.25"), budgets, reused=False)

    assert caught.value.detail == "ε 0.5 is needed, and ε 0.25 of 1 is left."
    assert caught.value.hint == (
        "SET noisegate.epsilon = 0.25 would fit. "
        "Answers that you have already received stay free while they are fresh. The budget renews every month."
    )


def test_less_is_offered_only_where_it_fits_both_accounts() -> None:
    budgets = Budgets(Limit(Decimal(2)), {"ada": Limit(Decimal(1))})
    for shared, offered in (("1.9004", "SET noisegate.epsilon = 0.0996 would fit. "), ("2", "")):
        with pytest.raises(BudgetSpent) as caught:
            check_fits("ada", paying("0.75", "1.25"), paying(shared, "2.5"), budgets, reused=False)
        assert caught.value.hint == f"{offered}Answers that you have already received stay free while they are fresh."


def test_a_first_sight_that_does_not_fit_says_how_a_fresh_answer_is_had() -> None:
    budgets = Budgets(Limit(Decimal(2)), {"ada": Limit(Decimal("0.5"))})
    with pytest.raises(BudgetSpent) as caught:
        check_fits("ada", paying("0", "1"), paying("0", "0"), budgets, reused=True)

    assert "noisegate.reuse = off" in caught.value.hint


def test_where_less_is_left_than_may_be_asked_for_the_hint_says_so() -> None:
    """To ask for less would be refused by the setting."""
    budgets = Budgets(Limit(Decimal(2)), {"ada": Limit(Decimal(1))}, "month", least=Decimal("0.001"))
    hints = []
    for before in ("0.9991", "0.9989"):
        with pytest.raises(BudgetSpent) as caught:
            check_fits("ada", paying(before, "1.1"), paying("0", "0"), budgets, reused=False)
        hints.append(caught.value.hint)

    assert hints[0].startswith(
        "The smallest charge of a statement is ε 0.001. SELECT noisegate.request(1, 'why') asks your DBA for more. "
        "Answers that you have already received stay free"
    )
    assert hints[1].startswith("SET noisegate.epsilon = 0.0011 would fit. ")


@pytest.mark.parametrize(("own", "all_together", "asks"), [("1", "1", True), ("1", "2", False), ("0.5", "2", False)])
def test_who_has_nothing_left_is_told_how_to_ask_for_more_where_there_is_more(
    own: str, all_together: str, asks: bool
) -> None:
    budgets = Budgets(Limit(Decimal(2)), {"ada": Limit(Decimal(1))}, "month")
    with pytest.raises(BudgetSpent) as caught:
        check_fits("ada", paying(own, "2"), paying(all_together, "3"), budgets, reused=False)

    assert ("noisegate.request(1, 'why') asks your DBA" in caught.value.hint) == asks


def test_what_gaussian_noise_may_still_ask_for_is_what_zcdp_grants() -> None:
    """Nothing is spent, and Σε would grant 4.9: the hint has to name an ε whose ρ fits."""
    limit = Limit(Decimal(5), Decimal("1e-6"))
    budgets = Budgets(limit, {"ada": limit}, is_pure=False)
    change = Change(Totals(), Totals().plus([Mechanism.concentrated(Decimal("4.9"))]))
    with pytest.raises(BudgetSpent) as caught:
        check_fits("ada", change, change, budgets, reused=False)

    offered = Mechanism.concentrated(Decimal(caught.value.hint.split()[3]))
    less = Change(Totals(), Totals().plus([offered]))
    check_fits("ada", less, less, budgets, reused=False)


def test_days_follow_each_other() -> None:
    budgets = Budgets(Limit(Decimal(1)), {}, "day")
    assert period_of(NEW_YEAR, budgets) < period_of(NEW_YEAR + timedelta(days=1), budgets)
