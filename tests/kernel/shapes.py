"""Relations of every constructor, picked by hand so that a careless one shows: as scripts, or as SQL to plan."""

from dataclasses import dataclass
from fractions import Fraction

from rules.kernel.bounded import Statement
from rules.kernel.keys import Found, Key, Listed
from rules.kernel.measures import Count, Measure, Sum, Units
from rules.kernel.script import (
    Call,
    Correlated,
    Filter,
    Join,
    JoinKind,
    PerUnit,
    Project,
    Script,
    Semi,
    SortKey,
    UnionAll,
    Window,
)
from rules.kernel.summand import Lattice, Summand
from rules.values.expression import TRUE, Apply, Column, Constant
from rules.values.types import BOOLEAN, INT4, INT8, NUMERIC, TEXT
from tests.kernel.world import Table

PEOPLE, COUNTS, PARTLY = Table("people", 1), Table("counts", 61), Table("partly", 65)
V, W = Table("visits", 11), Table("visits", 21)
ITEMS, PARTS, SHARES = Table("items", 31, unit=39), Table("parts", 101, unit=109), Table("shares", 71)
WAITS, MARKS = Table("waits", 111), Table("marks", 121)
PLACES, SPOTS = Table("places", 41), Table("spots", 51)
LOANS, NOTES, BILLS = Table("loans", 111, unit=119), Table("notes", 121), Table("bills", 131)
NUMBER, TOTAL, MARK = Column(81, INT8), Column(82, NUMERIC), Column(83, BOOLEAN)
ROWS = Call("count(*){over}", (), INT8)
SUM = Call("sum({0}){over}", (W["cost"],), NUMERIC)
FIRST = Call("row_number(){over}", (), INT8)
_EARLIER = Apply("<", "({0} < {1})", (V["id"], W["id"]), BOOLEAN)
MONEY = Lattice(Fraction(1, 100), 0, 1000)
WHOLE = Lattice(Fraction(1), 0, 9)


@dataclass(frozen=True)
class Shape:
    """A relation and a statement over it. One that is refused has to break a claim, were it not."""

    rows: Script
    measures: tuple[Measure, ...] = (Count(),)
    keys: tuple[Key, ...] = ()
    rows_per_unit: int = 2
    is_refused: bool = False
    is_new: bool = False  # needs columns that are computed when they are read

    @property
    def statement(self) -> Statement:
        return Statement(self.rows, self.keys, self.measures, self.rows_per_unit)


def _equal(one: Column, other: Column) -> tuple[tuple[int, int], ...]:
    return ((one.id, other.id),)


def _money(column: Column) -> Sum:
    return Sum(Summand(column, MONEY))


def _joined(kind: JoinKind, unit: int | None = None) -> Join:
    """Visits that are alike, of which no equality says that they are one person's."""
    return Join(kind, V.scan, W.scan, _equal(V["n"], W["n"]), _EARLIER, unit)


def _window(source: Script, call: Call, order: Column, partition: tuple[Column, ...], frame: str) -> Window:
    return Window(source, partition, (SortKey(order),), ((NUMBER.id, call, frame),))


_FIRST_OF_UNIT = Apply("=", "({0} = 1)", (NUMBER,), BOOLEAN)
_FIRST_THREE = Apply("<=", "({0} <= 3)", (NUMBER,), BOOLEAN)
# Without its key, so that visits can tie in all columns; few enough for a sort to keep those that tie as they come.
_EQUAL = Filter(W.scan, Apply("=", "({0} = 5)", (W["cost"],), BOOLEAN))
_LOOSE = UnionAll((_EQUAL,), tuple((c.id + 70, c.type, (c.id,)) for c in (W["person_id"], W["n"], W["cost"])), 92)
_N, _COST = Column(93, INT4), Column(94, NUMERIC)
_KINDS = Listed((V["kind"],), tuple((text,) for text in ("a", "b", "zz", None)))

SHAPES: dict[str, Shape] = {
    "visits": Shape(V.scan, (Count(), _money(V["cost"]), Units()), (_KINDS,)),
    "found kinds": Shape(V.scan, (Count(), Units()), (Found(V["kind"]),), 1),
    "a backslash": Shape(
        Filter(V.scan, Apply("<>", "({0} <> {1})", (V["kind"], Constant(TEXT, r"\x61")), BOOLEAN)),  # an a, in E'…'
    ),
    "inner join": Shape(_joined("inner")),
    "left join": Shape(_joined("left"), (Count(), _money(W["cost"]))),
    "right join": Shape(_joined("right")),
    "full join": Shape(_joined("full", 99)),
    "EXISTS": Shape(Semi(V.scan, W.scan, _equal(V["n"], W["n"]), _EARLIER)),
    "NOT EXISTS": Shape(Semi(V.scan, W.scan, _equal(V["n"], W["n"]), _EARLIER, negated=True)),
    "IN as a value": Shape(
        Semi(V.scan, W.scan, (), Apply("<", "({0} < {1})", (V["n"], W["n"]), BOOLEAN), mark=MARK.id), (Count(MARK),)
    ),
    "correlated": Shape(Correlated(V.scan, W.scan, _equal(V["n"], W["n"]), TRUE, ((TOTAL.id, SUM),)), (_money(TOTAL),)),
    "per unit": Shape(PerUnit(W.scan, (), ((NUMBER.id, ROWS), (TOTAL.id, SUM))), (_money(TOTAL),)),
    "per unit and kind": Shape(
        PerUnit(W.scan, ((95, W["kind"]),), ((NUMBER.id, ROWS),)), (Count(), Sum(Summand(NUMBER, WHOLE))), (), 1
    ),
    "per unit and cost": Shape(PerUnit(W.scan, ((95, W["cost"]),), ((NUMBER.id, ROWS),))),
    "first visit": Shape(
        Filter(_window(V.scan, FIRST, V["n"], (V["kind"],), ""), _FIRST_OF_UNIT), (_money(V["cost"]),)
    ),
    "first of equal visits": Shape(Filter(_window(_LOOSE, FIRST, _N, (), ""), _FIRST_OF_UNIT), (_money(_COST),)),
    "first of equal intervals": Shape(
        Filter(_window(WAITS.scan, FIRST, WAITS["person_id"], (), ""), _FIRST_OF_UNIT),
        (Count(Apply("", "(extract(month from {0}) = 1)", (WAITS["wait"],), BOOLEAN)),),
    ),
    "first of values that a function of the owner shows": Shape(
        Filter(_window(MARKS.scan, FIRST, MARKS["person_id"], (), ""), _FIRST_OF_UNIT),
        (Count(Apply("", "({0} IS NULL)", (MARKS["mark"],), BOOLEAN)),),
        is_refused=True,
    ),
    "units beyond a cap by what few columns say": Shape(
        UnionAll(
            (
                Filter(
                    Filter(_window(WAITS.scan, FIRST, WAITS["person_id"], (), ""), _FIRST_THREE),
                    Apply("", "({0} = 5)", (WAITS["day"],), BOOLEAN),
                ),
            ),
            ((95, INT4, (WAITS["person_id"].id,)), (96, INT4, (WAITS["level"].id,))),
            95,
        ),
        (Sum(Summand(Column(96, INT4), WHOLE)),),
        (Listed((Column(95, INT4),), tuple((text,) for text in "12345")),),
    ),
    "running sum": Shape(
        _window(W.scan, SUM, W["n"], (W["kind"],), "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    ),
    "union": Shape(
        UnionAll(
            (V.scan, W.scan),
            ((95, INT4, (V["person_id"].id, W["person_id"].id)), (96, NUMERIC, (V["cost"].id, W["cost"].id))),
            95,
        )
    ),
    "places": Shape(Join("left", V.scan, PLACES.scan, _equal(V["place"], PLACES["id"]), TRUE)),
    "spots": Shape(
        Join(
            "inner",
            Join("inner", V.scan, PLACES.scan, _equal(V["place"], PLACES["id"]), TRUE),
            SPOTS.scan,
            _equal(PLACES["region"], SPOTS["region"]),
            TRUE,
        ),
        rows_per_unit=3,
    ),
    "one row and spots": Shape(
        Join("inner", PEOPLE.scan, SPOTS.scan, _equal(PEOPLE["level"], SPOTS["size"]), TRUE), rows_per_unit=1
    ),
    "items": Shape(ITEMS.scan, (Count(), _money(ITEMS["amount"]))),
    "parts and some of their items": Shape(
        Join(
            "left",
            PARTS.scan,
            ITEMS.scan,
            _equal(PARTS["item_id"], ITEMS["id"]),
            Apply(">", "({0} > {1})", (PARTS["size"], ITEMS["id"]), BOOLEAN),
        )
    ),
    "parts of items": Shape(Join("inner", PARTS.scan, ITEMS.scan, _equal(PARTS["item_id"], ITEMS["id"]), TRUE)),
    "parts of like numbers": Shape(Join("inner", PARTS.scan, ITEMS.scan, _equal(PARTS["size"], ITEMS["id"]), TRUE)),
    "parts of other keys": Shape(Join("inner", PARTS.scan, ITEMS.scan, _equal(PARTS["id"], ITEMS["id"]), TRUE)),
    "one row": Shape(COUNTS.scan, (Count(), Units()), (), 5),
    "one row and a cap of its total": Shape(COUNTS.scan, (Sum(Summand(COUNTS["n"], WHOLE), total=2),)),
    "per city of a person": Shape(PerUnit(Join("inner", V.scan, PEOPLE.scan, (), TRUE), ((95, PEOPLE["city"]),), ())),
    "per number of others": Shape(
        PerUnit(Join("left", V.scan, COUNTS.scan, _equal(V["n"], COUNTS["n"])), ((95, COUNTS["n"]),), ())
    ),
    "per region of spots": Shape(
        PerUnit(
            Join("inner", PEOPLE.scan, SPOTS.scan, _equal(PEOPLE["level"], SPOTS["size"])), ((95, SPOTS["region"]),), ()
        )
    ),
    "per number of a kind": Shape(
        PerUnit(PerUnit(W.scan, ((95, W["kind"]),), ((NUMBER.id, ROWS),)), ((96, NUMBER),), ()), rows_per_unit=5
    ),
    "per half": Shape(
        PerUnit(Project(V.scan, ((97, Apply("/", "({0} / 2)", (V["n"],), INT4)),)), ((96, Column(97, INT4)),), ()),
        rows_per_unit=5,
    ),
    "one row of two": Shape(Join("inner", PEOPLE.scan, COUNTS.scan, (), TRUE), rows_per_unit=5),
    "one row of many": Shape(Join("inner", PEOPLE.scan, V.scan, (), TRUE)),
    "rows by a coarser key": Shape(LOANS.scan, (Count(), Units()), (), 5),
    "units of two exact types": Shape(Join("full", BILLS.scan, V.scan, _equal(BILLS["n"], V["n"]), TRUE, 99)),
    "units that a union rounds": Shape(
        UnionAll((BILLS.scan,), ((95, INT4, (BILLS["person_id"].id,)), (96, INT4, (BILLS["n"].id,))), 95),
        keys=(Listed((Column(96, INT4),), (("1",), ("2",))),),
        is_refused=True,
    ),
    "units in another type": Shape(NOTES.scan, (Count(), Units()), is_refused=True),
    "a partial key": Shape(PARTLY.scan),
    "public rows kept": Shape(
        Join("right", V.scan, PLACES.scan, _equal(V["place"], PLACES["id"]) + _equal(V["n"], PLACES["id"]), TRUE),
        is_refused=True,
    ),
    "public rows filtered": Shape(
        Join("inner", PEOPLE.scan, Semi(PLACES.scan, V.scan, _equal(PLACES["id"], V["place"]), TRUE), (), TRUE),
        is_refused=True,
    ),
    "public rows counted": Shape(
        Join(
            "inner",
            PEOPLE.scan,
            Correlated(PLACES.scan, V.scan, _equal(PLACES["id"], V["place"]), TRUE, ((NUMBER.id, ROWS),)),
        ),
        (Sum(Summand(NUMBER, WHOLE)),),
        is_refused=True,
    ),
    "computed when read": Shape(SHARES.scan, (Sum(Summand(SHARES["whole"], WHOLE)),), is_refused=True, is_new=True),
    "a template that selects": Shape(
        Project(V.scan, ((97, Apply("x", "(SELECT count(*) > 11 FROM public.visits)", (), BOOLEAN)),)), is_refused=True
    ),
}

ASKED = (
    "SELECT sum(CASE WHEN n <> 0 THEN 10 / n END), avg(cost / n) FROM visits WHERE n <> 0",
    "SELECT count(*) FROM parts AS p JOIN items AS i ON i.id = p.item_id "
    "WHERE p.size <> i.amount - i.amount AND 10 / p.size > 1",
)
