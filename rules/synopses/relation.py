"""The rows that are measured of one table: its own columns, those of the tables that it refers to, and row counts."""

from dataclasses import dataclass, field
from itertools import count

from rules.bind.table import scan
from rules.catalog import Catalog, Column, ForeignKey, Table, TableName
from rules.kernel import script as k
from rules.kernel.ground import Ground
from rules.kernel.relations import build
from rules.planner.to_script import bare, to_script
from rules.policy.model import Policy, table_name
from rules.refusal import NotAllowed
from rules.values.expression import TRUE, Apply, Expression
from rules.values.expression import Column as Read
from rules.values.types import INT8, equality_of_key

MOST_STEPS = 3  # from a table to one that it refers to
_NO_WAY = "no valid foreign key of one column of the same type leads from {} to {}"
Origin = tuple[TableName, str]


@dataclass
class Rows:
    """The rows of a table while columns are added to them: a script, and what each column is."""

    table: Table
    policy: Policy
    catalog: Catalog
    script: k.Script = field(init=False)
    _fresh: "count[int]" = field(default_factory=lambda: count(1))
    _columns: dict[TableName, dict[str, Read]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.script = self._scanned(self.table)

    def column(self, origin: Origin) -> Read:
        """A column of the table, or of one that it refers to; raises NotAllowed where there is none."""
        table, name = origin
        if table not in self._columns:
            here = self.table
            for key in path_to(self.table, table, self.policy, self.catalog):
                if key.target not in self._columns:
                    self._join(here, key)
                here = find_partner(key.target, self.policy, self.catalog)
        column = self._columns[table].get(name)
        if column is None:
            raise NotAllowed("there is no such column")
        return column

    def count(self, child: TableName) -> Expression:
        """Count the rows of another table that refer to a row, by unit: a row has those of its unit."""
        other = find_table(child, self.policy, self.catalog)
        key = link(other, self.table.name, self.policy, self.catalog)
        if key is None:
            raise NotAllowed(_NO_WAY.format(child, self.table.name))
        before, mine = dict(self._columns), self._columns[self.table.name][key.target_columns[0]]
        source = self._scanned(other)
        theirs = self._columns[child][key.columns[0]]
        self._columns = before
        reference, number = next(self._fresh), next(self._fresh)
        unit = build(source, Ground(self.policy, self.catalog)).unit
        keys = [(reference, bare(theirs))]
        if unit is not None and unit.column is not None:
            known = build(source, Ground(self.policy, self.catalog)).types
            keys = [(unit.column, Read(unit.column, known[unit.column])), *keys]
        groups = k.PerUnit(source, tuple(keys), ((number, k.Call("count(*)", (), INT8)),))
        self.script = k.Join("left", self.script, groups, ((mine.id, reference),), TRUE)
        return Apply("", "coalesce({0}, 0)", (Read(number, INT8),), INT8)

    def _join(self, here: Table, key: ForeignKey) -> None:
        """Inner where every row has a partner, which keeps all rows; where it may have none, its columns are NULL."""
        other = find_partner(key.target, self.policy, self.catalog)
        mine = self._columns[here.name][key.columns[0]]
        script = self._scanned(other)
        theirs = self._columns[other.name]
        stored = here.find_column(key.columns[0])
        has_partner = key.proves and stored is not None and stored.not_null and not mine.nullable
        if not has_partner:
            self._columns[other.name] = {name: _nullable(their) for name, their in theirs.items()}
        equal = ((mine.id, theirs[key.target_columns[0]].id),)
        self.script = k.Join("inner" if has_partner else "left", self.script, script, equal, TRUE)

    def _scanned(self, table: Table) -> k.Script:
        rules = self.policy.find_table(table.name)
        assert rules is not None, "tables are found in the rules"
        node, _ = scan(table, rules, self.policy, self.catalog, lambda: next(self._fresh))
        columns = {column.id: column for column in node.facts.columns}
        every = {column.name: column.id for column in node.facts.columns if column.name}
        self._columns[table.name] = {name: columns[number] for name, number in every.items()}
        return to_script(node)


def _nullable(column: Read) -> Read:
    return Read(column.id, column.type, column.domain, column.declared, True, column.name, column.filled, column.other)


def find_table(name: TableName, policy: Policy, catalog: Catalog) -> Table:
    """A protected table of the rules; raises NotAllowed where it is none."""
    table, rules = catalog.find_table(name), policy.find_table(name)
    if table is None or rules is None:
        raise NotAllowed(f"{name} is not in the rules file")
    if rules.public or rules.view:
        raise NotAllowed(f"{name} is no protected table", hint="its rows can be read as they are")
    return table


def find_partner(name: TableName, policy: Policy, catalog: Catalog) -> Table:
    """A protected table of the rules, or a public one; raises NotAllowed where it is none."""
    table, rules = catalog.find_table(name), policy.find_table(name)
    if table is not None and rules is not None and rules.public and not rules.view:
        return table
    return find_table(name, policy, catalog)


def named(text: str) -> TableName:
    """A table as the rules file names it."""
    return table_name(text)


def link(table: Table, target: TableName, policy: Policy, catalog: Catalog) -> ForeignKey | None:
    """The foreign key of one column from a table to another one: that by which its unit is found, if it is one.

    Both columns have the same equality: by another one a value of the key would be told as several.
    """
    foreign_keys = [
        key
        for key in table.foreign_keys
        if key.target == target
        and len(key.columns) == 1
        and key.proves
        and target != table.name
        and equality_of_key(key, table, catalog) == "same"
    ]
    rules = policy.find_table(table.name)
    step = None if rules is None or rules.unit is None else rules.unit_step().column
    filled = {column.name for column in table.columns if column.not_null}
    return min(foreign_keys, key=lambda key: (key.columns[0] != step, key.columns[0] not in filled), default=None)


def path_to(table: Table, target: TableName, policy: Policy, catalog: Catalog) -> tuple[ForeignKey, ...]:
    """The foreign keys from a table to another one, over protected tables; raises NotAllowed where there are none.

    The other one may be public. The shortest way is taken of those on which every row has a partner, or else of all.
    """
    waiting: list[tuple[Table, tuple[ForeignKey, ...], bool]] = [(table, (), True)]
    found: list[tuple[bool, int, tuple[ForeignKey, ...]]] = []
    for steps in range(MOST_STEPS):
        reached: list[tuple[Table, tuple[ForeignKey, ...], bool]] = []
        for here, way, is_whole in waiting:
            for key in here.foreign_keys:
                if link(here, key.target, policy, catalog) != key:
                    continue
                column = here.find_column(key.columns[0])
                is_filled = is_whole and column is not None and column.not_null
                following = catalog.find_table(key.target) if policy.is_protected(key.target) else None
                if key.target == target:
                    found.append((not is_filled, steps, (*way, key)))
                elif following is not None:
                    reached.append((following, (*way, key), is_filled))
        waiting = reached
    if not found:
        raise NotAllowed(_NO_WAY.format(table.name, target))
    return min(found, key=lambda each: each[:2])[2]


def is_unique(table: Table, column: Column) -> bool:
    """Return whether a constraint keeps the values of a column, or of it with others, apart."""
    return any(column.name in key.columns for key in table.keys)
