"""Tell why the rows of a public table may be about protected people: by keys, partitions, names, views.

A table is public because a DBA says so, and nothing else can know it; this word gives every row of it away. But the
catalog knows when that is likely to be a mistake: keys may stand on partitions only, on an inheritance child, two
tables away, or nowhere at all.
"""

from collections.abc import Iterable, Iterator, Mapping

from rules.catalog import Catalog, Column, ForeignKey, Table, TableName, TypeName
from rules.frozen import frozen, replace
from rules.policy.column_kind import (
    GENERIC,
    are_joinable,
    column_words,
    key_names,
    kind_of,
    noun_of,
    personal_columns,
    resembles,
    stands_in,
    words_of,
)
from rules.policy.finding import Finding, error, listed, nearest, note, warning
from rules.policy.model import Policy, TableRules, table_name

_DULL = ("_at", "_on", "_id")  # ends of names that say nothing of what a table is about


@frozen
class Reason:
    """One thing that speaks against a public table. Where its rows are protected ones, no words can outweigh it."""

    words: str
    same_rows: bool = False


@frozen
class Pointer:
    """A column by which rows are found: of a protected table, and how others call it."""

    table: Table
    column: Column
    anywhere: frozenset[str]
    at_end: frozenset[str]
    noun: str = ""

    @classmethod
    def to(cls, table: Table, column: Column) -> "Pointer":
        return cls(table, column, *key_names(column.name, table), noun_of(table))

    def is_meant_by(self, column: Column, words: tuple[str, ...]) -> bool:
        """Return whether a column of another table is called like it; what is less clear must have its type as well."""
        alike = are_joinable(column.type, self.column.type) and (
            "".join(words) == self.noun or stands_in(self.at_end, words, at_end=True)
        )
        return alike or stands_in(self.anywhere, words, at_end=False)

    def may_be_meant_by(self, column: Column, words: tuple[str, ...]) -> bool:
        """Return whether a name ends in what a row of this table is called: billing_customer, or units_on_order."""
        return are_joinable(column.type, self.column.type) and stands_in(frozenset({self.noun}), words, at_end=True)


class Exposure:
    """The protected tables, and what leads there."""

    def __init__(
        self,
        catalog: Catalog,
        protected: Iterable[TableName],
        public: Iterable[TableName] = (),
        unit_columns: Mapping[TableName, str] | None = None,
        hidden: Mapping[TableName, frozenset[str]] | None = None,
        unit: tuple[TableName, str] | None = None,
    ) -> None:
        self._catalog, self._protected, self._public = catalog, frozenset(protected), frozenset(public)
        self._hidden = hidden or {}
        self._children: dict[TableName, list[Table]] = {}
        for table in catalog.tables:
            for parent in table.parents:
                self._children.setdefault(parent, []).append(table)
        self._pointers = list(self._pointers_to_protected(unit_columns or {}))
        self._telling: dict[TableName, str] = {}  # tables that the rules leave out and that tell of protected ones: why
        self._find_telling()
        self._led_to = self._find_led_to()
        self._unit = self._find_unit(unit)
        self._by_noun: dict[str, list[Pointer]] = {}
        for pointer in self._pointers:
            self._by_noun.setdefault(pointer.noun, []).append(pointer)
        self._names_of_left_out: dict[str, TableName] = {}  # how a column is called that holds the key of one of them
        self._left_out: dict[TableName, str] = {}  # tables that the rules leave out and that may be about people: why
        self._find_left_out()

    def reasons(self, name: TableName) -> tuple[Reason, ...]:
        """All that speaks against calling a table or view public, the surest first."""
        table = self._catalog.find_table(name)
        if table is None:
            return ()
        reasons = [*self._links(table), *self._personal(table)]
        if not reasons and table.kind in ("view", "materialized view"):
            words = f"the rows of a {table.kind} may come from protected tables, by functions too"
            reasons = [Reason(words)]
        return tuple({reason.words: reason for reason in reasons}.values())

    def doubts(self, name: TableName) -> tuple[str, ...]:
        """Signs that a table may be about people, without a proof."""
        table = self._catalog.find_table(name)
        is_read = table is not None and table.kind not in ("view", "materialized view")
        return tuple(dict.fromkeys((*self._own_doubts(table), *self._leads(table)))) if table and is_read else ()

    def find_similar(self, table: Table) -> list[str]:
        """Columns that may hold the unit, by their type and by a word of their name."""
        if self._unit is None or self._unit[0] is table:
            return []
        return [column.name for column in _unexplained(table) if resembles(column, *self._unit)]

    def family(self, table: Table) -> list[Table]:
        """A table, all its partitions and children, and all that any of these is a part of: where its rows may be."""
        below = self._below(table)
        above = {table.name: table for part in (table, *below) for table in self._catalog.ancestors_of(part)}
        known = {table.name, *(table.name for table in below)}
        return [table, *below, *(table for name, table in above.items() if name not in known)]

    def find_links(self, table: Table) -> Iterator[tuple[str, Pointer]]:
        """Columns that seem to hold a column of a protected table although no foreign key proves it, and that one.

        A foreign key that proves nothing, as rows of inheritance children do not follow it, is surer than any name.
        """
        for key in table.foreign_keys:
            target = self._catalog.find_table(key.target) if key.target in self._protected else None
            found = None if target is None or len(key.columns) > 1 else target.find_column(key.target_columns[0])
            if target is not None and found is not None:
                yield key.columns[0], Pointer.to(target, found)
        named = [(column, column_words(column.name, table)) for column in table.columns]
        for pointer in self._pointers:
            for column, words in named:
                if column.type.base != "array" and pointer.is_meant_by(column, words):
                    yield column.name, pointer

    def _below(self, table: Table) -> list[Table]:
        tables: dict[TableName, Table] = {}
        waiting = list(self._children.get(table.name, ()))
        while waiting:
            child = waiting.pop()
            if child.name not in tables:
                tables[child.name] = child
                waiting += self._children.get(child.name, ())
        return list(tables.values())

    def _find_telling(self) -> None:
        """Tables without rules count too, as long as they lead on: to whoever refers to them, they tell the same."""
        waiting = [table for table in self._catalog.tables if table.name not in self._protected | self._public]
        while telling := {
            table.name: why.words for table in waiting if (why := next(self._links(table), None)) is not None
        }:
            self._telling |= telling
            for name in telling:
                if (table := self._catalog.find_table(name)) is not None:
                    self._pointers += _pointers_to_keys(table)
            waiting = [table for table in waiting if table.name not in telling]

    def _links(self, table: Table) -> Iterator[Reason]:
        """All by which the rows of a table tell of protected ones."""
        if table.name in self._protected:
            return
        reasons = [*self._same_rows(table), *self._references(table), *self._sources(table)]
        reasons += [*self._names(table), *self._copies(table)]
        if not reasons:
            others = (other.name for other in self.family(table)[1:] if other.name in self._telling)
            reasons = [Reason(f"it shares rows with {other}: {self._telling[other]}") for other in others]
        yield from reasons

    def _find_unit(self, unit: tuple[TableName, str] | None) -> tuple[Table, Column] | None:
        table = None if unit is None else self._catalog.find_table(unit[0])
        column = None if table is None or unit is None else table.find_column(unit[1])
        return None if table is None or column is None else (table, column)

    def _find_left_out(self) -> None:
        """Tables of people by their columns' names, tables that may be about units, and all that leads to these."""
        known = self._protected | self._public | self._telling.keys()
        waiting = [table for table in self._catalog.tables if table.name not in known]
        for table in waiting:
            if personal := personal_columns(table.columns, table):
                self._left_out[table.name] = f"{', '.join(personal[:2])} may be about people"
                names = (name for pointer in _pointers_to_keys(table) for name in pointer.anywhere)
                self._names_of_left_out |= dict.fromkeys(names, table.name)
        own = {table.name: why for table in waiting if (why := next(self._own_doubts(table), None)) is not None}
        self._left_out = own | self._left_out
        while found := {
            table.name: why
            for table in waiting
            if table.name not in self._left_out and (why := next(self._leads(table), None)) is not None
        }:
            self._left_out |= found

    def _leads(self, table: Table) -> Iterator[str]:
        for part in self.family(table):
            for key in part.foreign_keys:
                if key.target in self._left_out and key.target != table.name:
                    yield f"{key.columns[0]} leads to {key.target}: {self._left_out[key.target]}"

    def _own_doubts(self, table: Table) -> Iterator[str]:
        """Columns that no foreign key explains and whose names are alike to the units' key or to one of a table that
        the rules leave out; and rows that nothing tells apart."""
        similar = self.find_similar(table)
        for column in _unexplained(table):
            words = column_words(column.name, table)
            if column.name in similar:
                yield f"{column.name} has the type of {self._unit_name}, and a similar name"
            for noun in ("".join(words[start:]) for start in range(len(words))):
                pointers = (each for each in self._by_noun.get(noun, ()) if each.table is not table)
                if pointer := next((each for each in pointers if are_joinable(column.type, each.column.type)), None):
                    yield f"{column.name} ends like {pointer.table.name}.{pointer.column.name}"
            for run in ("".join(words[start:end]) for end in range(1, len(words) + 1) for start in range(end)):
                target = self._names_of_left_out.get(run, table.name)
                if target != table.name:
                    yield f"{column.name} is named like a key of {target}: {self._left_out[target]}"
        if self._unit is not None and not any(part.keys or part.foreign_keys for part in self.family(table)):
            alike = [column.name for column in table.columns if _is_alike(column.type, self._unit[1].type)]
            if alike:
                yield f"it has no key, and any of {listed(alike)} may be {self._unit_name} by its type"

    @property
    def _unit_name(self) -> str:
        return "" if self._unit is None else f"{self._unit[0].name}.{self._unit[1].name}"

    def _told_by(self, name: TableName) -> tuple[TableName, str] | None:
        """Find the protected table that a table tells of; or itself and why, where the rules say nothing of it."""
        table = self._catalog.find_table(name)
        names = [name] if table is None else [member.name for member in self.family(table)]
        protected = next((name for name in names if name in self._protected), None)
        if protected is not None:
            return protected, "which is protected"
        if name in self._telling:
            return name, f"of which the rules say nothing: {self._telling[name]}"
        return None

    def _pointers_to_protected(self, unit_columns: Mapping[TableName, str]) -> Iterator[Pointer]:
        """Keys of protected tables, and the columns that say whose row it is under a name of their own."""
        for name in sorted(self._protected):
            table = self._catalog.find_table(name)
            if table is None or table.sources:
                continue
            keys = {key.columns[0] for key in table.keys if len(key.columns) == 1}
            yield from _pointers_to_keys(table)
            column = table.find_column(unit_columns.get(name, ""))
            joined = "" if column is None else "".join(column_words(column.name, table))
            if column is not None and column.name not in keys and joined not in GENERIC:
                yield Pointer(table, column, frozenset(), frozenset({joined}))

    def _same_rows(self, table: Table) -> Iterator[Reason]:
        above = {other.name for other in self._catalog.ancestors_of(table)}
        for other in self.family(table)[1:]:
            words = "its rows are" if other.name in above else "among its rows are"
            if other.name in self._protected:
                yield Reason(f"{words} those of {other.name}, which is protected", same_rows=True)

    def _references(self, table: Table) -> Iterator[Reason]:
        family = self.family(table)
        known = {part.name for part in family} | self._public
        for part in family:
            it = "it" if part is table else f"{part.name}, of which it has rows,"
            for key in part.foreign_keys:
                if key.target not in known and (telling := self._told_by(key.target)) is not None:
                    yield Reason(f"{it} refers to {telling[0]}, {telling[1]}")

    def _sources(self, table: Table) -> Iterator[Reason]:
        for source in table.sources:
            if source not in self._public and (telling := self._told_by(source)) is not None:
                yield Reason(f"it reads {telling[0]}, {telling[1]}")

    def _names(self, table: Table) -> Iterator[Reason]:
        for column in table.columns:
            words = column_words(column.name, table)
            pointers = (pointer for pointer in self._pointers if pointer.table is not table)
            meant = next((pointer for pointer in pointers if pointer.is_meant_by(column, words)), None)
            if meant is not None:
                yield Reason(f'its column "{column.name}" is named like {meant.table.name}.{meant.column.name}')

    def _copies(self, table: Table) -> Iterator[Reason]:
        """A backup, a history, an export: it has most of what tells a protected table apart."""
        own = {(column.name.lower(), column.type.base) for column in table.columns}
        for name in sorted(self._protected - {table.name}):
            other = self._catalog.find_table(name)
            if other is None:
                continue
            columns = (*(key.columns for key in other.keys), *(key.columns for key in other.foreign_keys))
            linked = {column.lower() for texts in columns for column in texts}
            names = {
                (column.name.lower(), column.type.base) for column in other.columns if column.name.lower() not in linked
            }
            telling = {name for name in names if name[0] not in GENERIC and not name[0].endswith(_DULL)}
            common = sorted(shared for shared, _ in own & telling)
            if len(common) >= 3 and 2 * len(common) >= len(telling):
                yield Reason(f"it has columns of {name} ({', '.join(common[:3])}), like a copy of it")

    def _personal(self, table: Table) -> Iterator[Reason]:
        by = next((self._led_to[member.name] for member in self.family(table) if member.name in self._led_to), None)
        shown = [column for column in table.columns if column.name not in self._hidden.get(table.name, frozenset())]
        columns = personal_columns(shown, table)
        if columns and (by := by or self._named_by(table)):
            yield Reason(f"{by} refers to it, and it has {_listed(columns)}")

    def _named_by(self, table: Table) -> TableName | None:
        """A protected table with a column that is called like a key of this one, where no foreign key says so."""
        pointers = _pointers_to_keys(table)
        for name in sorted(self._protected - {table.name}):
            other = self._catalog.find_table(name)
            named = [] if other is None else [(column, column_words(column.name, other)) for column in other.columns]
            for column, words in named:
                if any(each.is_meant_by(column, words) or each.may_be_meant_by(column, words) for each in pointers):
                    return name
        return None

    def _find_led_to(self) -> dict[TableName, TableName]:
        """Find the protected table that foreign keys lead to, straight or through tables that the rules leave out."""
        table_names: dict[TableName, TableName] = {}
        waiting = [(name, name) for name in sorted(self._protected)]
        while waiting:
            here, origin = waiting.pop(0)
            table = self._catalog.find_table(here)
            targets = [] if table is None else [key.target for part in self.family(table) for key in part.foreign_keys]
            for target in targets:
                if target not in table_names and target not in self._protected:
                    table_names[target] = origin
                    if target not in self._public:
                        waiting.append((target, origin))
        return table_names


def _pointers_to_keys(table: Table) -> list[Pointer]:
    keys = {key.columns[0] for key in table.keys if len(key.columns) == 1}
    return [Pointer.to(table, column) for column in table.columns if column.name in keys]


def keys_with_partitions(table: Table, catalog: Catalog) -> tuple[ForeignKey, ...]:
    """The foreign keys of a table, and those that all its partitions have and it has not."""
    children = [child for child in catalog.children_of(table.name) if child.kind == "partition"]
    if table.partition_key is None or not children:
        return table.foreign_keys
    by_child = [
        {(key.columns, key.target, key.target_columns): key for key in keys_with_partitions(child, catalog)}
        for child in children
    ]
    own = {(key.columns, key.target, key.target_columns) for key in table.foreign_keys}
    common = [key for key in by_child[0] if key not in own and all(key in keys for keys in by_child)]
    joint = (replace(by_child[0][key], proves=all(keys[key].proves for keys in by_child)) for key in common)
    return (*table.foreign_keys, *joint)


def _unexplained(table: Table) -> list[Column]:
    """Columns of which no foreign key says what they hold, and that do not number the rows of this table."""
    own = {key.columns[0] for key in table.keys if key.primary and len(key.columns) == 1}
    known = {key.columns[0] for key in table.foreign_keys if len(key.columns) == 1}
    words = {*words_of(table.name.name), *GENERIC}
    known |= {name for name in own if set(column_words(name, table)) <= words}
    return [column for column in table.columns if column.name not in known]


def _is_alike(left: TypeName, right: TypeName) -> bool:
    """Return whether two types are of one kind: an amount is nobody's number, though they can be compared."""
    return are_joinable(left, right) and {kind_of(left), kind_of(right)} != {"integer", "number"}


def _listed(names: list[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    if len(quoted) == 1:
        return f"the personal column {quoted[0]}"
    return f"the personal columns {', '.join(quoted[:3])}" + (", …" if len(quoted) > 3 else "")


TRUSTED = "foreign: trusted says that all of them can always be read"


def exposure_of(policy: Policy, catalog: Catalog) -> Exposure:
    """Return what these rules protect, and what leads there."""
    names = {table_name(text): rules for text, rules in policy.tables.items()}
    unit_table, _, unit_column = policy.unit.rpartition(".")
    return Exposure(
        catalog,
        protected=(name for name, rules in names.items() if not rules.public),
        public=(name for name, rules in names.items() if rules.public),
        unit_columns={name: rules.unit_step().column for name, rules in names.items() if rules.unit},
        hidden={
            name: frozenset(column for column, column_rules in rules.columns.items() if column_rules.hidden)
            for name, rules in names.items()
        },
        unit=(table_name(unit_table), unit_column) if unit_table else None,
    )


_SAY_WHY = 'give it a unit, remove it from the rules, or give the reason why it is about nobody: public: {because: "…"}'


def check_public(path: str, table: Table, rules: TableRules, exposure: Exposure, catalog: Catalog) -> Iterator[Finding]:
    """Say what speaks against it, unless the rules say why it tells of nobody."""
    reasons = exposure.reasons(table.name)
    reasons_text = "; ".join(reason.words for reason in reasons[:3]) + (
        f"; and {len(reasons) - 3} more" if reasons[3:] else ""
    )
    if any(reason.same_rows for reason in reasons):
        yield error(path, f"{reasons_text}: it cannot be public", "remove one of the two from the rules")
    elif reasons and rules.because is None:
        yield error(path, reasons_text, _SAY_WHY)
    elif rules.because is not None:
        yield note(path, f'public, because: "{rules.because}" ({reasons_text or "nothing seems to speak against it"})')
    elif doubts := exposure.doubts(table.name):
        yield warning(path, f"look whether its rows are about people: {'; '.join(doubts[:3])}", _SAY_WHY)
    shown = [column for column in table.columns if not rules.hides(column)]
    if not reasons and rules.because is None and (personal := personal_columns(shown, table)):
        words = f"every row of it can be read, and {', '.join(personal[:4])} may be about people"
        yield warning(
            path, words, 'hide them, remove the table from the rules, or give the reason: public: {because: "…"}'
        )
    for name in rules.columns:
        if table.find_column(name) is None:
            names = sorted(column.name for column in table.columns)
            yield error(f"{path}.columns.{name}", f"{table.name} has no such column", nearest(name, names))
    if table.kind in ("view", "materialized view"):
        yield note(path, f"a public {table.kind} can be read alone, and not together with protected tables")
    if table.row_security and not catalog.bypasses_row_security:
        yield warning(path, "row security hides some of its rows from the proxy, and so from analysts")
    if table.foreign and rules.foreign is None:
        words = "it has rows on another server, so it can be read alone and not together with protected tables"
        yield warning(path, words, TRUSTED)
    for name in (column.name for column in table.columns if column.generated == "v"):
        words = f'"{name}" is computed when it is read, so it cannot be read together with protected tables'
        yield note(path, words, "make it STORED")
    columns = ", ".join(column.name for column in shown) or "no column"
    yield note(path, f"public: every row of {table.name} can be read: {columns}")
