"""Each pass over PostgreSQL's tree, by its file of fixtures: a statement, and what the pass makes of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from rules.bind.correlated_subquery import Correlated, known_or_needed
from rules.catalog import Routine, TableName
from rules.planner.find_blocks import context_of, find_blocks
from rules.planner.inner_queries import decorrelate
from rules.planner.passes.inline_sources import inline_views
from rules.planner.plan import Request, TemporaryView
from rules.planner.rewrite import PASSES, Pass
from rules.planner.tables import Tables
from rules.refusal import NotSupported
from rules.sql.grammar import deparse, parse
from rules.sql.lower import lowered
from rules.sql.tree import Index, Node, copied, made_canonical
from tests.planner.planned import Planner

FIXTURES = Path(__file__).parent.parent / "fixtures" / "passes"
OPEN_ORDERS = TemporaryView("public", "open_orders", "SELECT orders.* FROM public.orders WHERE orders.status = 'open'")
FUNCTIONS = {
    "net": "(gross numeric, rate numeric DEFAULT 0.19) RETURNS numeric LANGUAGE sql AS 'SELECT gross / (1 + $2);'",
    "is_dear": "(price numeric) RETURNS boolean LANGUAGE sql RETURN (net(price) > 100)",
    "initial": "(word text) RETURNS text LANGUAGE sql STRICT BEGIN ATOMIC SELECT left(initial.word, 1); END",
    "spent": "(int) RETURNS numeric LANGUAGE sql AS 'SELECT sum(amount) FROM orders WHERE customer_id = $1'",
    "two": "(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1; SELECT $1'",
    "lower": "(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT $1'",
}
ROUTINES = tuple(
    Routine(
        TableName("public", name), "function", (), "", f"CREATE FUNCTION {name}{rest}", is_overloaded=name == "lower"
    )
    for name, rest in FUNCTIONS.items()
)
PREVIEWS = "previews: empty\nbudget:"


def decorrelate_all(index: Index, tables: Tables) -> Node:
    """Rewrite every subquery that binding finds to depend on the row around it."""
    tree = copied(index.tree)
    while True:
        syntax = lowered(tree)
        match known_or_needed(find_blocks)(syntax.query, tables.context):
            case Correlated() as found:
                decorrelate(tree, syntax.selects[found.select], found.links)
            case _:
                return index.tree if tree == index.tree else tree


BY_NAME: dict[str, Pass] = {pass_.__name__: pass_ for pass_ in PASSES} | {"decorrelate": decorrelate_all}


@pytest.fixture(scope="session")
def tables(planner: Planner) -> Tables:
    rules = replace(planner, rules=planner.rules.replace("budget:", PREVIEWS)).policy
    context = context_of(Request("", ("pg_catalog", "public")), rules, replace(planner.catalog, routines=ROUTINES))
    return Tables(context, (OPEN_ORDERS,))


def _cases(name: str) -> list[tuple[Node, str]]:
    """Read a file of fixtures: statements by twos, comments between them."""
    trees = [made_canonical(piece.tree) for piece in parse((FIXTURES / f"{name}.sql").read_text())]
    return [(given, deparse(made)) for given, made in zip(trees[::2], trees[1::2], strict=True)]


def test_every_pass_has_its_fixtures() -> None:
    assert {path.stem for path in FIXTURES.iterdir()} == BY_NAME.keys()


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name in BY_NAME for number in range(len(_cases(name)))]
)
def test_a_pass_makes_another_tree_and_leaves_the_one_it_was_given(tables: Tables, name: str, number: int) -> None:
    given, expected = _cases(name)[number]
    before = copied(given)

    made = BY_NAME[name](Index(given), tables)

    assert deparse(made) == expected
    assert given == before
    if deparse(given) == expected:
        assert made is given


def test_a_view_that_postgresql_prints_in_no_grammar_is_refused(tables: Tables) -> None:
    definition = (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n FROM r) "
        "CYCLE n SET again TO 'Y'::text DEFAULT 'N'::text USING path SELECT r.n FROM r"
    )
    (piece,) = parse("SELECT count(*) FROM walks")

    with pytest.raises(NotSupported, match='"walks" cannot be parsed'):
        inline_views(Index(piece.tree), replace(tables, temporary=(TemporaryView("public", "walks", definition),)))
