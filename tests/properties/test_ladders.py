"""Bounds that are chosen: one person moves neither the choice nor what is answered with it by more than is paid for."""

from hypothesis import event, given
from hypothesis import strategies as st

from rules.refusal import Refusal
from tests.properties.moved import broken_choices, broken_claims
from tests.properties.planning import Lab, thorough
from tests.properties.test_pivots import pivots, vectors_in
from tests.support import lab as tables
from tests.support.lab import Data
from tests.support.strategies import Query, queries

RULES = tables.rules(visits=7, items=9)

places = st.lists(st.floats(0, 1, exclude_max=True), min_size=8, max_size=8)


@thorough
@given(
    rows=tables.data(),
    asked=st.lists(queries(), min_size=1, max_size=3),
    leaver=st.sampled_from("1234"),
    places=places,
)
def test_one_person_moves_a_choice_and_its_answer_no_further_than_they_are_made_private_for(
    lab: Lab, rows: Data, asked: list[Query], leaver: str, places: list[float]
) -> None:
    """Whichever rungs are chosen, and whatever the rows are: no row makes a tally fail either."""
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        for query in asked:
            check_one(lab, query.sql, leaver, places)


@thorough
@given(rows=tables.data(), asked=pivots(), leaver=st.sampled_from("1234"), places=places)
def test_one_person_moves_pivots_with_chosen_bounds_together_no_further_than_one(
    lab: Lab, rows: Data, asked: tuple[str, str, list[str]], leaver: str, places: list[float]
) -> None:
    """Measures that are paid once."""
    source, key, items = asked
    sql = f"SELECT {', '.join([*([key] if key else []), *items])} FROM {source}{f' GROUP BY {key}' if key else ''}"
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        check_one(lab, sql, leaver, places, sums_auto=False)


def check_one(lab: Lab, sql: str, leaver: str, places: list[float], *, sums_auto: bool = True) -> None:
    """One statement with and without a person, on rungs that lie at these places of their ladders."""
    try:
        plan = lab.plan(sql, RULES, is_auto=True, sums_auto=sums_auto)
    except Refusal as refusal:
        event(f"refused: {refusal.message[:60]}")
        return
    for block in plan.blocks:
        event(f"{len(block.ladders)} ladders")
        leave = tables.delete(leaver)
        assert not broken_choices(lab, block, leave), lab.tally_sql(block)
        chosen = zip(block.ladders, places, strict=False)
        settled = lab.settled(block, [ladder.rungs[int(place * len(ladder.rungs))] for ladder, place in chosen])
        event(f"{len(vectors_in(settled))} vectors")
        assert not broken_claims(lab, settled, leave), lab.sql(settled.statement)
