"""Hostile statements at random: templates of allowed words in each other, in conditions and computed columns."""

from random import Random

from rules.frozen import replace
from rules.kernel.bounded import Statement
from rules.kernel.keys import Found
from rules.kernel.measures import Count, Units
from rules.kernel.script import Call, Correlated, Filter, Join, PerUnit, Project, Script, Semi, UnionAll
from rules.values.expression import FALSE, TRUE, Apply, Column, Constant, Expression
from rules.values.types import BOOLEAN, FLOAT8, INT4, INT8, NUMERIC, TEXT, Type
from tests.kernel.hostile import COUNTS, PEOPLE, STAYS, VISITS, made, of, told

TEMPLATES = (
    "{0} OR {1}", "{0} OR TRUE", "{0} AND {1}", "({0} OR {1})", "NOT {0}", "{0} IS NULL", "{0} IS NOT NULL OR {1}",
    "{0} = {1}", "{0} < {1}", "{0} IN ({1}, {0})", "{0} IS DISTINCT FROM {1}", "CASE WHEN {0} THEN {1} END",
    "{0} - {1}", "-{0}", "*{0}", "/{0}", "{0} || {1}", "{0}, {1}", "{0} AS name", "{0}::text", "({0})",
    "coalesce({0}, {1})", "{0} ORDER BY {1}", "{0} GROUP BY {1}", "{0} )", "-\n{0}", "array[{0}", "{0}{1}", "day",
    "{0} = day", "name", '"C"', "({0}).text", "greatest({0}, {1})", "({0})::numeric",
)  # fmt: skip
CONSTANTS = (
    TRUE, FALSE, Constant(INT4, "-5"), Constant(TEXT, "\n OR TRUE --"), Constant(TEXT, "*/ OR TRUE /*"),
    Constant(TEXT, "x\" OR 'y"), Constant(TEXT, "a\\' OR TRUE --"),
)  # fmt: skip
LABEL = Type("enum", name="numeric")
KINDS = (BOOLEAN, INT4, INT8, NUMERIC, TEXT, FLOAT8, LABEL, Type("other", name="text"))
OF_VISITS = (VISITS["n"], VISITS["cost"], VISITS["kind"])
OF_STAYS = (STAYS["person_id"], STAYS["day"])
OF_PEOPLE = (COUNTS["n"], PEOPLE["city"], PEOPLE["level"])


def statement(random: Random) -> Statement:
    """One statement, which may be refused, or be no SQL."""
    most = random.choice((1, 2))
    match random.randrange(9):
        case 0:
            return of(Join("inner", COUNTS.scan, PEOPLE.scan, (), condition(random, *OF_PEOPLE)), most=most)
        case 1:
            return of(Join("left", COUNTS.scan, PEOPLE.scan, (), condition(random, *OF_PEOPLE)), most=most)
        case 2:
            met = condition(random, COUNTS["n"], *OF_VISITS)
            return of(Semi(COUNTS.scan, VISITS.scan, (), met, random.random() < 0.5), most=most)
        case 3:
            return of(Filter(VISITS.scan, condition(random, *OF_VISITS)), most=most)
        case 4:
            met = condition(random, COUNTS["n"], *OF_VISITS)
            rows = Correlated(COUNTS.scan, VISITS.scan, (), met, ((90, Call("count(*)", (), INT8)),))
            return of(rows, (), (Count(made("({0} > 1)", Column(90, INT8))),), most=most)
        case 5:
            value = expression(random, *OF_STAYS)
            return of(PerUnit(STAYS.scan, ((90, value),), ()), most=most)
        case 6:
            value = expression(random, *OF_VISITS)
            return spelled(random, PerUnit(VISITS.scan, ((90, value),), ()), value.type)
        case 7:
            value, kind = expression(random, *OF_VISITS), random.choice(KINDS)
            columns = ((93, INT4, (VISITS["person_id"].id,)), (92, kind, (91,)))
            union = UnionAll((Project(VISITS.scan, ((91, value),)),), columns, 93)
            call = Call(random.choice(("min({0})", "max({0})")), (Column(92, kind),), kind)
            keyed = PerUnit(union, ((90, Column(92, kind)),), ())
            return spelled(random, random.choice((keyed, PerUnit(union, (), ((90, call),)))), kind)
    value = expression(random, *OF_VISITS)
    return of(Project(VISITS.scan, ((90, value),)), (Found(Column(90, value.type)),), (Units(),), most=20)


def spelled(random: Random, rows: Script, kind: Type) -> Statement:
    """The rows that are counted by how column 90 is spelled."""
    return told(rows, kind, random.choice(("5.0", "5.00", "5", "a", "true", "1")))


def condition(random: Random, *columns: Column) -> Expression:
    value = expression(random, *columns)
    if isinstance(value, Apply) and random.random() < 0.6:
        return replace(value, type=BOOLEAN)
    return value if value.type == BOOLEAN else made("{0} IS NULL", value)


def expression(random: Random, *columns: Column, depth: int = 0) -> Expression:
    chance = random.random()
    if chance < 0.25 or depth == 3:
        return random.choice(columns)
    if chance < 0.4:
        return random.choice(CONSTANTS)
    arguments = (expression(random, *columns, depth=depth + 1) for _ in range(2))
    return made(random.choice(TEMPLATES), *arguments, kind=random.choice(KINDS))
