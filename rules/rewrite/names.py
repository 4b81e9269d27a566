"""Canonical texts of blocks and measures: what is equal has equal ones, whatever its spelling and its statement."""

from dataclasses import dataclass

from rules.relation.expression import Expression
from rules.relation.nodes import scans_in
from rules.relation.render import Renderer, expression_sql
from rules.rewrite.bound_units import Bounding
from rules.rewrite.contributions import Contribution, DistinctCount, DistinctSum, Pick, RowSum, UnitCount, ValueCount
from rules.rewrite.hide_groups import Keyed

_ZONED = ("with time zone", "timezone(", "to_timestamp(")  # what makes instants of other things, as SQL tells it


@dataclass(frozen=True, slots=True)
class Names:
    """Canonical texts: equal blocks have equal ones, and so have equal measures of them."""

    keyed: Keyed
    zone: str  # of the session

    def block(self, bounding: Bounding) -> str:
        node = self.keyed.source.node
        keys = ", ".join(self._expression(key) for key in self.keyed.keys)
        unit = "" if node.facts.unit is None else node.facts.unit.kind
        rows = Renderer().render(node, self._all()).clause()
        zone = f" in {self.zone}" if self._has_instants() or _is_zoned(rows) else ""
        return f"unit {unit} rows {bounding.rows} groups {bounding.groups}{zone} by ({keys}) {rows}"

    def part(self, part: Contribution) -> str:
        match part:
            case RowSum(integer=integer, reach=reach, centre=centre):
                around = "" if centre is None else f" around half of {centre}"
                return f"sum within {reach}{around} of {self._expression(integer)}"
            case ValueCount(integer=integer):
                return f"values of {self._expression(integer)}"
            case DistinctCount(value=value):
                return f"different {self._expression(value)}"
            case DistinctSum(integer=integer, reach=reach, centre=centre):
                around = "" if centre is None else f" around half of {centre}"
                return f"sum within {reach}{around} of different {self._expression(integer)}"
            case Pick(candidate=candidate, fraction=fraction, largest=largest, end=end):
                side = "" if end is None else f"{'low' if end.side < 0 else 'high'} end for {end.level} of the "
                extreme = {True: "largest", False: "smallest", None: "most frequent"}[largest]
                what = extreme if fraction is None else f"quantile {fraction}"
                return f"{side}{what} of {self._expression(candidate)}"
        kind = "units" if isinstance(part, UnitCount) else "rows"
        return f"{kind} where {self._expression(part.condition)}"

    def _has_instants(self) -> bool:
        """What an instant is by the clock depends on the session's zone; dates and local times mean the same in all."""
        scans = scans_in(self.keyed.source.node)
        return any(column.type.kind == "timestamptz" for scan in scans for column in scan.facts.columns)

    def _all(self) -> frozenset[int]:
        return frozenset(column.id for column in self.keyed.source.node.facts.columns)

    def _expression(self, given: Expression) -> str:
        sql = expression_sql(given, Renderer().render(self.keyed.source.node, self._all()).names)
        return f"{sql} in {self.zone}" if _is_zoned(sql) else sql


def _is_zoned(sql: str) -> bool:
    return any(sign in sql for sign in _ZONED)
