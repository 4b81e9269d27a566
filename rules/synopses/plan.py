"""The plan of a synopsis: for each table one statement of the kernel, and what its bins stand for.

Made of the rules and the catalog alone. What cannot be measured is refused here, with the place in the rules file.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import ceil, prod

from rules.catalog import Catalog, Table, TableName
from rules.frozen import frozen
from rules.kernel.ground import Ground
from rules.kernel.relations import build
from rules.kernel.special.marginals import Counted, MarginalsStatement
from rules.policy.model import Policy
from rules.policy.rules_yaml import dotted
from rules.policy.synopses import Listed, SynopsisRules
from rules.refusal import NotAllowed, Refusal
from rules.replay import Kernel
from rules.synopses.columns import MOST_LABELS, Binned, binned, counted, is_open, keys_of
from rules.synopses.relation import Origin, Rows, find_partner, find_table, is_unique, link, named
from rules.synthesis.model import KeyPart
from rules.values.expression import Column

MOST_COLUMNS, MOST_CELLS, MOST_MARGINALS, MOST_IN_ALL = 12, 4096, 66, 200_000
_CELL_FACTOR = 8  # a cell counts so many times the rows that a unit has there on average
_PLACEHOLDERS = tuple(map(str, range(MOST_LABELS)))
_DEPTH = 3  # a table, its rows' rows, and theirs


@frozen
class PlannedColumn:
    """A listed column."""

    listed: Listed
    origin: tuple[TableName, str]  # whose column it is; a count's is the table that is counted
    binned: Binned
    shown_as: str | None
    is_open: bool = False  # its labels are found in the data; until then others stand for them


@frozen
class PlannedLink:
    """Say which planned table the rows of a table refer to, by which of its columns, and what they have in common."""

    parent: int
    column: str
    target_column: str
    shared: tuple[tuple[int, int], ...]
    count: int | None
    most: int  # rows of one row there


@frozen
class PlannedPartner:
    """A public table that the rows of a table refer to: the column, its target, and which columns are bins there."""

    column: str
    target: TableName
    target_column: str
    places: tuple[int, ...]


@frozen
class PlannedTable:
    """One table of a synopsis."""

    table: Table
    statement: MarginalsStatement
    columns: tuple[PlannedColumn, ...]
    rows_per_unit: int
    link: PlannedLink | None
    keys: tuple[KeyPart, ...]
    partners: tuple[PlannedPartner, ...] = ()
    own: frozenset[str] = frozenset()  # columns that refer to rows of the same unit, as far as the rules tell

    def cells(self, marginal: Counted) -> int:
        """Count the cells of a marginal that a row can be in."""
        return prod(self.columns[place].binned.count for place in marginal.columns)


@frozen
class SynopsisPlan:
    """All tables, parents first; `reads` are the tables whose rows are looked at."""

    name: str
    rules: SynopsisRules
    unit: str
    group_size: int
    tables: tuple[PlannedTable, ...]
    reads: tuple[TableName, ...]
    protected: frozenset[TableName]
    before_labels: "SynopsisPlan | None" = None

    @property
    def open(self) -> tuple[Origin, ...]:
        """The columns whose labels are found in protected rows, each once."""
        return tuple(origin for origin in self._without_list if origin[0] in self.protected)

    @property
    def read(self) -> tuple[Origin, ...]:
        """The columns whose labels are read in public rows, each once."""
        return tuple(origin for origin in self._without_list if origin[0] not in self.protected)

    @property
    def _without_list(self) -> tuple[Origin, ...]:
        columns = (column for table in self.tables for column in table.columns)
        return tuple(dict.fromkeys(column.origin for column in columns if column.is_open))

    @property
    def digest(self) -> str:
        """Equal where what is measured means the same, whatever labels were found."""
        if self.before_labels is not None:
            return self.before_labels.digest
        parts = [repr((self.unit, self.group_size))]
        parts += [repr((str(each.table.name), each.statement, each.columns, each.link)) for each in self.tables]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


class NotPlanned(NotAllowed):
    """A synopsis that cannot be made, and where the rules file says so."""

    def __init__(self, path: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path


def plan_synopsis(
    name: str, policy: Policy, catalog: Catalog, labels: Mapping[Origin, tuple[str, ...]] | None = None
) -> SynopsisPlan:
    """The plan of a synopsis; raises NotPlanned with the first thing that is wrong with it.

    Until the labels of open columns are found, as many as there may be stand for them.
    """
    rules = policy.schemas[name]
    path = dotted(("synopses", name))
    planned: list[PlannedTable] = []
    reads: set[TableName] = set()
    for text in _in_order(rules.listed, policy, catalog, path):
        here = dotted(("synopses", name, "tables", text))
        wanted = [rules.places(text, columns) for columns in rules.marginals.get(text, ())]
        made = _table(named(text), rules.listed, wanted, planned, policy, catalog, here, labels or {})
        planned.append(made)
        reads |= _read(made, policy, catalog)
    cells = sum(each.cells(marginal) for each in planned for marginal in each.statement.counted)
    if cells > MOST_IN_ALL:
        raise NotPlanned(path, f"it has {cells:,} cells, and may have {MOST_IN_ALL:,}", "take fewer bins or columns")
    order = tuple(sorted(reads))
    protected = frozenset(filter(policy.is_protected, order))
    return SynopsisPlan(name, rules, policy.unit, policy.group_size, tuple(planned), order, protected)


def _read(made: PlannedTable, policy: Policy, catalog: Catalog) -> set[TableName]:
    return set(Kernel(Ground(policy, catalog)).tables(made.statement.rows))


def _in_order(
    listed: Mapping[str, tuple[Listed, ...]], policy: Policy, catalog: Catalog, path: str
) -> Iterator[str]:  # fmt: skip
    """Tables after those that they refer to."""
    waiting = {named(text): text for text in listed}
    depth = 0
    while waiting:
        ready = [name for name in waiting if not _parents(name, waiting, policy, catalog, path)]
        depth += 1
        if not ready or depth > _DEPTH:
            raise NotPlanned(path, f"its tables refer to one another over more than {_DEPTH} steps", "list fewer")
        for name in ready:
            yield waiting.pop(name)


def _parents(
    name: TableName, among: Mapping[TableName, str], policy: Policy, catalog: Catalog, path: str
) -> list[TableName]:  # fmt: skip
    try:
        table = find_table(name, policy, catalog)
    except NotAllowed as refusal:
        raise NotPlanned(f"{path}.tables", refusal.message, refusal.hint) from None
    return [other for other in among if link(table, other, policy, catalog) is not None]


def _table(
    name: TableName, listed: Mapping[str, tuple[Listed, ...]], wanted: Sequence[tuple[int, ...]],
    before: list[PlannedTable], policy: Policy, catalog: Catalog, path: str, labels: Mapping[Origin, tuple[str, ...]],
) -> PlannedTable:  # fmt: skip
    table, rules = find_table(name, policy, catalog), policy.find_table(name)
    assert rules is not None
    columns_listed = next(columns for text, columns in listed.items() if named(text) == name)
    if len(columns_listed) > MOST_COLUMNS:
        raise NotPlanned(path, f"it has {len(columns_listed)} columns, and may have {MOST_COLUMNS}", "list fewer")
    try:
        rows = Rows(table, policy, catalog)
    except Refusal as refusal:
        raise NotPlanned(path, refusal.message, refusal.hint) from None
    known = build(rows.script, Ground(policy, catalog)).known
    most = 1 if known.is_single else rules.rows_per_unit
    if most is None:
        words = "a synopsis of it needs a number of rows_per_unit in its own rules"
        raise NotPlanned(path, words, f"write rows_per_unit: 40 under tables.{table.name}")
    columns = tuple(
        _column(each, rows, listed, policy, f"{path}[{place}]", most, labels)
        for place, each in enumerate(columns_listed)
    )
    marginals = tuple(_marginals(columns, wanted, rows, policy, catalog, most, path))
    statement = MarginalsStatement(rows.script, tuple(each.binned.bins for each in columns), marginals, most)
    partners = _partners(table, columns, policy, catalog)
    linked = _link(table, columns, before, most, path, {partner.target for partner in partners}, policy, catalog)
    keys = keys_of(table, None if linked is None else linked.column)
    links = (link(table, each.table.name, policy, catalog) for each in before)
    own = frozenset(key.columns[0] for key in links if key is not None)
    return PlannedTable(table, statement, columns, most, linked, keys, partners, own)


def _partners(
    table: Table, columns: Sequence[PlannedColumn], policy: Policy, catalog: Catalog
) -> tuple[PlannedPartner, ...]:
    """The public tables that rows refer to themselves, of which columns are listed."""
    planned = []
    for key in table.foreign_keys:
        if key != link(table, key.target, policy, catalog) or policy.is_protected(key.target):
            continue
        places = tuple(place for place, column in enumerate(columns) if column.origin[0] == key.target)
        if places:
            planned.append(PlannedPartner(key.columns[0], key.target, key.target_columns[0], places))
    return tuple(planned)


def _column(
    listed: Listed, rows: Rows, tables: Mapping[str, tuple[Listed, ...]], policy: Policy, path: str, most: int,
    labels: Mapping[Origin, tuple[str, ...]],
) -> PlannedColumn:  # fmt: skip
    """One listed column; raises an error with its place if it is wrong."""
    try:
        if listed.counts:
            return _count(listed, rows, tables, policy)
        owner = named(listed.table) if listed.table else rows.table.name
        table = find_partner(owner, policy, rows.catalog) if listed.table else find_table(owner, policy, rows.catalog)
        _check_column(table, listed.column, policy)
        column = rows.column((owner, listed.column))
        shown_as, origin = listed.column if owner == rows.table.name else None, (owner, listed.column)
        is_public = not policy.is_protected(owner)
        known = labels.get(origin, _PLACEHOLDERS) if policy.budget.delta or is_public else None
        return PlannedColumn(listed, origin, binned(column, listed, most, known), shown_as, is_open(column))
    except Refusal as refusal:
        raise NotPlanned(path, f'"{listed.text}": {refusal.message}', refusal.hint) from None


def _check_column(table: Table, name: str, policy: Policy) -> None:
    column, rules = table.find_column(name), policy.find_table(table.name)
    assert rules is not None
    if column is None or rules.hides(column):
        raise NotAllowed(f'{table.name} has no column "{name}"', hint="hidden columns cannot be listed")
    if is_unique(table, column):
        raise NotAllowed("it is part of a key, whose values are made up", hint="leave it out: keys are always there")
    if any(name in key.columns for key in table.foreign_keys):
        raise NotAllowed("it refers to another table", hint="leave it out: rows are linked by themselves")


def _count(
    listed: Listed, rows: Rows, tables: Mapping[str, tuple[Listed, ...]], policy: Policy
) -> PlannedColumn:  # fmt: skip
    child = named(listed.counts)
    if child not in {named(text) for text in tables}:
        raise NotAllowed(f"{child} is no table of this synopsis", hint="list it among tables, or leave the count out")
    rules = policy.find_table(child)
    most = None if rules is None else rules.rows_per_unit
    if most is None or listed.bins is None or not 3 <= listed.bins <= 64:
        raise NotAllowed("nobody says up to which number, in how many bins", hint=f'write "count({child}) by 10"')
    return PlannedColumn(listed, (child, ""), counted(rows.count(child), most, listed.bins), None)


def _marginals(
    columns: tuple[PlannedColumn, ...], wanted: Sequence[tuple[int, ...]], rows: Rows, policy: Policy,
    catalog: Catalog, most: int, path: str,
) -> Iterator[Counted]:  # fmt: skip
    """The number of rows, all pairs, and the triples that are wanted.

    Each has a cap of its cells where a unit's rows lie in many of them.
    """
    yield Counted(())
    determined = build(rows.script, Ground(policy, catalog)).known.determined
    pairs: Sequence[tuple[int, ...]] = [*combinations(range(len(columns)), 2)]
    sets = [*(pairs or [(0,)]), *wanted]
    if len(sets) > MOST_MARGINALS:
        raise NotPlanned(path, f"it has {len(sets)} sets of columns, and may have {MOST_MARGINALS}", "list fewer")
    for each in sets:
        counts = [columns[place].binned.count for place in each]
        if prod(counts) > MOST_CELLS:
            names = " and ".join(f'"{columns[place].listed.text}"' for place in each)
            raise NotPlanned(
                path, f"{names} have {prod(counts):,} cells, and may have {MOST_CELLS:,}", "take fewer bins"
            )
        spread = prod(
            count for place, count in zip(each, counts, strict=True) if not _is_unit_s(columns[place], determined)
        )
        cap = min(most, ceil(_CELL_FACTOR * most / spread)) if policy.budget.delta else most
        yield Counted(each, None if cap >= most else cap)


def _is_unit_s(column: PlannedColumn, determined: frozenset[int]) -> bool:
    expression, _ = column.binned.bins.read()
    return isinstance(expression, Column) and expression.id in determined


def _link(
    table: Table, columns: tuple[PlannedColumn, ...], before: list[PlannedTable], most: int, path: str,
    public: set[TableName], policy: Policy, catalog: Catalog,
) -> PlannedLink | None:  # fmt: skip
    """The table to whose rows those of this one are linked: of several the one that comes last."""
    keys = [(place, key) for place, each in enumerate(before) if (key := link(table, each.table.name, policy, catalog))]
    if not keys:
        return None
    place, key = keys[-1]
    parent = before[place]
    if [each.column for each in parent.keys] != list(key.target_columns):
        words = f"{key.columns[0]} does not refer to the primary key of {parent.table.name}"
        raise NotPlanned(path, words, "leave one of the two tables out")
    theirs = {(each.origin, each.listed.by): number for number, each in enumerate(parent.columns)}
    shared = []
    for number, each in enumerate(columns):
        if each.shown_as is not None or each.listed.counts or each.origin[0] in public:
            continue
        found = theirs.get((each.origin, each.listed.by))
        if found is not None and each.binned.count != parent.columns[found].binned.count:
            words = (
                f'"{each.listed.text}" is found by a foreign key that may be NULL, and not so in {parent.table.name}'
            )
            raise NotPlanned(path, words, "leave it out here")
        if found is None:
            raise NotPlanned(
                path,
                f'"{each.listed.text}" is not listed in {parent.table.name}, by which rows are linked',
                "list it there too, in the same bins",
            )
        shared.append((number, found))
    counts = (number for number, each in enumerate(parent.columns) if each.origin == (table.name, ""))
    most = 1 if table.is_unique(key.columns) else most
    return PlannedLink(place, key.columns[0], key.target_columns[0], tuple(shared), next(counts, None), most)
