"""Every step of every plan says only what is true of its rows, on the worst rows that the schemas allow."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from rules.algebra.nodes import Node
from rules.algebra.unit_facts import projected
from rules.planner import block, select_partitions
from rules.planner.select_partitions import Keyed
from rules.planner.to_script import to_script
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.properties.facts import every_node, lies, rows_of
from tests.properties.marks import PEOPLE, Asked, asked, rows
from tests.properties.marks import RULES as MARKS_RULES
from tests.properties.planning import Lab, thorough
from tests.support import lab as tables
from tests.support.lab import Data
from tests.support.strategies import Query, queries

_FREE = 1_000_000  # a number that no column of a plan has


@thorough
@given(
    schema=st.integers(0, len(tables.VARIANTS) - 1),
    rules=tables.any_rules(),
    rows=tables.data(),
    asked=st.lists(queries(), min_size=1, max_size=4),
)
def test_what_is_known_of_relations_is_true(
    labs: tuple[Lab, ...], schema: int, rules: Policy, rows: Data, asked: list[Query]
) -> None:
    lab = labs[schema]
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows, tables.VARIANTS[schema]))
        for query in asked:
            check_facts(lab, query.sql, rules)


@thorough
@given(script=rows(), queries=st.lists(asked(), min_size=3, max_size=10))
def test_what_keys_and_conditions_prove_is_true(marks: Lab, script: str, queries: list[Asked]) -> None:
    with marks.connection.transaction(force_rollback=True):
        marks.script(f"{PEOPLE}; {script}")
        for query in queries:
            check_facts(marks, query.sql, MARKS_RULES)


def check_facts(lab: Lab, sql: str, rules: Policy) -> None:
    with planned_relations() as planned, suppress(Refusal):  # what was planned before it is looked at all the same
        lab.plan(sql, rules)
    assert not (found := lies_in(lab, planned)), f"{sql}\n{found}"


def lies_in(lab: Lab, planned: list[Node]) -> str:
    """The first part of these relations that claims what is not so, and what; nothing if all of it holds."""
    known: list[Node] = []
    for node in dict.fromkeys(node for whole in planned for node in every_node(whole)):
        with suppress(Refusal):  # the kernel makes nothing of it, so nothing of it is run
            lab.kernel.relation(to_script(node))
            known.append(node)
    for node in known:
        if found := lies(lab.connection, node, lab.kernel):
            return f"{rows_of(node, lab.kernel)}\n{'; '.join(found)}"
    return ""


@contextmanager
def planned_relations() -> Iterator[list[Node]]:
    """The relation of every block that is planned meanwhile, its keys as columns."""
    planned: list[Node] = []

    def recorded(*given: object) -> Keyed:
        keyed = select_partitions.with_keys(*given)  # type: ignore[arg-type]
        keys = tuple((_FREE + place, key) for place, key in enumerate(keyed.keys))
        planned.append(projected(keyed.source.node, keys))
        return keyed

    with mock.patch.object(block, "with_keys", recorded):
        yield planned
