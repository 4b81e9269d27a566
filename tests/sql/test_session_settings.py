"""Settings of ours are read strictly."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.twin.own_objects import SETTINGS as ASKED
from rules.refusal import BadSetting, UnknownSetting
from rules.sql.session_settings import LEAST_EPSILON, SETTINGS, SettingLimits, check_setting, read_settings
from rules.sql.system_views import setting_rows

LIMITS = SettingLimits(epsilon=Decimal("0.1"), max_epsilon=Decimal(1), delta=Decimal(0))


@given(st.one_of(st.text(), st.decimals().map(str), st.floats().map(repr), st.integers().map(str)))
def test_an_epsilon_that_is_accepted_is_finite_and_within_the_rules(text: str) -> None:
    try:
        epsilon = read_settings({"noisegate.epsilon": text}, LIMITS).epsilon
    except BadSetting:
        return
    assert epsilon.is_finite()
    assert LEAST_EPSILON <= epsilon <= LIMITS.max_epsilon


@pytest.mark.parametrize("text", ["0.5", " 0.5 ", "5e-1", ".5", "+0.50"])
def test_numbers_are_written_in_many_ways(text: str) -> None:
    assert read_settings({"noisegate.epsilon": text}, LIMITS).epsilon == Decimal("0.5")


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-0.1",
        "NaN",
        "nan",
        "Infinity",
        "1e-320",
        "1e308",
        "1.0001",
        "1,5",
        "0x1",
        "1_0",
        "١",
        "1e9999",
        "on",
        f"0.1{'0' * 60_000}1",
    ],
)
def test_what_is_no_sensible_epsilon_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        read_settings({"noisegate.epsilon": text}, LIMITS)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("0.0009", "SET noisegate.epsilon = 0.001 gives the smallest charge that the rules file allows."),
        ("2", "SET noisegate.epsilon = 1 gives the least noise that the rules file allows."),
    ],
)
def test_an_epsilon_outside_the_rules_is_told_the_nearest_inside(text: str, hint: str) -> None:
    """Charges of next to nothing would make the ledger grow for as long as somebody likes to ask."""
    limits = replace(LIMITS, min_epsilon=Decimal("0.001"))
    with pytest.raises(BadSetting) as caught:
        check_setting("noisegate.epsilon", text, limits)

    assert str(caught.value) == "noisegate.epsilon must be a number from 0.001 to 1"
    assert caught.value.hint == hint
    check_setting("noisegate.epsilon", hint.split()[3], limits)


@pytest.mark.parametrize("text", ["", " ", None])
def test_what_was_never_set_or_was_reset_is_what_the_rules_say(text: str | None) -> None:
    settings = read_settings(
        {"noisegate.epsilon": text, "noisegate.rows_per_unit": text, "noisegate.reuse": text}, LIMITS
    )

    assert (settings.epsilon, settings.rows_per_unit, settings.reuse) == (Decimal("0.1"), None, True)


@pytest.mark.parametrize("name", ["noisegate.rows_per_unit", "noisegate.groups_per_unit"])
@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "99999999", "1000001"])
def test_bounds_are_whole_numbers_from_one(name: str, text: str) -> None:
    with pytest.raises(BadSetting):
        check_setting(name, text, LIMITS)


@pytest.mark.parametrize(("text", "is_on"), [("on", True), ("OFF", False), ("0", False), ("yes", True)])
def test_switches_are_spelled_as_in_postgresql(text: str, is_on: bool) -> None:
    assert read_settings({"noisegate.reuse": text}, LIMITS).reuse is is_on


def test_a_switch_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(BadSetting):
        check_setting("noisegate.notices", "maybe", LIMITS)


@pytest.mark.parametrize(("text", "level"), [("", "0.95"), ("0.9", "0.9"), (" .5 ", "0.5"), ("0.999", "0.999")])
def test_error_bars_have_the_confidence_that_was_set(text: str, level: str) -> None:
    assert read_settings({"noisegate.confidence": text}, LIMITS).confidence == Decimal(level)


@pytest.mark.parametrize("text", ["0.49", "1", "95", "95%", "NaN", "-0.9", "0.9999", "high"])
def test_a_confidence_that_bars_cannot_have_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match="confidence"):
        check_setting("noisegate.confidence", text, LIMITS)


@pytest.mark.parametrize(
    ("text", "rows", "is_auto"),
    [("40", 40, False), ("auto", None, True), (" AUTO up to 40", 40, True), ("", None, None), (None, None, None)],
)
def test_rows_are_bounded_by_a_number_a_choice_or_both(
    text: str | None, rows: int | None, is_auto: bool | None
) -> None:
    settings = read_settings({"noisegate.rows_per_unit": text}, LIMITS)

    assert (settings.rows_per_unit, settings.rows_auto) == (rows, is_auto)


@pytest.mark.parametrize(("text", "is_auto"), [("auto", True), ("Off", False), ("", None), (None, None)])
def test_sums_are_bounded_by_a_choice_or_not(text: str | None, is_auto: bool | None) -> None:
    assert read_settings({"noisegate.sum_per_unit": text}, LIMITS).sums_auto is is_auto


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows_per_unit", "auto up to 0"),
        ("rows_per_unit", "auto up to"),
        ("rows_per_unit", "auto 5"),
        ("rows_per_unit", "auto up to 1 or 2"),
        ("sum_per_unit", "5"),
        ("sum_per_unit", "on"),
    ],
)
def test_what_is_no_bound_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadSetting, match=f"noisegate.{name} must be"):
        check_setting(f"noisegate.{name}", text, LIMITS)


@pytest.mark.parametrize(("text", "mark"), [("true", "on"), ("YES", "on"), ("1", "on"), ("0", "off"), ("Cell", "cell")])
def test_a_mark_is_switched_as_other_settings_are(text: str, mark: str) -> None:
    assert read_settings({"noisegate.mark": text}, LIMITS).mark == mark


def test_marks_of_rows_are_refused_with_what_does_it_better() -> None:
    with pytest.raises(BadSetting, match=r"noisegate\.mark takes off, on or cell") as refusal:
        check_setting("noisegate.mark", "rows", LIMITS)

    assert refusal.value.sqlstate == "22023"
    assert refusal.value.hint == "noisegate.empty_groups = hide leaves out groups that are only noise."


def test_empty_groups_are_hidden_unless_the_session_or_else_the_rules_say_otherwise() -> None:
    shown_by_rules = replace(LIMITS, empty_groups="show")

    assert read_settings({}, LIMITS).empty_groups == "hide"
    assert read_settings({}, shown_by_rules).empty_groups == "show"
    assert read_settings({"noisegate.empty_groups": " Hide "}, shown_by_rules).empty_groups == "hide"
    assert read_settings({"noisegate.empty_groups": "SHOW"}, LIMITS).empty_groups == "show"
    with pytest.raises(BadSetting, match=r"noisegate\.empty_groups takes hide or show"):
        check_setting("noisegate.empty_groups", "on", LIMITS)


def test_every_setting_has_a_row_of_noisegate_settings() -> None:
    rows = setting_rows({}, LIMITS)

    assert [row.split('"')[1] for row in rows] == list(SETTINGS)


def test_a_setting_that_there_is_not_is_refused_with_the_nearest_that_there_is() -> None:
    with pytest.raises(UnknownSetting) as refusal:
        check_setting("noisegate.epsilno", "1", LIMITS)

    assert refusal.value.hint == 'Did you mean "noisegate.epsilon"?'


def test_a_setting_that_is_near_to_none_is_refused_with_all_that_there_are() -> None:
    with pytest.raises(UnknownSetting) as refusal:
        check_setting("noisegate.bogus", "1", LIMITS)

    assert refusal.value.hint == f"The settings are {', '.join(SETTINGS)}."


@given(st.one_of(st.text(), st.decimals().map(str), st.decimals().map("{}%".format), st.integers().map("{} %".format)))
def test_an_error_that_is_accepted_is_above_zero_and_a_share_is_less_than_all(text: str) -> None:
    try:
        within = read_settings({"noisegate.within": text}, LIMITS).within
    except BadSetting:
        return
    assert within is None or within.amount > 0
    assert within is None or within.amount < 1 or not within.is_relative
    assert within is not None or text.strip().lower() in ("", "off")
    assert within is None or math.isfinite(float(within.amount) ** 2)  # as the errors of means are computed


@pytest.mark.parametrize("text", ["1e309", "1e999", "1e101", "9" * 400, "Infinity", "NaN", "-1e309", "1e309%"])
def test_an_error_beyond_any_answer_is_refused_when_it_is_set(text: str) -> None:
    with pytest.raises(BadSetting, match="takes a number above 0"):
        check_setting("noisegate.within", text, LIMITS)


def test_every_setting_is_asked_of_the_session() -> None:
    assert set(SETTINGS) <= set(ASKED)


@pytest.mark.parametrize(
    ("text", "expected"), [("", "1e-9"), ("0", "0"), ("1e-10", "1e-10"), ("1e-8", None), ("-1", None)]
)
def test_a_delta_is_at_most_that_of_the_rules(text: str, expected: str | None) -> None:
    limits = replace(LIMITS, delta=Decimal("1e-9"))
    if expected is None:
        with pytest.raises(BadSetting):
            read_settings({"noisegate.delta": text}, limits)
    else:
        assert read_settings({"noisegate.delta": text}, limits).delta == Decimal(expected)
