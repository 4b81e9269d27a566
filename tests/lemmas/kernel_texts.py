"""What the kernel writes, and what it claims, with names in the place of its caps, factors and bounds."""

from fractions import Fraction
from unittest.mock import patch

from sqlglot import exp, parse_one

from rules.kernel import forms, measures, source, summand
from rules.kernel.bounded import RowLadder
from rules.kernel.forms import Frame
from rules.kernel.measures import Caps, Measure, Products, Sensitivity, Sum, sensitivity
from rules.kernel.source import Columns, Source, Term
from rules.kernel.special.marginals import Counted, LabelBins, MarginalsStatement, bounded_marginals
from rules.kernel.summand import Lattice, Summand
from tests.kernel.facts import column, rows_of_facts, tally
from tests.lemmas.written import Name

CAPS = Caps(Name("m"), Name("K"), scales_rows=True, scales_groups=True)
_X, _Y = (Summand(column("i"), Lattice(Fraction(1), 0, 1)), Summand(column("s"), Lattice(Fraction(1), 0, 1)))


def value_of(measure: Measure) -> str:
    """What a unit adds to one of its groups: s0 is the sum there, c its rows in all, d0 its groups in all."""
    term = Term(0, measure, "v", "")
    frame = Frame(Source("", (), (term,), True, False, True), CAPS, (Name("F"),))
    return forms._value(frame, term)


def total_of(measure: Sum) -> str:
    """A measure over a unit's only row, which adds v."""
    return forms._plain(Term(0, measure, "v", ""))


def claimed_of(measure: Measure) -> Sensitivity:
    """How far the kernel says that a unit moves it, with a factor F."""
    with patch.object(measures, "_factor", lambda times, reach: Name("F")):
        return sensitivity(measure, CAPS)


class _Read(Columns):
    """Columns whose integers are named by the column."""

    def __init__(self) -> None:
        pass

    def summand(self, of: Summand) -> str:
        return "q" if of.expression == _X.expression else "r"


def named_summand(which: str) -> Summand:
    """Of two columns, with bounds that have names. No check of its bounds can read these."""
    made = Summand((_X if which == "q" else _Y).expression, Lattice(Fraction(1), 0, 1))
    lattice = Lattice(Fraction(1), Name(f"low_{which}"), Name(f"high_{which}"))
    object.__setattr__(made, "lattice", lattice)
    return made


def capped_sum() -> Sum:
    """A sum of which a unit adds b at most."""
    made = Sum(named_summand("q"), total=1)
    object.__setattr__(made, "total", Name("b"))
    return made


def moment(measure: Sum | Products) -> str:
    """What a row with the integers q and r adds."""
    return source._value_and_condition(measure, _Read(), ())[0]


def clamped() -> str:
    """The integer of a row, whatever it was before."""
    return summand.clamped("x", Lattice(Fraction(1), Name("low"), Name("high")))


def seen() -> str:
    """The same of a table's own column that has a value."""
    (branch,) = parse_one(summand._seen("true", "x", named_summand("q").lattice), dialect="postgres").find_all(exp.If)
    return str(branch.args["true"].sql(dialect="postgres"))


def cell() -> str:
    """How many of a unit's n rows count in a cell of a marginal that has the mask 0 and the cap s."""
    bins, cap = LabelBins(column("a"), ("1",)), 7
    counted = (Counted((0,), cap),)
    sql = bounded_marginals(rows_of_facts(), MarginalsStatement(rows_of_facts().script, (bins,), counted, 30)).sql
    (capped,) = (node for node in parse_one(sql, dialect="postgres").find_all(exp.Sum) if node.find(exp.Case))
    return str(capped.this.sql(dialect="postgres")).replace(f"THEN {cap}", "THEN s")


def part_of_step(rungs: tuple[int, ...]) -> str:
    """The part of the step to its rung that a unit has passed."""
    sql = tally(rows_of_facts(), (), [RowLadder(rungs)], 30).sql
    (case,) = (node for node in parse_one(sql, dialect="postgres").find_all(exp.Case) if "rungs" in node.sql())
    return str(case.args["ifs"][0].args["true"].sql(dialect="postgres"))
