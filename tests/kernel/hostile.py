"""What a planner that was taken over may write, and what its statements do to the claims of the kernel."""

from collections.abc import Sequence

import psycopg

from rules.frozen import replace
from rules.kernel.bounded import Statement
from rules.kernel.keys import Found, Key, Listed
from rules.kernel.measures import Count, Measure, Units
from rules.kernel.script import (
    Call,
    Correlated,
    Filter,
    Join,
    PerUnit,
    Project,
    Script,
    Semi,
    SortKey,
    UnionAll,
    Values,
    Window,
)
from rules.refusal import Refusal
from rules.replay import Kernel
from rules.values.expression import FALSE, TRUE, Apply, Column, Constant, Expression
from rules.values.types import BOOLEAN, FLOAT8, INT4, INT8, NUMERIC, TEXT, Type
from tests.kernel.claims import moved_by
from tests.kernel.locality import PLANS, changed
from tests.kernel.statements import Answer, answer
from tests.kernel.world import UNITS, Table, World

VISITS, PEOPLE, COUNTS, STAYS = Table("visits", 10), Table("people", 30), Table("counts", 50), Table("stays", 60)


def made(template: str, *arguments: Expression, kind: Type = BOOLEAN) -> Apply:
    return Apply("", template, arguments, kind)


def of(rows: Script, keys: Sequence[Key] = (), measures: Sequence[Measure] = (Count(),), *, most: int = 2) -> Statement:
    return Statement(rows, tuple(keys), tuple(measures), most)


ALL = "TRUE) AS s) SELECT (1000000 * count(*))::int8 FROM public.visits --"
ALWAYS = made("{0} OR {0}", TRUE)
BEYOND = made("{0} OR {1} > 7", FALSE, VISITS["n"])
LARGE = made("(({0})::float8 * 0 + 4611686018427387904)", COUNTS["n"], kind=INT8)
THIRDS = made("((({0})::float8 - 5) * 5e15 + 1)", VISITS["cost"], kind=FLOAT8)
BY_ORDER = "1.0000000000000002e+16"  # of 1, 1 and 1e16, added in this order
TWO_DIGITS, BYTES = Type("numeric", 10, 2), Type("other", name="bytea")


def costs(kind: Type) -> Script:
    """Numerics, in a column that is said to be of this type."""
    return Project(VISITS.scan, ((91, made("{0}", VISITS["cost"], kind=kind)),))


def window(kind: Type) -> Script:
    """What is first of them by an order in which some are equal."""
    call = Call("first_value(({0})::text){over}", (Column(91, kind),), TEXT)
    rows = Join("inner", costs(kind), STAYS.scan, (), TRUE)  # of which no key tells rows apart
    return Window(rows, (), (SortKey(made("{0} IS NULL", Column(91, kind))),), ((90, call, ""),))


def per_unit(call: Call) -> Script:
    return PerUnit(VISITS.scan, (), ((90, call),))


def told(rows: Script, kind: Type, text: str = "5.0") -> Statement:
    """The rows that are counted by how column 90 is spelled."""
    return of(rows, (), (Count(made(f"(({{0}})::text = '{text}')", Column(90, kind))),), most=20)


def framed(call: str, frame: str) -> Script:
    """Visits of one cost, of which no key is read, in an order in which all of a unit's are equal."""
    union = UnionAll(
        (Filter(VISITS.scan, made("({0} = 5)", VISITS["cost"])),), ((91, INT4, (11,)), (92, INT4, (12,))), 91
    )
    value = Call(call, (Column(92, INT4),), INT4)
    return Window(union, (), (SortKey(made("({0} IS NULL)", Column(91, INT4))),), ((90, value, frame),))


def first_of(call: str, frame: str) -> Statement:
    """The rows that are counted by which visit comes first."""
    rows = framed(call, frame)
    first = made("({0} = 1 AND {1} = 1)", Column(90, INT4), Column(92, INT4))
    return of(rows, (), (Count(first),), most=20)


UP_TO_HERE = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
NAMED, LABEL = Type("int8", name="numeric"), Type("enum", name="numeric")
LABELS = UnionAll((costs(NUMERIC),), ((93, INT4, (11,)), (92, LABEL, (91,))), 93)
PRICES = Values(
    ((92, LABEL), (94, INT4)), tuple((Constant(LABEL, text), Constant(INT4, "1")) for text in ("5.0", "5.00"))
)
PRICED = Join("inner", VISITS.scan, PRICES, ((VISITS["n"].id, 94),))
STATEMENTS = {
    "a join whose condition has another way out": of(Join("inner", COUNTS.scan, PEOPLE.scan, (), ALWAYS)),
    "an outer join whose condition has one": of(Join("left", COUNTS.scan, PEOPLE.scan, (), ALWAYS)),
    "EXISTS whose condition has one": of(Semi(COUNTS.scan, VISITS.scan, (), BEYOND)),
    "two minus signs that begin a comment": of(
        Filter(VISITS.scan, made("-{0}", made("-{0}", Constant(TEXT, f"\n{ALL}"))))
    ),
    "a slash and a star that begin one": of(
        Filter(VISITS.scan, made("/{0}", made("*{0}", Constant(TEXT, f"*/ {ALL}"))))
    ),
    "labels that are one double": of(COUNTS.scan, [Listed((LARGE,), tuple((str(2**62 + n),) for n in range(9)))]),
    "labels that are one double, of a column": of(
        Project(COUNTS.scan, ((90, LARGE),)), [Listed((Column(90, INT8),), tuple((str(2**62 + n),) for n in range(9)))]
    ),
    "found numbers that are said to be integers": of(
        VISITS.scan, [Found(made("{0}", VISITS["cost"], kind=INT8))], (Units(),), most=20
    ),
    "found numbers that are said to be doubles": of(
        VISITS.scan, [Found(made("{0}", VISITS["cost"], kind=FLOAT8))], (Units(),), most=20
    ),
    "keys within a unit that are said to be integers": told(
        PerUnit(VISITS.scan, ((90, made("{0}", VISITS["cost"], kind=INT4)),), ()), INT4
    ),
    "keys within a unit that are said to be texts": told(
        PerUnit(VISITS.scan, ((90, made("{0}", VISITS["cost"], kind=TEXT)),), ()), TEXT
    ),
    "keys within a unit that are said to have two digits": told(
        PerUnit(costs(TWO_DIGITS), ((90, Column(91, TWO_DIGITS)),), ()), TWO_DIGITS
    ),
    "numbers that a window tells apart as integers": told(window(INT4), TEXT),
    "numbers that a window tells apart as bytes": told(window(BYTES), TEXT),
    "the least of numbers as it is spelled": told(per_unit(Call("min({0})", (VISITS["cost"],), NUMERIC)), NUMERIC),
    "its digits": told(per_unit(Call("scale(min({0}))", (VISITS["cost"],), INT4)), INT4, "1"),
    "the most frequent number as it is spelled": told(
        per_unit(Call("mode() WITHIN GROUP (ORDER BY {0})", (VISITS["cost"],), NUMERIC)), NUMERIC
    ),
    "a sum of doubles": told(per_unit(Call("sum({0})", (THIRDS,), FLOAT8)), FLOAT8, BY_ORDER),
    "a sum of what becomes doubles in it": told(
        per_unit(Call("sum((({0})::float8 - 5) * 5e15 + 1)", (VISITS["cost"],), FLOAT8)), FLOAT8, BY_ORDER
    ),
    "a sum of doubles that are said to be numbers": told(
        per_unit(Call("sum({0})", (replace(THIRDS, type=NUMERIC),), NUMERIC)), NUMERIC, BY_ORDER),
    "one value of several rows": told(
        Correlated(PEOPLE.scan, VISITS.scan, (), TRUE, ((90, Call("{0}", (VISITS["n"],), INT4)),)), INT4
    ),
    "constants of another type than their column's": of(
        Join("inner", COUNTS.scan, Values(((91, INT4),), ((Constant(NUMERIC, "1.0"),),)), (), TRUE)
    ),
    "constants without a column": of(Join("inner", COUNTS.scan, Values((), ((),)))),
    "a union without a column": of(Join("inner", COUNTS.scan, UnionAll((Table("places", 80).scan,), ()))),
    "a union of nothing": of(Join("inner", COUNTS.scan, UnionAll((), ((90, INT4, ()),)))),
    "a union that takes another column for the unit": of(
        UnionAll((VISITS.scan,), ((90, NUMERIC, (VISITS["id"].id,)),), 90), most=1
    ),
    "the number of a row beside what treats equal rows alike": first_of(
        "row_number(){over} + 0 * count({0}){over}", ""
    ),
    "a frame of rows that does not begin as one": first_of("sum({0}){over}", f" {UP_TO_HERE}"),
    "a frame with words behind it": told(
        framed("sum({0}){over}", f"{UP_TO_HERE}) + (SELECT count(*)::integer FROM public.visits"),
        INT4, "13",
    ),
    "found numbers of a column that is said to be of integers": of(
        VISITS.scan, [Found(Column(VISITS["cost"].id, INT4))], (Units(),), most=20
    ),
    "a union of a type with another one's name": of(
        UnionAll((costs(NUMERIC),), ((90, INT4, (11,)), (92, NAMED, (91,))), 90),
        [Found(Column(92, NAMED))],
        (Units(),),
        most=20,
    ),
    "numbers of a union that are said to be labels": told(PerUnit(LABELS, ((90, Column(92, LABEL)),), ()), LABEL),
    "the least of them as it is spelled": told(
        PerUnit(LABELS, (), ((90, Call("min({0})", (Column(92, LABEL),), NUMERIC)),)), NUMERIC
    ),
    "constants that are said to be labels": told(PerUnit(PRICED, ((90, Column(92, LABEL)),), ()), LABEL),
    "a word that is the name of a column, as if it were one value": of(
        PerUnit(STAYS.scan, ((90, made("day", kind=INT4)),), ()), most=1
    ),
    "such a word in quotes": of(PerUnit(STAYS.scan, ((90, made('"C"', kind=INT4)),), ()), most=1),
}  # fmt: skip


def check_hostile(world: World, statement: Statement) -> bool:
    """Return whether it runs; else it is refused, or fails before it reads a row. Then it keeps what is claimed of it.

    Raises an AssertionError, or what PostgreSQL says, where it does not, in any plan and order of rows.
    """
    try:
        bounded = Kernel(world.ground).bounded(statement)
        with world.connection.transaction():
            world.connection.execute(f"EXPLAIN {bounded.sql}".encode())
    except (Refusal, psycopg.ProgrammingError, psycopg.DataError):
        return False
    whole = answer(world.connection, bounded)
    for plan in PLANS:
        with changed(world, plan):
            assert answer(world.connection, bounded) == whole, "told by the plan or by the order of rows"
    for unit in UNITS:
        with changed(world, world.leave.format(unit)):
            less = answer(world.connection, bounded)
        assert _labels(less, whole) or bounded.threshold is None, "labels that come when a unit leaves"
        for number, measured in enumerate(bounded.measures):
            moved = moved_by(bounded, whole, less, number)
            assert sum(map(abs, moved)) <= measured.sensitivity.l1, f"{moved} is more than {measured}"
            assert sum(by**2 for by in moved) <= measured.sensitivity.l2_squared, f"{moved} is more than {measured}"
    return True


def _labels(less: Answer, whole: Answer) -> bool:
    return less.keys() <= whole.keys()
