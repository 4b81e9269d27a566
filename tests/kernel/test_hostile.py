"""Whatever words a script has, no unit moves its numbers further than the kernel says."""

from contextlib import suppress
from random import Random

import psycopg
import pytest

from rules.catalog import Catalog, Table, TableName, TypeName
from rules.catalog import Column as CatalogColumn
from rules.kernel.ground import Ground
from rules.kernel.render import Renderer
from rules.kernel.script import Call, PerUnit, Project, Scan, Script, UnionAll
from rules.policy.load import load_policy
from rules.replay import Kernel
from rules.values.types import TEXT, Type
from tests.kernel import drawn
from tests.kernel.faults import OF_COLLATIONS, OF_ROWS, planted
from tests.kernel.hostile import STATEMENTS, VISITS, check_hostile, made, of
from tests.kernel.locality import changed
from tests.kernel.statements import answer
from tests.kernel.world import World
from tests.support import lab


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_hostile_statement_keeps_what_is_claimed(world: World, name: str) -> None:
    check_hostile(world, STATEMENTS[name])


def check_drawn(world: World, seed: int, count: int) -> int:
    """Count those that run. An expression that fails on some rows is the registry's to leave out, and no script's."""
    random, run = Random(seed), 0
    for _ in range(count):
        with suppress(psycopg.DataError):
            run += check_hostile(world, drawn.statement(random))
    return run


def test_hostile_statements_at_random_keep_what_is_claimed(world: World) -> None:
    assert check_drawn(world, seed=1, count=600) > 150


@pytest.mark.extended
@pytest.mark.parametrize(
    "name",
    [
        "operands beside what stands around them",
        "words that are names of columns",
        "numbers of a union that are said to be labels",
    ],
)
def test_they_would_find_a_fault(world: World, name: str) -> None:
    with planted(*OF_ROWS[name]), pytest.raises(AssertionError):
        check_drawn(world, seed=1, count=6000)


def check_collation(world: World) -> None:
    """Equal texts are identical under the collation of the database, and need not be under that of a domain."""
    kinds = TEXT, Type("other", name="text")
    own, other = (made("({0})::public.word", VISITS["kind"], kind=kind) for kind in kinds)
    shapes: tuple[Script, ...] = (
        *(PerUnit(VISITS.scan, ((90, word),), ()) for word in (own, other)),
        *(PerUnit(VISITS.scan, (), ((90, Call("min({0})", (word,), TEXT)),)) for word in (own, other)),
        Project(VISITS.scan, ((90, own),)),
    )
    with changed(world, 'CREATE DOMAIN public.word AS text COLLATE "C"'):
        for shape in shapes:
            source = Renderer().render(Kernel(world.ground).relation(shape), frozenset([90]))
            sql = f"SELECT DISTINCT pg_collation_for({source.names[90]}) {source.clause()}"
            assert world.connection.execute(sql.encode()).fetchall() == [('"default"',)]


def test_computed_texts_are_compared_as_those_of_the_database(world: World) -> None:
    check_collation(world)


@pytest.mark.extended
def test_it_would_find_the_collation_of_a_domain(world: World) -> None:
    with planted(*OF_COLLATIONS["texts that are compared as those of a domain"]), pytest.raises(AssertionError):
        check_collation(world)


def test_a_union_cuts_no_unit_to_the_length_of_its_type(connection: psycopg.Connection) -> None:
    """Ada and Ann would be one unit, whose rows are cut and scaled together."""
    name = TableName("public", "named")
    table = Table(name, "table", (CatalogColumn("who", TypeName("text", "text"), 1),), ())
    head, rest = lab.RULES[: lab.RULES.index("unit:")], lab.RULES[lab.RULES.index("budget:") :]
    rules = f"{head}unit: named.who\ntables:\n  named: {{unit: who}}\n{rest}"
    ground = Ground(load_policy(rules, "rules.yaml", {"DATABASE": "x"}), Catalog("x", 180000, "", "UTF8", (table,)))
    union = UnionAll((Scan(name, ((1, "who"),)),), ((2, Type("varchar", 1), (1,)), (3, TEXT, (1,))), 2)
    bounded = Kernel(ground).bounded(of(union, most=1))
    with connection.transaction(force_rollback=True):
        connection.execute(
            "CREATE TABLE public.named (who text); INSERT INTO public.named VALUES ('Ada'), ('Ann'), ('Bob')"
        )
        assert answer(connection, bounded) == {(): (3 * bounded.measures[0].sensitivity.factor,)}
