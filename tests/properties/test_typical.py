"""Typical values: one person replaces the value of one block, no row makes a block fail, and no order of rows shows."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction

import psycopg
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from rules.mechanisms.noised_outputs import Chosen
from rules.mechanisms.release_plan import Choice
from rules.planner.plan import Plan
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.properties import wide_rows as wide
from tests.properties.moved import Histogram, told_by_place
from tests.properties.planning import EXAMPLES, FORCED, Lab, thorough
from tests.properties.test_lies import PLANS, check_lies
from tests.properties.typical_queries import BOUNDS, FORMS, typical_queries
from tests.support import lab as tables
from tests.support.lab import Data

PAIRS = ("cost score", "count big")
TABLES = ("people", "visits", "items")


def planned(lab: Lab, sql: str, rules: Policy, *, groups_per_unit: int | None = None) -> Plan | None:
    """A plan, or None where it is refused; refusals are as good as answers here."""
    try:
        made = lab.plan(sql, rules, groups_per_unit=groups_per_unit)
    except Refusal as refusal:
        event(f"refused: {refusal.message[:60]}")
        return None
    event("answered")
    return made


def choices(made: Plan) -> Iterator[Choice]:
    for block in made.blocks:
        yield from (measure for measure in block.measures if isinstance(measure, Choice))


def histogram(lab: Lab, choice: Choice, forced: str = "") -> Histogram:
    with lab.connection.transaction(force_rollback=True):
        lab.connection.execute(forced or "SELECT")
        rows = lab.connection.execute(lab.sql(choice.statement)).fetchall()
    return Counter({row[:-1]: row[-1] for row in rows})


@thorough
@given(
    schema=st.integers(0, len(tables.VARIANTS) - 1),
    rules=tables.any_rules(),
    rows=tables.data(),
    asked=st.lists(typical_queries(), min_size=1, max_size=3),
    leaver=st.sampled_from("1234"),
    groups=st.sampled_from((None, 1, 2)),
)
def test_one_person_replaces_the_value_of_one_block_in_so_many_groups(
    labs: tuple[Lab, ...], schema: int, rules: Policy, rows: Data, asked: list[str], leaver: str, groups: int | None
) -> None:
    """And the tables hold the worst values of every type: no block fails."""
    lab = labs[schema]
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows, tables.VARIANTS[schema]))
        for sql in asked:
            made = planned(lab, sql, rules, groups_per_unit=groups)
            for choice in choices(made) if made is not None else ():
                whole = histogram(lab, choice)
                with lab.connection.transaction(force_rollback=True):
                    lab.script(tables.delete(leaver))
                    without = histogram(lab, choice)
                moved = defaultdict[tuple[object, ...], list[int]](list)
                for key in whole | without:
                    moved[key[:-1]].append(whole[key] - without[key])
                changed = [numbers for numbers in moved.values() if any(numbers)]
                assert all(
                    max(numbers) <= 1 and min(numbers) >= -1 and sum(map(abs, numbers)) <= 2 for numbers in changed
                ), sql
                assert 2 * len(changed) <= choice.sensitivity, f"{sql}: {len(changed)} groups"


@pytest.mark.extended
@thorough
@given(rows=tables.data(), asked=st.lists(typical_queries(), min_size=1, max_size=3))
def test_no_plan_and_no_order_of_rows_shows_in_a_block(lab: Lab, rows: Data, asked: list[str]) -> None:
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        for sql in asked:
            made = planned(lab, sql, tables.rules())
            if made is None:
                continue
            for choice in choices(made):
                first, *others = [histogram(lab, choice, forced) for forced in FORCED]
                assert all(other == first for other in others), sql
            assert not any(told_by_place(lab, block, TABLES) for block in made.blocks), sql


@pytest.mark.extended
@settings(thorough, max_examples=max(2, EXAMPLES // 10))
@given(
    rows=tables.data(tame=True), bounds=st.sampled_from(BOUNDS[:4]), pair=st.sampled_from(("cost score", "count big"))
)
def test_the_value_of_one_block_is_postgresqls_own(lab: Lab, rows: Data, bounds: tuple[int, int], pair: str) -> None:
    """The nearest candidate, give or take one where what PostgreSQL computes in doubles lies between two."""
    x, y = pair.split()
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        lab.script("DELETE FROM visits WHERE person_id IS NULL")
        for form in FORMS:
            check_value(lab, form.format(x=f"v.{x}", y=f"v.{y}"), *bounds)


def check_value(lab: Lab, value: str, low: int, high: int) -> None:
    """Where PostgreSQL itself fails, or has no rows, there is nothing to compare."""
    sql = f"SELECT noisegate.typical({value}, {low}, {high}, 1) FROM visits AS v"
    made = planned(lab, sql, tables.rules(visits=1000))
    if made is None:
        return
    (choice,) = choices(made)
    try:
        with lab.connection.transaction(force_rollback=True):
            lab.connection.execute("SET LOCAL search_path = public")
            found = lab.connection.execute(f"SELECT ({value})::float8 FROM visits AS v HAVING count(*) > 0").fetchone()
    except psycopg.Error:
        return
    told = histogram(lab, choice)
    exact = None if found is None or found[0] is None or found[0] != found[0] else found[0]
    if exact is None or not told:
        assert exact is None and not told, f"{exact} is told as {told}: {sql}"
        return
    ((cell,),) = told
    assert isinstance(cell, int)
    place = (min(max(exact, low), high) - low) * (choice.candidates - 1) / (high - low)
    assert abs(place - cell) <= 0.5 + 1e-6 * choice.candidates, f"{exact} is told as {cell}: {sql}"


LIED = (
    "SELECT noisegate.typical(sum(n) / nullif(count(*), 0), -10, 10, 3) FROM visits",
    "SELECT kind, noisegate.typical(corr(n, id::text::integer), -1, 1, 5) FROM visits GROUP BY kind",
    "SELECT p.city, noisegate.typical(percentile_cont(0.5) WITHIN GROUP (ORDER BY v.n), 0, 9, 2) "
    "FROM people AS p JOIN visits AS v ON v.person_id = p.id GROUP BY p.city",
)


def test_a_lying_planner_moves_no_more_blocks(worlds: dict[str, Lab]) -> None:
    seen: Counter[str] = Counter()

    @thorough
    @given(
        unit=st.sampled_from(sorted(wide.UNITS)),
        limits=wide.limits(),
        rows=st.integers(0, 2**20),
        sql=st.sampled_from(LIED),
        leaver=st.integers(0, 2),
        lie=st.integers(0, 2**20),
        setting=st.sampled_from(PLANS),
    )
    def check(unit: str, limits: wide.Limits, rows: int, sql: str, leaver: int, lie: int, setting: str) -> None:
        with worlds[unit].connection.transaction(force_rollback=True):
            lab = Lab(worlds[unit].connection, limits.apply(worlds[unit].connection, worlds[unit].catalog))
            lab.script(wide.rows(unit, rows, limits))
            check_lies(lab, sql, wide.rules(3, 3), wide.leave(unit, leaver), lie, 0.1, setting, seen)

    check()
    assert seen["answered"] >= EXAMPLES // 10, seen


def test_candidates_are_told_to_a_tenth_of_a_step(lab: Lab) -> None:
    made = lab.plan("SELECT noisegate.typical(avg(v.cost), 0.3, 3) FROM visits AS v", tables.rules())
    (choice,), (output,) = choices(made), made.blocks[0].outputs
    assert isinstance(output, Chosen)
    texts = [candidate or "" for candidate in output.candidates]
    step = Fraction(27, 10) / 1000
    assert choice.candidates == len(texts) == 1001
    for place, text in enumerate(texts):
        assert abs(Fraction(text) - Fraction(3, 10) - step * place) <= step / 20
