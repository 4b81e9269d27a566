"""What relations claim, held against rows: those of a unit follow from that unit's rows, in every plan and order."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rules.kernel.statement import Bounded
from rules.refusal import Refusal
from rules.replay import Kernel
from tests.kernel.claims import moved_by
from tests.kernel.known import Rows, check_known, rows_sql
from tests.kernel.shapes import ASKED, SHAPES, Shape
from tests.kernel.statements import FORMS, Answer, answer
from tests.kernel.world import REORDERED, UNITS, World
from tests.properties.planning import Lab

PLANS = (
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_hashagg = off; SET LOCAL enable_nestloop = off",
    "SET LOCAL enable_mergejoin = off; SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off",
    "SET LOCAL standard_conforming_strings = off",
    *map(REORDERED.format, ("ctid DESC", "md5(id::text)")),
)


@dataclass(frozen=True)
class Seen:
    """The rows of a relation as texts, the unit first, and its statement's answers in every form."""

    rows: Rows
    answers: tuple[Answer, ...]


class Looked:
    """A shape through a kernel: its texts, and what they say."""

    def __init__(self, world: World, name: str, shape: Shape) -> None:
        self._connection, self.name = world.connection, name
        kernel = Kernel(world.ground)
        self.relation = kernel.relation(shape.rows)
        self._rows = rows_sql(self.relation)
        self._statements = {form: kernel.bounded(replace(shape.statement, form=form)) for form in (*FORMS, None)}

    @property
    def statement(self) -> Bounded:
        return self._statements[None]

    def seen(self) -> Seen:
        rows = Counter(self._connection.execute(self._rows).fetchall())
        return Seen(rows, tuple(answer(self._connection, statement) for statement in self._statements.values()))


def check_shapes(world: World) -> set[str]:
    """Raises an AssertionError, or what PostgreSQL says, where a shape breaks what is claimed; returns the refused."""
    refused: set[str] = set()
    looked = list(_looked(world, refused))
    whole = [each.seen() for each in looked]
    for each, seen in zip(looked, whole, strict=True):
        assert seen.rows, f"{each.name}: no rows"
        check_known(world, each.name, each.relation, seen.rows)
        assert all(one == seen.answers[0] for one in seen.answers), f"{each.name}: the forms differ"
    for plan in PLANS:
        with changed(world, plan):
            for each, seen in zip(looked, whole, strict=True):
                assert each.seen() == seen, f"{each.name}: told by the plan or by the order of rows"
    for unit in UNITS:
        with changed(world, world.leave.format(unit)):
            for each, seen in zip(looked, whole, strict=True):
                _check_leaving(each, seen, each.seen(), str(unit))
    return refused


def check_asked(world: World) -> None:
    """What the planner makes of SQL fails on no row, in no plan."""
    lab = Lab(world.connection, world.catalog)
    for sql in ASKED:
        plan = lab.plan(sql, world.policy)
        for change in PLANS:
            with changed(world, change):
                for block in plan.blocks:
                    lab.exact(block)


def _looked(world: World, refused: set[str]) -> Iterator[Looked]:
    for name, shape in SHAPES.items():
        if shape.is_new and world.catalog.version < 180000:
            continue
        try:
            yield Looked(world, name, shape)
        except Refusal:
            refused.add(name)


def _check_leaving(looked: Looked, whole: Seen, less: Seen, unit: str) -> None:
    assert not less.rows - whole.rows, f"{looked.name}: rows that come when {unit} leaves"
    assert {row[0] for row in whole.rows - less.rows} <= {unit}, f"{looked.name}: rows of others leave with {unit}"
    for before, after in zip(whole.answers, less.answers, strict=True):
        for number, measured in enumerate(looked.statement.measures):
            moved = moved_by(looked.statement, before, after, number)
            assert sum(map(abs, moved)) <= measured.sensitivity.l1, f"{looked.name}: {moved} is more than {measured}"
            assert sum(number**2 for number in moved) <= measured.sensitivity.l2_squared, f"{looked.name}: {moved}"
            assert max(map(abs, moved), default=0) <= measured.sensitivity.largest, f"{looked.name}: {moved}"


@contextmanager
def changed(world: World, change: str) -> Iterator[None]:
    with world.connection.transaction(force_rollback=True):
        world.connection.execute(change)
        yield
