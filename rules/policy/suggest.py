"""Draft a first rules file from the catalog alone, and the changes that a file needs since the schema changed.

The draft uses what the catalog proves, and asks the DBA what it cannot know. It hides columns whose names tell who
somebody is, and asks for a range where one is needed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from rules.catalog import Catalog, Column, Table, TableName
from rules.frozen import frozen
from rules.policy.column_kind import identifies, kind_of, numbers_something, personal_columns
from rules.policy.exposure import Exposure
from rules.policy.finding import listed
from rules.policy.freeze import Seen, find_unseen
from rules.policy.json_schema import FIRST_LINE
from rules.policy.look_bins import ColumnLook, LookResult, column_look, rows_look, values_look
from rules.policy.model import Policy, table_name
from rules.policy.units import Way, find_ways, single_key, unit_line
from rules.values.types import equality, type_of

HEADER = (
    "# {unit_line}\n"
    + FIRST_LINE
    + """\
# A draft from the catalog of {database}: no row was read. Go through it from top to bottom; CAPITALS wait for you.
# Tables that are not named here do not exist for analysts.
database: ${{NOISEGATE_DATABASE}}
unit: {unit}
tables:
"""
)
FOOTER = """\
budget:                      # of all analysts together
  epsilon: 20
  delta: 1e-6                # shows groups that are found in the data too, once they are large; 0 shows none of them
  per: month                 # or day, week; ever is never renewed, and the only promise for a lifetime
# At ε 0.1 a group in a list of 10 needs about 54 units to be shown; "noisegate check" says it of each table.
defaults: {epsilon: 0.1, max_epsilon: 1}
analysts:
  ada: {password: "${ADA_VERIFIER}", epsilon: 5}   # "noisegate password" makes the verifier
"""
ROWS = "auto up to 100"
LOOK = "LOOK AT IT"  # no rule: a line that is taken as it is does not load


Looked = Mapping[tuple[TableName, str | None], LookResult]  # by table and column; None stands for the rows of a unit
_UNSEEN: Looked = MappingProxyType({})


def suggest_rules(catalog: Catalog, unit_table: TableName, looked: Looked = _UNSEEN, paid: str = "") -> str:
    """A rules file with the rows of `unit_table` as units, as YAML with comments.

    `looked` is what a private look has found, and `paid` says what it has cost.
    """
    unit = catalog.find_table(unit_table)
    if unit is None:
        close = get_close_matches(str(unit_table), [str(table.name) for table in catalog.tables], n=1)
        raise ValueError(f"there is no table {unit_table}" + (f"; did you mean {close[0]}?" if close else ""))
    if unit.kind not in ("table", "partitioned"):
        raise ValueError(f"{unit_table} is a {unit.kind}: name the table that has the units")
    if (key := single_key(unit)) is None:
        raise ValueError(f"{unit_table} has no primary key of one column, so its rows cannot be units")
    draft = RulesDraft.of(catalog, unit_table, find_ways(catalog, unit_table, key))
    line = unit_line(f"{unit_table}.{key}", len(draft.ways))
    header = HEADER.format(unit_line=line, database=catalog.database, unit=as_key(f"{unit_table}.{key}"))
    lines = [header.replace("no row was read.", f"{paid}.\n#", 1) if paid else header]
    for table in sorted(catalog.tables, key=draft.place):
        lines.extend(draft.lines(table, looked))
    return "".join(lines) + FOOTER


def looks_for(catalog: Catalog, policy: Policy, *, with_values: bool) -> list[ColumnLook]:
    """List what a private look would ask of the protected tables of a draft: wherever the draft itself has to ask."""
    column_looks: list[ColumnLook] = []
    for text, rules in policy.tables.items():
        table = catalog.find_table(table_name(text))
        if table is None or rules.public or rules.view or rules.unit is None:
            continue
        unit, of_units = rules.unit_step().column, policy.unit.rpartition(".")[0] == text
        if not table.is_unique((unit,)):
            column_looks.append(rows_look(table, policy))
        for column in own_columns(table, unit):
            if is_asked(column, table, of_units=of_units):
                values = values_look(table, column) if with_values else None
                column_looks += [look for look in (column_look(table, column), values) if look is not None]
    return column_looks


@frozen
class RulesDraft:
    """A draft of rules: the tables that lead to the units, and what leads to these."""

    catalog: Catalog
    unit_table: TableName
    ways: Mapping[TableName, Way]
    exposure: Exposure

    @classmethod
    def of(cls, catalog: Catalog, unit_table: TableName, ways: Mapping[TableName, Way]) -> "RulesDraft":
        columns = {name: way.unit.partition(" ->")[0] for name, way in ways.items()}
        unit = unit_table, ways[unit_table].unit
        return cls(catalog, unit_table, ways, Exposure(catalog, protected=ways, unit_columns=columns, unit=unit))

    def place(self, table: Table) -> tuple[bool, bool, bool, TableName]:
        """The units come first, then what is theirs, then the rest, and then its views."""
        is_view = table.kind in ("view", "materialized view")
        return table.name != self.unit_table, table.name not in self.ways, is_view, table.name

    def lines(self, table: Table, looked: Looked = _UNSEEN) -> Iterator[str]:
        """Yield what a draft says of one table, and why."""
        name = as_key(str(table.name))
        if (way := self.ways.get(table.name)) is not None:
            own = {column: look_result for (of, column), look_result in looked.items() if of == table.name}
            yield from _protected(name, table, way, own)
        elif "." in table.name.name:
            yield f"  # {name} is left out: a table with a dot in its name cannot be named here\n"
        elif table.kind == "view" and self._is_view_of_protected(table):
            read = ", ".join(map(str, table.sources))
            yield f"  # {name}: view     # of {read}: read as its text, protected as they are{remark(table)}\n"
        elif not self._is_part(table):
            yield from self._left_out(name, table)

    def _left_out(self, name: str, table: Table) -> Iterator[str]:
        """Nothing is given away unless the DBA says so; where anything speaks against it, it is not even proposed."""
        reasons, personal = self.exposure.reasons(table.name), personal_columns(table.columns, table)
        columns = listed([column.name for column in table.columns])
        if (found := self._find_unit(table)) is not None:
            unit, column, target = found
            why = f"IF {column} is {target}: no valid foreign key says so"
            yield f"  # {name}: {{unit: {unit}, rows_per_unit: {ROWS}}}     # {why}{remark(table)}\n"
        elif reasons:
            yield f"  # {name} is left out: {reasons[0].words}{remark(table)}\n"
        elif personal:
            yield f"  # {name} is left out: {', '.join(personal[:4])} may be about people{remark(table)}\n"
        elif doubts := self.exposure.doubts(table.name):
            yield f"  # {name}: {LOOK}     # {'; '.join(doubts[:2])}. Columns: {columns}{remark(table)}\n"
            for column in self.exposure.find_similar(table)[:1]:
                unit = f"{self.unit_table}.{self.ways[self.unit_table].unit}"
                yield f"  # {name}: {{unit: {as_key(column)}, rows_per_unit: {ROWS}}}     # IF {column} is {unit}\n"
        else:
            yield f"  # {name}: public     # IF no row of it is about people. Columns: {columns}{remark(table)}\n"

    def _find_unit(self, table: Table) -> tuple[str, str, str] | None:
        """The unit that a table seems to have, its column, and what this seems to hold: the key of the units rather."""
        indirect = None
        for column, pointer in self.exposure.find_links(table) if table.kind in ("table", "partitioned") else ():
            way, target = self.ways.get(pointer.table.name), f"{pointer.table.name}.{pointer.column.name}"
            own = table.find_column(column)
            equal = "none" if own is None else equality(type_of(own), type_of(pointer.column))
            if way is None or equal == "none":
                continue
            if way.unit == pointer.column.name and equal == "same":
                return column, column, f"{self.unit_table}.{self.ways[self.unit_table].unit}"
            if indirect is None and pointer.table.is_unique((pointer.column.name,)):
                indirect = f"{column} -> {target}", column, target
        return indirect

    def _is_view_of_protected(self, view: Table) -> bool:
        """Return whether a view reads protected tables alone, by other views too."""
        waiting, seen = list(view.sources), set(view.sources)
        while waiting:
            name = waiting.pop()
            table = self.catalog.find_table(name)
            if table is None or (name not in self.ways and table.kind != "view"):
                return False
            new = set() if name in self.ways else set(table.sources) - seen
            seen |= new
            waiting += new
        return bool(view.sources)

    def _is_part(self, table: Table) -> bool:
        """Return whether its rows are rows of a table that the draft speaks of already."""
        return table.kind == "partition" or any(member.name in self.ways for member in self.exposure.family(table)[1:])


def _protected(name: str, table: Table, way: Way, looked: Mapping[str | None, LookResult]) -> Iterator[str]:
    yield f"  {name}:     # {way.why}{remark(table)}\n    unit: {as_key(way.unit)}\n"
    if (rows := looked.get(None, LookResult()).rows) is not None:
        yield f"    rows_per_unit: {rows}   # by a private look: about 19 of 20 units have no more\n"
    elif not table.is_unique((way.unit,)):
        yield f"    rows_per_unit: {ROWS}   # the most rows of one unit that count: chosen privately, or a number\n"
    look_results = {column: look_result for column, look_result in looked.items() if column is not None}
    lines, are_rules = column_lines(table, way.unit.partition(" ->")[0], of_units=way.is_unit, looked_at=look_results)
    if lines:
        yield f"    {'' if are_rules else '# '}columns:\n"
        yield from lines


NOTHING = "# nothing: the rules fit the schema\n"


def suggest_changes(policy: Policy, catalog: Catalog, seen: Seen | None) -> str:
    """Lines to merge into a rules file, as YAML with comments; without a lock file all other tables are new."""
    return (
        "".join([*_gone(policy, catalog), *_appeared(policy, catalog, seen), *_others(policy, catalog, seen)])
        or NOTHING
    )


def _gone(policy: Policy, catalog: Catalog) -> Iterator[str]:
    for text, rules in policy.tables.items():
        table = catalog.find_table(table_name(text))
        if table is None:
            yield f"# take out {as_key(text)}: there is no such table any more\n"
            continue
        for name in rules.columns:
            if table.find_column(name) is None:
                yield f"# take out {as_key(text)}.columns.{as_key(name)}: there is no such column any more\n"


def _appeared(policy: Policy, catalog: Catalog, seen: Seen | None) -> Iterator[str]:
    """Columns that are hidden until the schema is locked again, and what may be said of them."""
    unseen = () if seen is None else find_unseen(policy, catalog, seen)
    for text in dict.fromkeys(late.table for late in unseen):
        table = catalog.find_table(table_name(text))
        yield f"  {as_key(text)}:\n"
        for late in (late for late in unseen if late.table == text):
            column = None if table is None else table.find_column(late.column)
            yield f"      # {late.column or 'the whole table'} {late.change}: hidden until noisegate lock\n"
            if table is not None and column is not None and not policy.tables[text].public:
                yield column_line(column, table, of_units=policy.unit == f"{text}.{_unit_column(policy)}")


def _others(policy: Policy, catalog: Catalog, seen: Seen | None) -> Iterator[str]:
    """Tables of which the rules say nothing, and which nobody has seen."""
    known = frozenset() if seen is None else frozenset(seen.others)
    unit_text, _, key = policy.unit.rpartition(".")
    unit = catalog.find_table(table_name(unit_text)) if unit_text else None
    if unit is None:
        return
    draft = RulesDraft.of(catalog, unit.name, find_ways(catalog, unit.name, key))
    for table in sorted(catalog.tables, key=draft.place):
        if policy.find_table(table.name) is None and str(table.name) not in known:
            yield from draft.lines(table)


def _unit_column(policy: Policy) -> str:
    return policy.unit.rpartition(".")[2]


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

    `looked_at` has the results of a private look at columns.
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
