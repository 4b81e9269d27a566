"""Canonical texts of blocks and measures: what is equal has equal ones, whatever its spelling and its statement."""

from collections.abc import Mapping, Sequence
from itertools import chain

from rules.aggregates.contributions import Contribution, Pick, Typical
from rules.algebra.nodes import Filter, Node, scans_in
from rules.catalog import Catalog
from rules.frozen import frozen, replace
from rules.kernel.expressions import expression_sql
from rules.kernel.keys import Bins, Listed
from rules.kernel.measures import Count, Distinct, DistinctSum, DistinctValues, Products, Sum, Units, Values
from rules.kernel.relation import Relation
from rules.kernel.render import From, Renderer
from rules.kernel.special.blocks import BlockAggregate, BlockDistinct, BlockMoment, BlockPlace, BlockRows, BlockValue
from rules.kernel.summand import Summand
from rules.mechanisms.release_plan import End
from rules.planner.bound_contributions import Bounding
from rules.planner.parent_joins import without_parents
from rules.planner.select_partitions import Keyed
from rules.planner.to_script import to_script
from rules.replay import Kernel
from rules.values.expression import Constant, Expression

_VERSION = 2  # of what is measured: units beyond a cap are scaled, which earlier releases did not do


@frozen
class CanonicalNames:
    """Canonical texts: equal blocks have equal ones, and so have equal measures of them."""

    keyed: Keyed
    relation: Relation
    zone: str  # of the session
    rendered: From  # all columns of the relation
    core: "Core"
    has_instants: bool

    @classmethod
    def of(
        cls, keyed: Keyed, relation: Relation, node: Node, zone: str, kernel: Kernel, catalog: Catalog
    ) -> "CanonicalNames":
        """Name the columns of a node, which the relation was made of."""
        source = keyed.source.node
        every = frozenset(column.id for column in source.facts.columns)
        rendered = Renderer(is_run=False).render(relation, every)
        core = Core.of(node, rendered, kernel, catalog)
        return cls(keyed, relation, zone, rendered, core, _has_instants(source))

    @property
    def columns(self) -> Mapping[int, str]:
        """What columns are called, whichever of their parents rows are joined with."""
        return self.core.columns

    def block(self, bounding: Bounding) -> str:
        keys = ", ".join(expression_name(key, self.rendered.names, self.zone) for key in self.keyed.keys)
        unit = "" if self.relation.unit is None else self.relation.unit.kind
        rows = self.rendered.clause()
        caps = f"rows {bounding.rows} groups {bounding.groups}"
        return f"version {_VERSION} unit {unit} {caps}{self._zone_of(rows)} by ({keys}) {rows}"

    def families(self, bounding: Bounding, left: Sequence[str]) -> tuple[str, ...]:
        """The relation below its outermost conditions, with those that are left of them: the first is its own.

        Rows that have no instants mean the same by every clock. Joined with parents that have some they are kept under
        the session's zone, and so they are looked for there too.
        """
        unit = "" if self.relation.unit is None else self.relation.unit.kind
        rows = f"{self.core.rows.clause()} where {' and '.join(sorted(left))}"
        zone = f" in {self.zone}"
        if self.core.has_instants or _is_zoned(rows):
            zones: tuple[str, ...] = (zone,)
        else:
            zones = (zone, "") if self.has_instants else ("", zone)
        return tuple(f"cells of version {_VERSION} unit {unit} rows {bounding.rows}{each} {rows}" for each in zones)

    def _zone_of(self, rows: str) -> str:
        return f" in {self.zone}" if self.has_instants or _is_zoned(rows) else ""

    def part(self, part: Contribution) -> str:
        match part:
            case Count(condition=condition):
                return f"rows where {self.expression(condition)}"
            case Units(condition=condition):
                return f"units where {self.expression(condition)}"
            case Values(summand=summand):
                return f"values of {self._summand(summand)}"
            case Sum(summand=summand, centred=centred, total=total):
                at_most = "" if total is None else f", at most {total} of a unit"
                return f"{'centred ' * centred}sum of {self._summand(summand)}{at_most}"
            case Products(first=first, second=second):
                return f"sum of products of {self._summand(first)} and {self._summand(second)}"
            case Distinct(expression=expression):
                return f"different {self.expression(expression)}"
            case DistinctValues(summand=summand):
                return f"different values of {self._summand(summand)}"
            case DistinctSum(summand=summand, centred=centred):
                return f"{'centred ' * centred}sum of different {self._summand(summand)}"
            case Pick(candidate=candidate, fraction=fraction, largest=largest, end=end):
                side = _side(end)
                extreme = {True: "largest", False: "smallest", None: "most frequent"}[largest]
                what = extreme if fraction is None else f"quantile {fraction}"
                return f"{side}{what} of {self._candidate(candidate)}"
            case Typical(value=value, end=end):
                cells = f"{value.cells.count} values from {value.cells.low} to {value.cells.high}"
                return f"{_side(end)}median of {self._block_value(value)} among {cells}"

    def _block_value(self, value: BlockValue) -> str:
        names = [f"a{place}" for place in range(len(value.aggregates))]
        aggregates = (
            f"{name}: {self._aggregate(aggregate)}" for name, aggregate in zip(names, value.aggregates, strict=True)
        )
        return f"{expression_sql(value.expression, dict(enumerate(names)))} with {'; '.join(aggregates)},"

    def _aggregate(self, aggregate: BlockAggregate) -> str:
        match aggregate:
            case BlockRows(condition=condition):
                return f"rows where {self.expression(condition)}"
            case BlockDistinct(expression=expression):
                return f"different {self.expression(expression)}"
            case BlockMoment(summands=summands, powers=powers):
                factors = zip(map(self._summand, summands), powers, strict=True)
                return f"sum of {' times '.join(f'({factor})^{power}' for factor, power in factors)}"
            case BlockPlace(summand=summand, place=place, fraction=fraction, descending=descending):
                return f"{place} {fraction}{' descending' * descending} of {self._summand(summand)}"

    def _candidate(self, candidates: Bins | Listed) -> str:
        match candidates:
            case Bins(summand=summand, width=width):
                return f"{self._summand(summand)} by {width}"
            case Listed(expressions=expressions, labels=labels):
                kinds = [expression.type.plain() for expression in expressions]
                constants = chain.from_iterable(map(Constant, kinds, label) for label in labels)
                listed = ", ".join(map(self.expression, constants))
                return f"{', '.join(map(self.expression, expressions))} among {listed}"

    def _summand(self, summand: Summand) -> str:
        lattice = summand.lattice
        return f"{self.expression(summand.expression)} from {lattice.low} to {lattice.high} in steps of {lattice.step}"

    def expression(self, written: Expression) -> str:
        return expression_name(written, self.columns, self.zone)


@frozen
class Core:
    """The rows below the outermost conditions, without the parents that each of them has one of."""

    rows: From
    columns: Mapping[int, str]  # those of parents by the columns that refer to them
    has_instants: bool

    @classmethod
    def of(cls, node: Node, rendered: From, kernel: Kernel, catalog: Catalog) -> "Core":
        """Name the rows of a relation in one form, whatever they are joined with."""
        conditions = len(rendered.where)
        while isinstance(node, Filter):
            node, conditions = node.source, conditions - 1
        found = without_parents(node, catalog)
        if not found.parents:
            return cls(replace(rendered, where=rendered.where[:conditions]), rendered.names, _has_instants(node))
        every = frozenset(column.id for column in found.node.facts.columns)
        rows = Renderer(is_run=False).render(kernel.relation(to_script(found.node)), every)
        return cls(rows, found.names(rows.names), _has_instants(found.node))


def _has_instants(node: Node) -> bool:
    """Tell whether an instant is read by the clock of a zone; dates and local times mean the same in all zones."""
    return any(column.type.kind == "timestamptz" for scan in scans_in(node) for column in scan.facts.columns)


def _side(end: End | None) -> str:
    return "" if end is None else f"{'low' if end.side < 0 else 'high'} end for {end.level} of the "


def expression_name(written: Expression, columns: Mapping[int, str], zone: str) -> str:
    """Write an expression over columns of these names, with the session's zone where that makes a difference."""
    sql = expression_sql(written, columns)
    return f"{sql} in {zone}" if _is_zoned(sql) else sql


def _is_zoned(sql: str) -> bool:
    """Return whether it makes instants of other things, as SQL tells."""
    return "with time zone" in sql or "timezone(" in sql or "to_timestamp(" in sql
