"""The plan of a cube: for each set of its keys one statement, as an analyst would write it, and its part of the price.

The planner makes of each what it would make of an analyst's own, so whatever follows is as for any statement: the
kernel bounds it, its cells stand in the ledger, and questions that are sums of them are answered from there.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations

from rules.catalog import Catalog, Table, TableName
from rules.frozen import frozen
from rules.kernel.expressions import quoted_name
from rules.kernel.ground import Ground
from rules.kernel.render import qualified
from rules.mechanisms.additive import kind_paid, mechanisms_of
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.release_plan import Block, PublicGroups
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.policy.model import Policy
from rules.policy.rules_yaml import dotted
from rules.policy.synopses import CubeRules, Listed
from rules.refusal import NotAllowed, Refusal
from rules.replay import Kernel
from rules.synopses.plan import MOST_IN_ALL, NotPlanned
from rules.synopses.relation import find_table, named, path_to
from rules.synopses.shares import check_costs, price_of, shares_of_cells

MOST_SETS = 100
_ONE = Decimal(1)


@frozen
class KeySet:
    """Some keys of a cube, and the statement that counts and sums by them."""

    keys: tuple[str, ...]
    text: str
    plan: Plan

    @property
    def block(self) -> Block:
        return self.plan.blocks[0]

    @property
    def cells(self) -> int:
        groups = self.block.groups
        assert isinstance(groups, PublicGroups), "others are refused"
        return len(groups.rows)


@frozen
class CubePlan:
    """All sets of a cube, each on its share of the price."""

    name: str
    rules: CubeRules
    table: TableName
    price: Mechanism
    sets: tuple[KeySet, ...]

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """List what its draws cost: no more than the price."""
        return tuple(cost for key_set in self.sets for cost in mechanisms_of(key_set.block))


def plan_cube(name: str, policy: Policy, catalog: Catalog, kernel: Kernel | None = None) -> CubePlan:
    """The plan of a cube; raises NotPlanned with the first thing that is wrong with it."""
    rules, path = policy.cubes[name], dotted(("synopses", name))
    price = price_of(rules.epsilon, policy)
    alone: dict[str, object] = {
        "noise": kind_paid(price),
        "synopses": {},
    }  # what it is made of depends on no other cube
    maker = _Maker(policy.model_copy(update=alone), catalog, kernel or Kernel(Ground(policy, catalog)))
    table = _table(rules, policy, catalog, path)
    texts = list(_texts(rules, table, policy, catalog, path))
    drafts = [maker.planned(keys, text, _ONE, path) for keys, text in texts]
    cells = sum(draft.cells for draft in drafts)
    if cells > MOST_IN_ALL:
        hint = "take coarser steps, fewer keys, or smaller sets by orders"
        raise NotPlanned(path, f"it has {cells:,} cells, and may have {MOST_IN_ALL:,}", hint)
    shares = shares_of_cells(price, [(draft.cells, mechanisms_of(draft.block)) for draft in drafts])
    sets = (maker.planned(*text, share, path) for text, share in zip(texts, shares, strict=True))
    made = CubePlan(name, rules, table.name, price, tuple(sets))
    check_costs(price, made.mechanisms)
    return made


@frozen
class _Maker:
    policy: Policy
    catalog: Catalog
    kernel: Kernel

    def planned(self, keys: tuple[str, ...], text: str, epsilon: Decimal, path: str) -> KeySet:
        """One set; its groups are listed by the rules, and its bounds are no choice."""
        zone = self.policy.budget.time_zone
        request = Request(text, ("pg_catalog",), epsilon=epsilon, time_zone=zone, sums_auto=False)
        here = f"{path}.cube: {', '.join(keys)}"
        try:
            made = plan(request, self.policy, self.catalog, self.kernel)
        except Refusal as refusal:
            raise NotPlanned(here, refusal.message, refusal.hint) from None
        if not isinstance(made, Plan) or not isinstance(made.blocks[0].groups, PublicGroups):
            raise NotPlanned(here, "its groups are not declared", "give its columns values, or lower and upper")
        if made.blocks[0].ladders:
            hint = "write rows_per_unit: 40 for its table, and give its columns lower and upper"
            raise NotPlanned(here, "a cube needs caps that the rules say, and none that are chosen", hint)
        return KeySet(keys, text, made)


def _table(rules: CubeRules, policy: Policy, catalog: Catalog, path: str) -> Table:
    """The table that is counted: the one that is named, or the only one that has all keys and sums."""
    if rules.table is not None:
        try:
            return find_table(named(rules.table), policy, catalog)
        except NotAllowed as refusal:
            raise NotPlanned(f"{path}.table", refusal.message, refusal.hint) from None
    wanted = {*rules.sums, *(key.column for key in rules.keys if not key.table)}
    tables = []
    for text, table_rules in policy.tables.items():
        table = None if table_rules.public or table_rules.view else catalog.find_table(named(text))
        if table is not None and all(table.find_column(column) is not None for column in wanted):
            tables.append(table)
    if len(tables) != 1:
        words = "several tables have all of its columns" if tables else "no protected table has all of its columns"
        raise NotPlanned(path, words, "name one: table: orders")
    return tables[0]


def _texts(
    rules: CubeRules, table: Table, policy: Policy, catalog: Catalog, path: str
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The sets of keys, the smaller ones first, and a statement for each."""
    sets = [combination for size in sorted(set(rules.orders)) for combination in combinations(rules.keys, size)]
    if not sets or len(sets) > MOST_SETS:
        words = f"it has {len(sets):,} sets of keys, and may have {MOST_SETS}" if sets else "it has fewer keys"
        raise NotPlanned(f"{path}.orders", words, "give other orders, or other keys")
    for keys in sets:
        here = f"{path}.cube: {', '.join(key.text for key in keys)}"
        try:
            yield tuple(key.text for key in keys), _text(keys, rules, table, policy, catalog)
        except NotAllowed as refusal:
            raise NotPlanned(here, refusal.message, refusal.hint) from None


def _text(keys: Sequence[Listed], rules: CubeRules, table: Table, policy: Policy, catalog: Catalog) -> str:
    names, joins = {table.name: "t0"}, [f"{qualified(table.name)} AS t0"]
    for listed in keys:
        here = table
        for key in path_to(table, named(listed.table), policy, catalog) if listed.table else ():
            if key.target not in names:
                names[key.target] = f"t{len(names)}"
                equal = f"{names[here.name]}.{quoted_name(key.columns[0])}"
                target = f"{names[key.target]}.{quoted_name(key.target_columns[0])}"
                joins.append(f"JOIN {qualified(key.target)} AS {names[key.target]} ON {target} = {equal}")
            here = find_table(key.target, policy, catalog)
    shown = [_key(key, named(key.table) if key.table else table.name, names, catalog) for key in keys]
    sure = {column.name for column in table.columns if column.not_null}
    counts = [f"count(t0.{quoted_name(total)})" for total in rules.sums if total not in sure]
    sums = [f"sum(t0.{quoted_name(total)})" for total in rules.sums]
    places = ", ".join(str(place) for place in range(1, len(shown) + 1))
    return f"SELECT {', '.join([*shown, 'count(*)', *counts, *sums])} FROM {' '.join(joins)} GROUP BY {places}"


def _key(listed: Listed, owner: TableName, names: dict[TableName, str], catalog: Catalog) -> str:
    """A key as it stands in a select list. A step of the calendar begins as date_trunc says, by the budget's clock."""
    table = catalog.find_table(owner)
    column = None if table is None else table.find_column(listed.column)
    if column is None:
        raise NotAllowed(f'{owner} has no column "{listed.column}"')
    name = f"{names[owner]}.{quoted_name(listed.column)}"
    is_date = column.type.name == "date"
    if not listed.grain or (is_date and listed.grain == "day"):
        return name
    cut = f"date_trunc('{listed.grain}', {name})"
    return f"{cut}::date" if is_date else cut
