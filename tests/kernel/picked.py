"""Rows and questions picked by hand, so that a careless bound shows at once: what others draw at random for long."""

from fractions import Fraction

import psycopg

from rules.kernel.bounded import GroupLadder, RowLadder, SumLadder
from rules.kernel.forms import Form
from rules.kernel.keys import Bins, Found, Listed
from rules.kernel.measures import Case, Count, Distinct, DistinctSum, Products, Sum, Units, Values
from rules.kernel.summand import Lattice, Summand
from rules.values.expression import Apply
from tests.kernel.claims import check_integers, check_moves, check_tally
from tests.kernel.facts import COLUMNS, HUGE, Data, Row, column, is_true, load, rows_of_facts, rows_that_may_change
from tests.kernel.picked_blocks import check_blocks
from tests.kernel.statements import FORMS, SUMMANDS, Question


def _row(**cells: str | None) -> Row:
    return dict.fromkeys(COLUMNS) | cells


_HIGH = _row(
    a="1", b="x", n=HUGE, f="1e308", r="3e38", i="9223372036854775807", s="32767", d="5874897-12-31", at="infinity",
    tz="294276-12-31", ok="true", p="9999.99",
)  # fmt: skip
_LOW = _row(
    a="2", b="y", n="-Infinity", f="-Infinity", r="-3e38", i="-9223372036854775808", s="-32768", d="-infinity",
    at="4713-01-01 BC", tz="-infinity", ok="true", p="-9999.99",
)  # fmt: skip
_SMALL = _row(
    a="1", b="x", n="5.00", f="-0", r="0.1", i="1", s="4", d="2024-02-29", at="2024-03-01", ok="false", p="0.05"
)
_NAN = _row(a="3", b="x", n="NaN", f="NaN", r="NaN", ok="true", p="NaN")
DATA: Data = {
    1: [_HIGH] * 40,
    2: [_LOW, _LOW | {"a": "3"}, _LOW | {"a": "-7"}, _LOW | {"a": None, "b": None}, _SMALL, _SMALL | {"a": "2"}],
    3: [_SMALL | {"n": "5.0", "f": "0"}, _SMALL | {"a": "3", "b": "long" * 2100}, _HIGH | {"ok": None}],
    4: [_NAN],
    None: [_HIGH, _SMALL],
}
_LISTED = Listed(
    (column("a"),), tuple((text,) for text in ("1", "2", "1", "44", "3"))
)  # without -7 and NULL, and one twice
_BOTH = Listed(
    (column("a"), column("b")),
    tuple((a, b) for a in ("1", "2", "3", None) for b in ("x", "y", None)),
)
_TRUE = is_true("ok", "{0}")
_WIDEST = Summand(column("i"), Lattice(Fraction(1), -(2**60), 2**60))
_SMALL_SUM = Summand(column("i"), Lattice(Fraction(1), -3, 7))
_FEW = Listed((column("a"),), tuple((text,) for text in ("1", "2", "1", None)))
_PRODUCTS = tuple(summand for summand in SUMMANDS if isinstance(summand.expression, Apply))
_ZONED = Sum(next(summand for summand in SUMMANDS if summand.expression == column("tz")))
_STEADY = tuple(summand for summand in SUMMANDS if summand != _ZONED.summand)
QUESTIONS = (
    Question((_FEW,), (Count(), *map(Sum, _PRODUCTS), Sum(_PRODUCTS[1], centred=True), Units()), 2, None),
    Question((_LISTED,), (Count(), *map(Sum, _STEADY)), 2, None),
    Question((_LISTED,), (Count(), _ZONED), 2, None),
    Question(
        (_BOTH,), (Count(_TRUE), Units(), Units(_TRUE), Values(SUMMANDS[0]), Sum(SUMMANDS[6], centred=True)), 3, 2
    ),
    Question((), (), 2, None),
    Question((), (Sum(_WIDEST), Units(), Products(SUMMANDS[6], SUMMANDS[7])), 1, None),
    Question((Found(column("b")),), (Count(), Units(_TRUE), Units()), 3, 1),
    Question((Found(column("a")),), (Units(_TRUE), Count()), 2, 1),
    Question((Found(column("n")),), (Count(), Units()), 5, None),
    Question((Bins(SUMMANDS[6], 3),), (Count(),), 2, None),
    Question((_LISTED,), (Distinct(column("n")), DistinctSum(_SMALL_SUM), Distinct(column("b"))), 1, None),
    Question((_BOTH,), (Distinct(column("a")), DistinctSum(_SMALL_SUM, centred=True)), 5, 1),
    Question(
        (_LISTED,),
        (
            *(Count(case=Case(0, number)) for number in range(3)),
            *(Sum(SUMMANDS[6], total=2, case=Case(0, number)) for number in range(3)),
            Sum(SUMMANDS[6], total=4),
        ),
        2,
        None,
    ),
    Question(
        (),
        (
            *(Count(case=Case(0, number)) for number in range(2)),
            Sum(SUMMANDS[6], case=Case(0, 0)),
            *(Units(case=Case(0, number)) for number in range(2)),
            *(Distinct(column("a"), case=Case(0, number)) for number in range(2)),
        ),
        2,
        None,
    ),
)
LADDERS = (RowLadder((1, 2, 4, 8)), GroupLadder((1, 2, 3)), SumLadder(Sum(_SMALL_SUM), (1, 3, 9, 27)))


def check_picked(connection: psycopg.Connection) -> None:
    """Raises an AssertionError, or what PostgreSQL says, where a question breaks what its statement claims."""
    load(connection, DATA)
    for question in QUESTIONS:
        check_integers(connection, DATA, question)
        for form in (*FORMS, None):
            check_moves(connection, DATA, question, form)
            _check_readings(question, form)
    check_tally(connection, DATA, QUESTIONS[1], LADDERS)
    single: Data = {unit: rows[:1] if unit is not None else rows for unit, rows in DATA.items()}
    load(connection, single)
    check_integers(connection, single, QUESTIONS[0], single=True)
    check_blocks(connection, DATA)


def _check_readings(question: Question, form: Form | None) -> None:
    """What a moment is can follow from the rules of a time zone, which may be others when the rows are read again."""
    is_corrected = "beyond" in question.statement(rows_of_facts(), form).sql
    assert not (is_corrected and _ZONED in question.measures), "rows that may change are read twice"
    for rows in () if _ZONED in question.measures else rows_that_may_change():
        assert "beyond" not in question.statement(rows, form).sql, "rows that may change are read twice"
    if question is QUESTIONS[1]:
        assert is_corrected == (form != "pairs"), "the forms are not those that are asked for"
