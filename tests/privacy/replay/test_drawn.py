"""Drawn rows and drawn statements in two worlds, and the conversations of all tools over the demo's shop."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from proxy.demo.run import HERE
from tests.cases.case_file import Case, all_cases
from tests.cases.conftest import demo_rules
from tests.privacy.replay.worlds import Worlds, open_neighbours, open_worlds
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
__all__ = ["demo_rules"]
GRANTS = shop.GRANTS.replace("customers, products, orders, order_items", "people, places, visits, items")
SETTINGS = (
    *("rows_per_unit = auto", "sum_per_unit = auto", "mark = on", "mark = rows", "cut = on", "other = on"),
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
@settings(FREELY, max_examples=600)
@given(rows=lab.data(most_visits=12), asked=st.lists(ASKED, min_size=2, max_size=6))
def test_many_drawn_statements_are_answered_alike(
    opened: Worlds, rows: Data, asked: list[tuple[Drawn, str | None, str]]
) -> None:
    ask_drawn(opened, rows, asked)


CASES = list(all_cases(Path(__file__).parents[2] / "cases"))
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
        for step in case.steps:
            values = [None if value is None else value.encode() for value in step.parameters]
            if values:
                session.extended(step.sql, *values)
            else:
                session.simple(step.sql)
    demo.check()
