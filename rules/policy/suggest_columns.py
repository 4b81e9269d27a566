"""Draft the rules of columns: hidden where a name tells who somebody is, a question where a range is needed."""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from rules.catalog import Column, Table
from rules.policy.column_kind import identifies, kind_of, numbers_something
from rules.policy.look_bins import LookResult

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*( -> [A-Za-z_][A-Za-z0-9_.]*)?")
_MOST_LISTED = 20
_NOTHING: Mapping[str, LookResult] = MappingProxyType({})
_TEXT = re.compile(r"'((?:[^']|'')*)'::[a-z ]+")
_IS_ONE_OF = re.compile(
    r"""CHECK \(\(\(?(?:\w+|"[^"]+")\)?(?:::text)? = ANY \(\(?ARRAY\[((?:'(?:[^']|'')*'::[a-z ]+(?:, )?)+)\]\)?"""
    r"(?:::text\[\])?\)\)\)"
)
_WORDS_OF_YAML = frozenset(("true", "false", "null", "public", "view", "hidden"))


def as_key(text: str) -> str:
    """A name as YAML reads it back.

    Example:
        >>> as_key("orders"), as_key("order_id -> orders.id"), as_key("Order Details")
        ('orders', 'order_id -> orders.id', '"Order Details"')
    """
    return text if _PLAIN.fullmatch(text) and text not in _WORDS_OF_YAML else json.dumps(text, ensure_ascii=False)


def remark(of: Table | Column) -> str:
    """Return what the database's own comment says, as the end of one of ours."""
    words = " ".join((of.comment or "").split())
    return f" ({words[:80]}{'…' if len(words) > 80 else ''})" if words else ""


def column_lines(
    table: Table, unit: str, *, of_units: bool, looked_at: Mapping[str, LookResult] = _NOTHING
) -> tuple[list[str], bool]:
    """A line for each column of which there is something to say, and whether any of them is a rule already.

    `looked_at` is what a private look has told of columns.
    """
    columns = own_columns(table, unit)
    rules = {name: text for name, look_result in looked_at.items() if (text := _looked_up(look_result))}
    lines = [
        line for column in columns if (line := column_line(column, table, rules.get(column.name), of_units=of_units))
    ]
    return lines, bool(rules) or any(identifies(column, table, of_units=of_units) for column in columns)


def own_columns(table: Table, unit: str) -> list[Column]:
    """The columns that are no keys, and not the unit's."""
    keys = {column for key in table.keys if key.primary for column in key.columns}
    keys |= {column for key in table.foreign_keys for column in key.columns} | {unit}
    return [column for column in table.columns if column.name not in keys]


def is_asked(column: Column, table: Table, *, of_units: bool) -> bool:
    """Return whether a draft asks for a range or a list of a column, so that a look may answer."""
    if identifies(column, table, of_units=of_units) or column.generated == "v":
        return False
    comment = _rest_of_line(column, table)
    return "LEAST" in comment or "FIRST-DAY" in comment or "[A, B, C]" in comment


def _looked_up(look_result: LookResult) -> str:
    if look_result.values:
        return f"{{values: [{', '.join(json.dumps(value, ensure_ascii=False) for value in look_result.values)}]}}"
    return "" if look_result.lower is None else f"{{lower: {look_result.lower}, upper: {look_result.upper}}}"


def column_line(column: Column, table: Table, bounds: str | None = None, *, of_units: bool) -> str:
    """Return what a draft says of one column; "" where there is nothing to say."""
    name = as_key(column.name)
    if bounds is not None:
        return f"      {name}: {bounds}     # {column.type.sql}: by a private look{remark(column)}\n"
    if identifies(column, table, of_units=of_units):
        return f"      {name}: hidden     # may identify a person{remark(column)}\n"
    if column.generated == "v":
        return f"      # {name} does not exist for analysts: it is computed when it is read, which can fail on a row\n"
    comment = _rest_of_line(column, table)
    return f"      # {name}{comment}{remark(column)}\n" if comment else ""


def _rest_of_line(column: Column, table: Table) -> str:
    """Return what follows a column's name: what is known of it, or what is asked."""
    kind, type_name = kind_of(column.type), column.type.sql
    own = (check for check in table.checks if column.name in check.columns)
    checked = [check.definition for check in (*own, *column.checks) if check.proves]
    by_check = f", unless this CHECK says enough: {checked[0].removeprefix('CHECK ')}" if checked else ""
    computed = ", computed from other columns" if column.generated == "s" else ""
    if column.type.labels:
        shown = ", ".join(column.type.labels[:8])
        return f": its groups are known: {shown}{', …' if len(column.type.labels) > 8 else ''}"
    comment = f"     # {type_name}{computed}"
    match kind:
        case "integer" | "number" | "float" if not numbers_something(column, table):
            return f": {{lower: LEAST, upper: MOST}}{comment}: bounds are needed to sum it{by_check}"
        case "date" | "timestamp":
            return f": {{lower: FIRST-DAY, upper: LAST-DAY}}{comment}: with bounds, groups by month need no δ{by_check}"
        case "text" if listed := _listed(column, table):
            return f": {{values: [{', '.join(map(as_key, listed))}]}}{comment}: the values that its CHECK lets in"
        case "text":
            return f": {{values: [A, B, C]}}{comment}: to group by it without δ; or hidden{by_check}"
    return ""


def _listed(column: Column, table: Table) -> list[str]:
    """The texts of a CHECK (column = ANY (ARRAY[…])), as IN is printed; none where no CHECK is just that.

    Example:
        >>> from rules.catalog import Check, TableName, TypeName
        >>> sex = Column("sex", TypeName("text", "text"), 1, True)
        >>> check = Check("c", "CHECK ((sex = ANY (ARRAY['f'::text, 'm'::text])))", ("sex",))
        >>> _listed(sex, Table(TableName("public", "people"), "table", (sex,), checks=(check,)))
        ['f', 'm']
    """
    own = (check for check in table.checks if check.columns == (column.name,))
    for check in (*own, *column.checks):
        match = _IS_ONE_OF.fullmatch(check.definition) if check.proves else None
        if match is not None:
            texts = [text.replace("''", "'") for text in _TEXT.findall(match[1])]
            return texts if len(texts) <= _MOST_LISTED else []
    return []
