"""Without noise an answer is PostgreSQL's own: on rows within their bounds, of which no person has too many."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import psycopg
from hypothesis import event, given
from hypothesis import strategies as st

from rules.mechanisms.noised_outputs import Average, CentredSum, Count, Sum
from rules.mechanisms.release_plan import Block, PublicGroups
from rules.planner.plan import Plan
from rules.refusal import Refusal
from tests.properties.planning import Lab, thorough
from tests.support import lab as tables
from tests.support.lab import Data
from tests.support.strategies import Query, queries

RULES = tables.rules(visits=1000, items=1000)
MOST_ROWS = 400  # of a laboratory's join: each may be rounded by half a step

Values = tuple[object, ...]
Answer = Mapping[Values, Values]


@thorough
@given(
    schema=st.integers(0, len(tables.VARIANTS) - 1),
    rows=tables.data(tame=True),
    asked=st.lists(queries(), min_size=1, max_size=4),
)
def test_without_noise_an_answer_is_postgresqls_own(
    labs: tuple[Lab, ...], schema: int, rows: Data, asked: list[Query]
) -> None:
    """Every group that PostgreSQL finds is there, with its numbers; no other is, unless empty ones are to be shown."""
    lab = labs[schema]
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows, tables.VARIANTS[schema]))
        lab.script("DELETE FROM items WHERE visit_id NOT IN (SELECT id FROM visits)")  # items of nobody are not counted
        for query in asked:
            check_one(lab, query)


@thorough
@given(rows=tables.data(tame=True), asked=st.lists(queries(), min_size=1, max_size=4))
def test_a_bound_that_cuts_nobody_changes_nothing(lab: Lab, rows: Data, asked: list[Query]) -> None:
    """Of each ladder the lowest rung that no person's total is above."""
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        for query in asked:
            check_one(lab, query, is_auto=True)


def check_one(lab: Lab, query: Query, *, is_auto: bool = False) -> None:
    """One statement, planned and as it is. Where PostgreSQL itself fails there is nothing to compare."""
    try:
        plan = lab.plan(query.sql, RULES, groups_per_unit=MOST_ROWS, is_auto=is_auto)
        plan = replace(plan, blocks=tuple(_settled(lab, block) for block in plan.blocks))
    except Refusal as refusal:
        event(f"refused: {refusal.message[:60]}")
        return
    truth = _truth(lab, query)
    event("answered" if truth is not None else "an error in PostgreSQL")
    answer = _answer(lab, plan, len(query.keys))
    if not plan.blocks:  # for no group can have rows
        assert not truth, f"{query.sql}\n{truth} is not listed"
        return
    (block,) = plan.blocks
    for group, expected in (truth or {}).items():
        assert group in answer, (
            f"{query.sql}\n{lab.sql(block.statement)}\n{group} is missing among {sorted(map(str, answer))}"
        )
        for place, (one, other) in enumerate(zip(answer[group], expected, strict=True)):
            step = _step(block, query.aggregates, place)
            assert _is_alike(one, other, step), (
                f"{query.sql}\n{lab.sql(block.statement)}\n{group}: {one} is not {other}"
            )
    if truth is not None:
        check_groups(lab, query, plan, truth)


def check_groups(lab: Lab, query: Query, plan: Plan, truth: Answer) -> None:
    """PostgreSQL's own groups are shown; but none of which each count or sum is 0, since no noise tells it apart.

    The only group of a list is always shown.
    """
    shown = _by_group(lab.run(lab.outer(plan), plan, hides_empty=True).fetchall(), len(query.keys))
    (block,) = plan.blocks
    is_alone = isinstance(block.groups, PublicGroups) and len(block.groups.rows) == 1
    assert is_alone or shown.keys() <= truth.keys(), f"{query.sql}\n{shown.keys() - truth.keys()} has no rows"
    outputs = [block.outputs[list(dict.fromkeys(query.aggregates)).index(name)] for name in query.aggregates]
    for group in truth.keys() - shown.keys():
        event("a group of which all is 0")
        numbers = [number for number, of in zip(truth[group], outputs, strict=True) if isinstance(of, Count | Sum)]
        assert not any(numbers), f"{query.sql}\n{group} is missing, with {truth[group]}"


def _settled(lab: Lab, block: Block) -> Block:
    """The block with the lowest bounds that cut nobody."""
    if not block.ladders:
        return block
    event("with bounds that are chosen")
    needed = (max([0, *(step for step, height in enumerate(tally, start=1) if height)]) for tally in lab.tallies(block))
    return lab.settled(block, [ladder.rungs[rung] for ladder, rung in zip(block.ladders, needed, strict=True)])


def _step(block: Block, aggregates: Sequence[str], place: int) -> Fraction | None:
    """How coarse an answer is: equal aggregates are one output, and what is bigint is exact.

    Statistics are computed on lattices of their own; tests/planner compares them.
    """
    at = list(dict.fromkeys(aggregates)).index(aggregates[place])
    output = block.outputs[at]
    if isinstance(output, Sum | CentredSum | Average):
        return Fraction(0) if block.output_types[at] == "bigint" else output.step
    return Fraction(0) if isinstance(output, Count) else None


def _answer(lab: Lab, plan: Plan, keys: int) -> Answer:
    return _by_group(lab.run(lab.outer(plan), plan).fetchall(), keys)


def _truth(lab: Lab, query: Query) -> Answer | None:
    try:
        with lab.connection.transaction(force_rollback=True):
            lab.connection.execute("SET LOCAL search_path = public")
            return _by_group(lab.connection.execute(query.sql).fetchall(), len(query.keys))
    except psycopg.Error:
        return None


def _by_group(rows: Sequence[Values], keys: int) -> Answer:
    return {row[:keys]: row[keys:] for row in rows}


def _is_alike(given: object, expected: object, step: Fraction | None) -> bool:
    """Over nobody a sum is 0 and an average the middle, where PostgreSQL has NULL."""
    if expected is None or step is None:
        return True
    one, other = Decimal(str(given)), Decimal(str(expected))
    rounded = MOST_ROWS * Decimal(step.numerator) / step.denominator / 2
    return abs(one - other) <= rounded + abs(other) * Decimal("1e-12")


@thorough
@given(
    condition=st.sampled_from(
        (
            "p.city = 'Berlin'",
            "p.city ~ 'n$'",
            "p.city LIKE 'Berlin'",
            "p.city LIKE 'Ber%'",
            "p.city::text ~ 'n$'",
            "p.vip",
        )
    )
)
def test_a_character_n_is_grouped_by_its_values_and_matched_with_its_padding(
    labs: tuple[Lab, ...], condition: str
) -> None:
    lab = labs[-1]
    with lab.connection.transaction(force_rollback=True):
        lab.script(
            "INSERT INTO people (id, city, vip) VALUES (1, 'Berlin', true), (2, 'Berlin', true), (3, 'Lyon', true)"
        )
        check_one(lab, Query("people AS p", "p", "p.id", (condition,), ("p.city",), ("count(*)",)))
