"""Drawn rows and drawn statements in two worlds, and the conversations of all tools over the demo's shop."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from proxy.demo.run import HERE
from rules.kernel.expressions import quoted_text
from tests.cases.case_file import Case, all_cases
from tests.privacy.replay.worlds import Worlds, open_neighbours, open_worlds
from tests.properties import worst
from tests.properties.examples import EXAMPLES
from tests.support import lab, shop
from tests.support.lab import Data
from tests.support.strategies import Query as Drawn
from tests.support.strategies import queries

# Thresholds of two or three units, so that groups of the few people are found; each example has a budget of its own.
RULES = (
    (lab.RULES % {"visits": 3, "items": 4})
    .replace("${DATABASE}", "${NOISEGATE_DATABASE}")
    .replace(
        "budget: {epsilon: 1000, delta: 1e-6}",
        "budget: {epsilon: 1000, delta: 1e-3, per: day}\ndefaults: {epsilon: 20, max_epsilon: 100, delta: 1e-5}",
    )
)
LEAVER = "1"
GRANTS = shop.GRANTS.replace("customers, products, orders, order_items", "people, places, visits, items")
SETTINGS = (
    *("rows_per_unit = auto", "sum_per_unit = auto", "mark = on", "empty_groups = show", "cut = on", "other = on"),
    *("groups_per_unit = 2", "within = '20%'", "reuse = off", "epsilon = 100", "delta = 0"),
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    rows = (lab.SCHEMA, GRANTS)
    with (
        open_neighbours(rows, lab.delete(LEAVER)) as neighbours,
        open_worlds(tmp_path_factory.mktemp("drawn"), neighbours, RULES) as worlds,
    ):
        yield worlds


def ask_drawn(worlds: Worlds, rows: Data, asked: list[tuple[Drawn, str | None, str]]) -> None:
    """Put the rows into both worlds but those of one person, and ask."""
    worlds.change(f"TRUNCATE people, visits, items; {lab.insert(rows)}")
    worlds.advance(timedelta(days=1))
    with worlds.session() as session:
        for query, setting, end in asked:
            if setting is not None:
                session.simple(f"SET noisegate.{setting}")
            sql = query.sql + end
            session.simple(f"EXPLAIN {sql}")
            session.ask(sql, "TABLE noisegate.last")
            session.simple("RESET ALL", "SET noisegate.progress = off")
        session.simple("TABLE noisegate.budget", "TABLE noisegate.ledger")
    worlds.check()


ASKED = st.tuples(
    queries(),
    st.none() | st.sampled_from(SETTINGS),
    st.sampled_from(("", "", " ORDER BY 1 DESC", " ORDER BY m1 LIMIT 2")),
)
FREELY = settings(phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))  # answers are kept


@pytest.mark.extended
@settings(FREELY, max_examples=25)
@given(rows=lab.data(), asked=st.lists(ASKED, min_size=1, max_size=4))
def test_drawn_statements_are_answered_alike(
    opened: Worlds, rows: Data, asked: list[tuple[Drawn, str | None, str]]
) -> None:
    ask_drawn(opened, rows, asked)


@pytest.mark.long
@settings(FREELY, max_examples=150)
@given(rows=lab.data(most_visits=12), asked=st.lists(ASKED, min_size=2, max_size=6))
def test_many_drawn_statements_are_answered_alike(
    opened: Worlds, rows: Data, asked: list[tuple[Drawn, str | None, str]]
) -> None:
    ask_drawn(opened, rows, asked)


HOSTILE, OTHERS = 1, 20  # units
WORST_RULES = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: persons.id
tables: {{persons: {{unit: id}}, worst: {{unit: person, rows_per_unit: 50}}}}
budget: {{epsilon: 1000, delta: 1e-6}}
defaults: {{epsilon: 0.2, delta: 1e-9}}
{lab.RULES[lab.RULES.index("analysts:") :]}"""


def worst_rows() -> str:
    """A table of all types: one person has their worst values, all others ordinary ones."""
    names = list(worst.PAIRED)
    columns = ", ".join(f"{name} {worst.PAIRED[name][0].sql}" for name in names)
    rows = []
    for person in range(HOSTILE, OTHERS + 1):
        for number in range(40 if person == HOSTILE else 3):
            cells = [str(person)]
            for place, name in enumerate(names):
                kind = name.rstrip("_")
                known = worst.COLUMNS[kind][1]
                known = known if person == HOSTILE else worst.TAME.get(kind, known[:2])
                at = (number * (1 + place // len(worst.COLUMNS)) + person) % (len(known) + 1)
                cells.append("NULL" if at == len(known) else quoted_text(known[at]))
            rows.append(f"({', '.join(cells)})")
    return (
        f"CREATE TYPE mood AS ENUM ('glad', 'sad', 'calm'); CREATE TABLE worst (person integer, {columns});"
        f"CREATE TABLE persons (id integer PRIMARY KEY); INSERT INTO persons SELECT generate_series(1, {OTHERS});"
        f"INSERT INTO worst VALUES {', '.join(rows)};"
        + shop.GRANTS.replace("customers, products, orders, order_items", "persons, worst")
    )


@pytest.mark.long
def test_no_expression_shows_that_it_met_the_worst_values(tmp_path: Path) -> None:
    with (
        open_neighbours(
            (worst_rows(),), f"DELETE FROM worst WHERE person = {HOSTILE}; DELETE FROM persons WHERE id = {HOSTILE}"
        ) as neighbours,
        open_worlds(tmp_path, neighbours, WORST_RULES) as worlds,
    ):
        with worlds.session() as session:
            for expression in EXAMPLES:
                session.simple(f"SELECT count(*) FILTER (WHERE ({expression}) IS NULL) FROM worst")
        worlds.check()
        answered = worlds.leader.proxy.events("answered")
    assert len(answered) > len(EXAMPLES) / 2, "most are asked in vain"


CASES = list(all_cases(Path(__file__).parents[2] / "cases"))
OF_A_SERVER = re.compile("pg_postmaster_start_time|pg_stat_database")  # of each twin by itself
BUSIEST = "(SELECT customer_id FROM orders GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1)"
WITHOUT_THE_BUSIEST = f"""
CREATE TEMPORARY TABLE leaver AS {BUSIEST};
DELETE FROM order_items WHERE order_id IN (SELECT id FROM orders WHERE customer_id IN (TABLE leaver));
DELETE FROM orders WHERE customer_id IN (TABLE leaver);
DELETE FROM customers WHERE id IN (TABLE leaver)
"""


@pytest.fixture(scope="module")
def demo(demo_rules: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    """The demo's shop, and the same without the customer with most orders."""
    rows = ((HERE / "shop.sql").read_text(encoding="utf-8"),)
    with (
        open_neighbours(rows, WITHOUT_THE_BUSIEST) as neighbours,
        open_worlds(tmp_path_factory.mktemp("demo"), neighbours, demo_rules) as worlds,
    ):
        yield worlds


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_tools_send_is_answered_alike(demo: Worlds, case: Case) -> None:
    with demo.session() as session:
        for step in (step for step in case.steps if not OF_A_SERVER.search(step.sql)):
            values = [None if value is None else value.encode() for value in step.parameters]
            if values:
                session.extended(step.sql, *values)
            else:
                session.simple(step.sql)
    demo.check()
