"""The SQL of bounded statements, in several forms that compute the same integers: which one runs is advice.

Every form is a union of parts: selects of the keys and of some measures. Their numbers are added by group, as
numeric, and become bigints last: to saturate at ±2^62 after the last addition is a 1-Lipschitz function of each number,
and moves no difference further.

A *pair* is a unit and a group in which it has rows. There is one row for each pair, so what a unit adds to a group is
computed in one place, from numbers of that unit alone: c, its rows in all groups, d, its groups, and rn, the place of
the group among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rules.kernel.added import saturated
from rules.kernel.keys import Found
from rules.kernel.measures import Caps, Distinct, DistinctMeasure, DistinctSum, DistinctValues, RowMeasure, Sum, Units
from rules.kernel.source import Source, Term

_ONCE = {"beyond": "MATERIALIZED "}  # or each worker of a parallel plan would look for them among all rows

Form = Literal["one row", "corrected", "candidates", "pairs"]
Steps = tuple[tuple[str, str], ...]  # common table expressions: names and queries


@dataclass(frozen=True, slots=True)
class Frame:
    """Hold what all parts of a statement share: rows, caps, and the factor of each measure."""

    source: Source
    caps: Caps
    factors: tuple[int, ...]

    def part(self, values: Mapping[str, str], source: str, condition: str = "") -> str:
        """The keys and every measure, 0 where these values have none, of one source by group."""
        names = self.source.names
        items = [*names, *(f"{values.get(term.name, '0')} AS {term.name}" for term in self.source.terms)]
        return f"SELECT {', '.join(items)} FROM {source}{condition}{grouped(names)}"

    def by_unit(self, aggregate: str, alone: str) -> str:
        """An aggregate over all groups of a unit, beside each; without keys a unit has one, and no window is needed."""
        return f"({aggregate} OVER (PARTITION BY u))" if self.source.keys else alone

    def share(self, term: Term) -> str:
        """g of one unit and group, as a bigint, from c rows of the unit in all.

        Where c ≤ m, |F·s| ≤ F·m·M ≤ 2^60. Else F·m·s/c is as small, and computed as numeric, which div() truncates.
        """
        factor = self.factors[term.number]
        whole = f"{factor} * {term.summed}::int8"
        if not self.caps.scales_rows:
            return whole
        scaled = f"div({term.summed}::numeric * {factor * self.caps.rows}, c)::int8"
        return f"CASE WHEN c <= {self.caps.rows} THEN {whole} ELSE {scaled} END"


def statement_sql(frame: Frame, form: Form, *, candidates: str | None = None, threshold: int | None = None) -> str:
    """The whole statement; of found groups only those that the measure with the threshold may let out."""
    source = frame.source
    steps, parts = _parts(frame, form, candidates)
    earlier = "".join(f", {name} AS {_ONCE.get(name, '')}({sql})" for name, sql in steps)
    shown = [*source.shown, *(saturated(f"sum({term.name})") for term in source.terms)]
    by = grouped(source.names) if shown else " GROUP BY ()"  # or else there would be one for each row
    having = "" if threshold is None else f" HAVING sum(x{threshold}) > 0"
    return (
        f"WITH r AS NOT MATERIALIZED ({source.sql}){earlier} "
        f"SELECT {', '.join(shown)} FROM ({' UNION ALL '.join(parts)}) AS t{by}{having}"
    )


def grouped(names: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(names)}" if names else ""


def per_pair(frame: Frame, terms: Sequence[Term], source: str) -> str:
    """One row for each unit and group: its rows there, and what they add up to."""
    names = ["u", *frame.source.names]
    sums = [f"{term.total} AS {term.summed}" for term in terms if term.where or not isinstance(term.measure, Units)]
    return f"SELECT {', '.join([*names, 'count(*) AS n', *sums])} FROM {source}{grouped(names)}"


def with_rows(frame: Frame, pairs: str) -> str:
    """Pairs, and beside each the unit's rows in all groups."""
    return f"SELECT *, {frame.by_unit('sum(n)', 'n')}::int8 AS c FROM {pairs}"


def _parts(frame: Frame, form: Form, candidates: str | None) -> tuple[Steps, list[str]]:
    terms = frame.source.terms
    if form == "one row":
        return (), [_one_row(frame)]
    summed = [term for term in terms if isinstance(term.measure, RowMeasure)]
    units = [term for term in terms if isinstance(term.measure, Units)]
    different = [_different(frame, term) for term in terms if isinstance(term.measure, DistinctMeasure)]
    steps: Steps = ()
    parts: list[str] = []
    if form != "pairs" and summed:
        steps, parts = _corrected(frame, summed, candidates if form == "candidates" else None)
        summed = []
    if summed or units:
        more, part = _pairs(frame, [*summed, *units])
        steps, parts = (*steps, *more), [*parts, part]
    return steps, [*parts, *different] or [frame.part({}, "r")]  # without measures, the groups that there are


def _one_row(frame: Frame) -> str:
    """A plain GROUP BY, where a unit has at most one row in all.

    It is then in one group at most, and C ≤ 1 ≤ m: nothing is scaled, cut or ranked, and Σ over its rows is g. Listed
    keys keep this, since a list is a function of a row's values. Where rows have no unit, each row is one.
    """
    return frame.part({term.name: _plain(term) for term in frame.source.terms}, frame.source.once)


def _plain(term: Term) -> str:
    """A measure over rows of which each is a unit's only one. What it adds to a capped sum is clamped to the cap."""
    match term.measure:
        case Distinct() | DistinctValues():
            return f"count(DISTINCT {term.value}){term.filtered}"
        case DistinctSum():
            return f"sum(DISTINCT {term.value}){term.filtered}"
        case Sum(total=int() as total):
            clamped = f"least(greatest({term.value}, -{total}), {total})"
            return f"sum(CASE WHEN {term.value} IS NOT NULL THEN {clamped} END){term.filtered}"
    return term.total


def _corrected(frame: Frame, terms: Sequence[Term], candidates: str | None) -> tuple[Steps, list[str]]:
    """Sums over all rows, as if no unit had more than m, and corrections for the units that have.

    The plain part has Σ_u F·s_u of each group, the correction Σ_u (trunc(F·m·s_u/C) − F·s_u) over units with C > m:
    what remains of each unit is g. Both read the rows, so the rows must be the same twice: see `Rows`.

    Units beyond m are looked for among the rows, or in a superset of the rows. In a superset, every unit beyond m is
    beyond m too; C is then counted anew, over the rows themselves, and those with C ≤ m are corrected by nothing.
    """
    factors = frame.factors
    whole = {term.name: f"{factors[term.number]}::numeric * {term.total}" for term in terms}
    among = "r" if candidates is None else f"({candidates}) AS s WHERE u IS NOT NULL"
    beyond = f"SELECT u FROM {among} GROUP BY u HAVING count(*) > {frame.caps.rows}"
    few = per_pair(frame, terms, "r JOIN beyond USING (u)")
    values = {  # 0 where c ≤ m
        term.name: f"sum({frame.share(term)} - {factors[term.number]}::numeric * {term.summed})" for term in terms
    }
    steps = (("beyond", beyond), ("corrected", with_rows(frame, f"({few}) AS p")))
    return steps, [frame.part(whole, frame.source.once), frame.part(values, "corrected")]


def _different(frame: Frame, term: Term) -> str:
    """Different values by group, of which each unit brings at most m pairs of group and value.

    They cannot be scaled: a value counts once, however many units have it. So m triples (unit, group, value) of a unit
    are kept, over all groups, in an order by a hash that is total because triples are unique.
    """
    source = frame.source
    names = ", ".join([*source.names, "v"])
    where = f" AND {term.where}" if term.where else ""
    triples = ", ".join(["u", *source.names, f"{term.value} AS v"])
    distinct = f"SELECT DISTINCT {triples} FROM r WHERE {term.value} IS NOT NULL{where}"
    order = f"PARTITION BY u ORDER BY {source.hashed('v')}, {names}"
    ranked = f"SELECT {names}, row_number() OVER ({order}) AS rn FROM ({distinct}) AS d"
    total = "sum(DISTINCT v)" if isinstance(term.measure, DistinctSum) else "count(DISTINCT v)"
    return frame.part({term.name: total}, f"({ranked}) AS e", f" WHERE rn <= {frame.caps.rows}")


def _pairs(frame: Frame, terms: Sequence[Term]) -> tuple[Steps, str]:
    """One reading of the rows, by unit and group: the form for every kind of key, and for counts of units.

    Rows are scaled by m/c. Units of listed groups are scaled too, F·K'/max(d, K') in each group. Where groups are
    found, whole groups are wanted: only K' of a unit's groups count it, in an order by a hash that is total, since
    pairs are unique; all its rows count in all its groups, for m alone bounds them.

    Found groups may then be let out by a threshold over that count. A group is a candidate if the count is at least 1.
    Without one unit, all others keep their groups, for rn looks at one unit alone. So at most K' candidates are there
    because of it, and it is the only unit counted in them. Given that the noise lets none of these pass, both databases
    answer over the same groups, in which rows move by at most m·M. Over a list that is known no noise decides: its
    groups come whoever counts in them.
    """
    steps = [("pairs", per_pair(frame, terms, frame.source.once))]
    measured = _measured(frame, terms)
    if measured:
        steps.append(("units", f"SELECT *, {', '.join(measured)} FROM pairs"))
    capped = [term for term in terms if _cap(frame, term) is not None]
    if capped:
        shares = ", ".join(f"{frame.share(term)} AS w{term.number}" for term in capped)
        steps.append(("shares", f"SELECT *, {shares} FROM {steps[-1][0]}"))
        sums = (
            f"{frame.by_unit(f'sum(abs(w{term.number}))', f'abs(w{term.number})')} AS t{term.number}" for term in capped
        )
        steps.append(("totals", f"SELECT *, {', '.join(sums)} FROM shares"))
    return tuple(steps), frame.part({term.name: f"sum({_value(frame, term)})" for term in terms}, steps[-1][0])


def _measured(frame: Frame, terms: Sequence[Term]) -> list[str]:
    """List what is known of a unit beside each of its pairs."""
    measured = []
    if frame.caps.scales_rows and any(isinstance(term.measure, RowMeasure) for term in terms):
        measured.append(f"{frame.by_unit('sum(n)', 'n')}::int8 AS c")
    units = [term for term in terms if isinstance(term.measure, Units)]
    for unit in units if frame.caps.scales_groups else ():
        here = f" FILTER (WHERE {unit.summed} > 0)" if unit.where else ""
        measured.append(f"{frame.by_unit(f'count(*){here}', '1')} AS d{unit.number}")
    if units and _is_found(frame):
        order = ", ".join([frame.source.hashed(), *frame.source.names])
        measured.append(f"row_number() OVER (PARTITION BY u ORDER BY {order}) AS rn")
    return measured


def _is_found(frame: Frame) -> bool:
    return any(isinstance(key, Found) for key in frame.source.keys)


def _cap(frame: Frame, term: Term) -> int | None:
    """F·b: the cap of what a unit adds to a sum over all groups."""
    total = term.measure.total if isinstance(term.measure, Sum) else None
    return None if total is None else frame.factors[term.number] * total


def _value(frame: Frame, term: Term) -> str:
    """Write what a pair adds to a measure."""
    if isinstance(term.measure, Units):
        return _unit(frame, term)
    cap = _cap(frame, term)
    if cap is None:
        return frame.share(term)
    share, total = f"w{term.number}", f"t{term.number}"
    return f"CASE WHEN {total} <= {cap} THEN {share} ELSE div({share}::numeric * {cap}, {total})::int8 END"


def _unit(frame: Frame, term: Term) -> str:
    most = frame.caps.groups
    value, conditions = "1", [f"{term.summed} > 0"] if term.where else []
    if _is_found(frame):
        conditions.append(f"rn <= {most}")
    elif frame.caps.scales_groups:
        value = f"{frame.factors[term.number] * most}::int8 / greatest(d{term.number}, {most})"
    return f"CASE WHEN {' AND '.join(conditions)} THEN {value} ELSE 0 END" if conditions else value
