"""Conditions that the twin tries on the listed values of keys, so that only groups that rows can be in are listed.

WHERE city LIKE 'B%' GROUP BY city asks for Berlin and Bremen: any other city would be a group of nobody. Only what
surely means there what it means on the real database is tried, which may have another order of texts and other letters.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from rules.algebra.cover import is_of_days, is_over
from rules.algebra.joint_domains import is_of_rows
from rules.algebra.narrow import is_told
from rules.catalog import DatabaseLocale
from rules.functions.casts import cast_to
from rules.functions.function import EvalContext
from rules.planner.compared_keys import is_compared
from rules.values.domain import Values
from rules.values.expression import Apply, Column, Expression, columns_in, condition, ids_in
from rules.values.types import DATE

_ORDERED: Final = frozenset(("<", "<=", ">", ">=", "greatest", "least"))
_OF_DAYS: Final = {"<": "<=", "<=": "<=", ">": ">=", ">=": ">=", "=": "="}
_OF_UNEVEN_DAYS: Final = {"<=": "({0} <= {1} + 2)", ">=": "({0} + 2 >= {1})"}  # back by one, and one skipped
_OF_LETTERS: Final = frozenset(
    "lower upper initcap ilike ~~* !~~* ~ ~* regexp_like regexp_replace regexp_substr regexp_count substring".split()
)
_OTHER_CASES: Final = ("tr", "az", "lt")  # languages in which I is no capital of i, or i keeps its dot


def tried(
    conditions: Iterable[Expression], keys: tuple[Expression, ...], columns: Iterable[Column], locale: DatabaseLocale
) -> Iterator[Expression]:
    """Those over such columns of the keys alone that say more than is known of the keys without them."""
    listed = {column.id: column for column in columns if column.type.base != "bpchar"}  # whose blanks count at times
    for holding in conditions:
        if not is_over(holding, listed.keys()) or _is_known(holding, keys):
            continue
        own = [listed[number] for number in ids_in(holding)]
        are_of_days = all(is_of_days(holding, column.id) for column in own if column.type.is_time)
        if are_of_days and _is_alike(holding, own, locale):
            yield holding


def is_followed(holding: Expression, keys: tuple[Expression, ...], locale: DatabaseLocale) -> bool:
    """Return whether a list of keys leaves out what a condition over their columns does."""
    columns = [column for key in keys for column in columns_in(key)]
    return not ids_in(holding) or _is_known(holding, keys) or any(tried((holding,), keys, columns, locale))


def of_days(holding: Expression, setting: EvalContext) -> Expression | None:
    """Return what a comparison of two moments says of their days: an order after a sign-up is on its day, or later.

    Where the clocks of a zone are put back past midnight, or skip a day, what is later may have an earlier date.
    """
    match holding:
        case Apply(name=name, sql=sql, arguments=(one, other)) if name in _OF_DAYS and sql == f"({{0}} {name} {{1}})":
            if not (one.type.is_time and other.type.is_time and ids_in(one) and ids_in(other)):
                return None
            sign, days = _OF_DAYS[name], [cast_to(moment, DATE, setting) for moment in (one, other)]
            if setting.time_zone == "UTC" or "timestamptz" not in (one.type.kind, other.type.kind):
                return condition(sign, f"({{0}} {sign} {{1}})", *days)
            return None if sign == "=" else condition(sign, _OF_UNEVEN_DAYS[sign], *days)
    return None


def means_the_same(expression: Expression, columns: list[Column], locale: DatabaseLocale) -> bool:
    """Return whether the twin makes the same of these columns: it may sort texts, or fold their case, otherwise."""
    return locale.is_twins or _is_alike(expression, columns, locale)


def _is_known(condition: Expression, keys: tuple[Expression, ...]) -> bool:
    """Return whether a condition stands in the domain of a column, in that of the one key, or in a list of rows."""
    return is_told(condition) or is_of_rows(condition) or (len(keys) == 1 and is_compared(keys[0], condition))


def _is_alike(condition: Expression, columns: list[Column], locale: DatabaseLocale) -> bool:
    """Return whether an expression is the same of the same listed values wherever it is computed."""
    calls = list(_calls(condition))
    if any(call.name in _ORDERED and any(each.type.kind == "text" for each in call.arguments) for call in calls):
        return False
    if _OF_LETTERS.isdisjoint(call.name for call in calls):
        return True
    names = (locale.collate, locale.ctype, locale.locale)
    return all(map(_has_plain_letters, columns)) and not any(name.lower().startswith(_OTHER_CASES) for name in names)


def _has_plain_letters(column: Column) -> bool:
    """Return whether all listed values have letters of English alone, whose case is the same in most languages.

    A label of an enum can be cast to text; what other types have for letters is PostgreSQL's own.
    """
    if column.type.kind not in ("text", "enum"):
        return True
    return isinstance(column.domain, Values) and all(str(item).isascii() for item in column.domain.items)


def _calls(expression: Expression) -> Iterator[Apply]:
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case Apply(arguments=arguments) as call:
                yield call
                waiting.extend(arguments)
