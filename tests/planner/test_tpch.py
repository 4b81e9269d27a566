"""TPC-H with the customer as the unit: every question is planned, and without noise its answer is PostgreSQL's."""

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.mechanisms.release_plan import Choice
from tests.planner import tpch
from tests.planner.tpch import Question
from tests.properties.planning import PINNED, Lab
from tests.support.catalogs import catalog_of

MANY = 1000  # groups of one customer: none is left out, so that numbers can be compared
Rows = dict[tuple[object, ...], tuple[object, ...]]


@pytest.fixture(scope="module")
def lab(real_cluster: Cluster) -> Iterator[Lab]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE tpch")
    with psycopg.connect(real_cluster.dsn("tpch"), autocommit=True) as connection:
        connection.execute(tpch.SCHEMA + tpch.DATA)
        connection.execute(PINNED)
        yield Lab(connection, catalog_of(real_cluster.dsn("tpch")))


@pytest.mark.parametrize("question", (*tpch.TPCH, *tpch.EVERYDAY), ids=lambda question: question.name)
def test_a_question_is_answered(lab: Lab, question: Question) -> None:
    plan = lab.plan(question.sql, tpch.policy(), groups_per_unit=MANY)
    if any(isinstance(measure, Choice) for block in plan.blocks for measure in block.measures):
        return  # it is drawn: tests/mechanisms says how near

    answer = _by_key(lab.run(lab.outer(plan), plan).fetchall(), question)
    with lab.connection.transaction(force_rollback=True):
        lab.connection.execute("SET LOCAL search_path = public")
        truth = _by_key(lab.connection.execute(question.sql).fetchall(), question)

    assert truth
    assert bool(plan.blocks) != ("public" in question.name)
    for key, numbers in truth.items():
        assert key in answer
        for one, other in zip(answer[key], numbers, strict=True):
            assert _is_near(one, other)


def _is_near(one: object, other: object) -> bool:
    """The same but for half a lattice step of each row."""
    given, expected = Decimal(str(one)), Decimal(str(other))
    return abs(given - expected) <= Decimal("0.01") + abs(expected) / 10**5


def _by_key(rows: list[tuple[object, ...]], question: Question) -> Rows:
    return {row[: question.keys]: row[question.keys :] for row in rows}
