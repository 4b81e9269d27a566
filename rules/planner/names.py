"""Canonical texts of blocks and measures: what is equal has equal ones, whatever its spelling and its statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rules.aggregates.contributions import Contribution, Pick, Typical
from rules.algebra.nodes import scans_in
from rules.kernel.blocks import BlockAggregate, BlockDistinct, BlockMoment, BlockPlace, BlockRows, BlockValue
from rules.kernel.expressions import expression_sql
from rules.kernel.keys import Bins, Listed
from rules.kernel.measures import Count, Distinct, DistinctSum, DistinctValues, Products, Sum, Units, Values
from rules.kernel.relations import Relation
from rules.kernel.render import From, Renderer
from rules.kernel.summand import Summand
from rules.mechanisms.release_plan import End
from rules.planner.bounding import Bounding
from rules.planner.select_partitions import Keyed
from rules.values.expression import Expression

_ZONED = ("with time zone", "timezone(", "to_timestamp(")  # what makes instants of other things, as SQL tells it
_VERSION = 2  # of what is measured: units beyond a cap are scaled, which earlier releases did not do


@dataclass(frozen=True, slots=True)
class CanonicalNames:
    """Canonical texts: equal blocks have equal ones, and so have equal measures of them."""

    keyed: Keyed
    relation: Relation
    zone: str  # of the session
    rendered: From  # all columns of the relation

    @classmethod
    def of(cls, keyed: Keyed, relation: Relation, zone: str) -> "CanonicalNames":
        every = frozenset(column.id for column in keyed.source.node.facts.columns)
        return cls(keyed, relation, zone, Renderer().render(relation, every))

    def block(self, bounding: Bounding) -> str:
        keys = ", ".join(self.expression(key) for key in self.keyed.keys)
        unit = "" if self.relation.unit is None else self.relation.unit.kind
        rows = self.rendered.clause()
        caps = f"rows {bounding.rows} groups {bounding.groups}"
        return f"version {_VERSION} unit {unit} {caps}{self._zone_of(rows)} by ({keys}) {rows}"

    def family(self, bounding: Bounding, layers: int, left: Sequence[str]) -> str:
        """The relation below so many outermost conditions, with those that are left of them."""
        unit = "" if self.relation.unit is None else self.relation.unit.kind
        inner = self.rendered.where[: len(self.rendered.where) - layers]
        rows = f"{replace(self.rendered, where=inner).clause()} where {' and '.join(sorted(left))}"
        return f"cells of version {_VERSION} unit {unit} rows {bounding.rows}{self._zone_of(rows)} {rows}"

    def _zone_of(self, rows: str) -> str:
        return f" in {self.zone}" if self._has_instants() or _is_zoned(rows) else ""

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
                listed = ", ".join(self.expression(constant) for label in labels for constant in label)
                return f"{', '.join(map(self.expression, expressions))} among {listed}"

    def _summand(self, summand: Summand) -> str:
        lattice = summand.lattice
        return f"{self.expression(summand.expression)} from {lattice.low} to {lattice.high} in steps of {lattice.step}"

    def _has_instants(self) -> bool:
        """Tell whether an instant is read by the clock of a zone; dates and local times mean the same in all zones."""
        scans = scans_in(self.keyed.source.node)
        return any(column.type.kind == "timestamptz" for scan in scans for column in scan.facts.columns)

    def expression(self, written: Expression) -> str:
        return expression_name(written, self.rendered.names, self.zone)


def _side(end: End | None) -> str:
    return "" if end is None else f"{'low' if end.side < 0 else 'high'} end for {end.level} of the "


def expression_name(written: Expression, columns: Mapping[int, str], zone: str) -> str:
    """Write an expression over columns of these names, with the session's zone where that makes a difference."""
    sql = expression_sql(written, columns)
    return f"{sql} in {zone}" if _is_zoned(sql) else sql


def _is_zoned(sql: str) -> bool:
    return any(sign in sql for sign in _ZONED)
