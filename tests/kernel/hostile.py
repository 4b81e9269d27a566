"""What a planner that was taken over may write, and what its statements do to the claims of the kernel."""

from collections.abc import Sequence

import psycopg

from rules.kernel.bounded import Statement
from rules.kernel.keys import Key
from rules.kernel.measures import Count, Measure
from rules.kernel.replay import Kernel
from rules.kernel.script import Filter, Join, Script, Semi
from rules.refusal import Refusal
from rules.values.expression import FALSE, TRUE, Apply, Constant, Expression
from rules.values.types import BOOLEAN, TEXT, Type
from tests.kernel.claims import moved_by
from tests.kernel.locality import PLANS, changed
from tests.kernel.statements import Answer, answer
from tests.kernel.world import UNITS, Table, World

VISITS, PEOPLE, COUNTS = Table("visits", 10), Table("people", 30), Table("counts", 50)


def made(template: str, *arguments: Expression, kind: Type = BOOLEAN) -> Apply:
    return Apply("", template, arguments, kind)


def of(rows: Script, keys: Sequence[Key] = (), measures: Sequence[Measure] = (Count(),), *, most: int = 2) -> Statement:
    return Statement(rows, tuple(keys), tuple(measures), most)


ALL = "TRUE) AS s) SELECT (1000000 * count(*))::int8 FROM public.visits --"
ALWAYS = made("{0} OR {0}", TRUE)
BEYOND = made("{0} OR {1} > 7", FALSE, VISITS["n"])
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
}


def check_hostile(world: World, statement: Statement) -> None:
    """It is refused, or fails before it reads a row, or keeps what is claimed of it, in every plan and order of rows.

    Raises an AssertionError, or what PostgreSQL says, where it does not.
    """
    try:
        bounded = Kernel(world.ground).bounded(statement)
        with world.connection.transaction():
            world.connection.execute(f"EXPLAIN {bounded.sql}".encode())
    except (Refusal, psycopg.ProgrammingError):
        return
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


def _labels(less: Answer, whole: Answer) -> bool:
    return less.keys() <= whole.keys()
