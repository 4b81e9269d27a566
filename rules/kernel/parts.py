"""Parts of a bounded statement: selects of the keys and of some measures, whose numbers are added by group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rules.kernel.measures import Count, Measure, Units, Values
from rules.kernel.sensitivity import Caps
from rules.kernel.source import Source, Term

Steps = tuple[tuple[str, str], ...]  # common table expressions: names and queries


@dataclass(frozen=True, slots=True)
class Column:
    """A measure with its number, its term in the rows and its factor."""

    number: int
    measure: Measure
    term: Term
    factor: int

    @property
    def name(self) -> str:
        """Of the measure in a part."""
        return f"x{self.number}"

    @property
    def summed(self) -> str:
        """Of what the rows of one unit and group, or of one group, add up to."""
        return f"s{self.number}"

    @property
    def total(self) -> str:
        """Σq, or the number of rows: an aggregate over rows."""
        match self.measure:
            case Count() | Values() | Units():
                return f"count({self.term.value}){self.term.filtered}"
        return f"coalesce(sum({self.term.value}){self.term.filtered}, 0)"


@dataclass(frozen=True, slots=True)
class Frame:
    """What all parts of a statement share."""

    source: Source
    columns: tuple[Column, ...]
    caps: Caps

    @property
    def keys(self) -> tuple[str, ...]:
        return self.source.names

    def part(self, values: Mapping[str, str], source: str, condition: str = "") -> str:
        """The keys and every measure, 0 where these values have none, of one source by group."""
        items = [*self.keys, *(f"{values.get(each.name, '0')} AS {each.name}" for each in self.columns)]
        return f"SELECT {', '.join(items)} FROM {source}{condition}{grouped(self.keys)}"

    def by_unit(self, aggregate: str, alone: str) -> str:
        """An aggregate over all groups of a unit, beside each; without keys a unit has one, and no window is needed."""
        return f"({aggregate} OVER (PARTITION BY u))" if self.keys else alone

    def share(self, column: Column) -> str:
        """g of one unit and group, as a bigint, from c rows of the unit in all.

        Where c ≤ m, |F·s| ≤ F·m·M ≤ 2^60. Else F·m·s/c is as small, and computed as numeric, which div() truncates.
        """
        whole = f"{column.factor} * {column.summed}::int8"
        if not self.caps.scales_rows:
            return whole
        scaled = f"div({column.summed}::numeric * {column.factor * self.caps.rows}, c)::int8"
        return f"CASE WHEN c <= {self.caps.rows} THEN {whole} ELSE {scaled} END"


def grouped(names: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(names)}" if names else ""
