"""Without noise an error bar has no width: its ends are the answer itself, whatever expression it stands around."""

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from rules.mechanisms.release_plan import Choice
from rules.refusal import Refusal
from tests.properties.planning import Lab, thorough
from tests.support import lab as tables
from tests.support.lab import Data
from tests.support.strategies import Query, queries

RULES = tables.rules()


@thorough
@given(rows=tables.data(tame=True), query=queries(), shape=st.sampled_from(["{0}", "-({0})", "({0}) * 2 / 3"]))
def test_without_noise_the_ends_of_a_bar_are_the_answer(lab: Lab, rows: Data, query: Query, shape: str) -> None:
    asked = tuple(shape.format(aggregate) for aggregate in query.aggregates)
    bars = [f"noisegate.{end}({text})" for text in asked for end in ("low", "high")]
    barred = replace(query, aggregates=(*asked, *bars))
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        try:
            plan = lab.plan(barred.sql, RULES)
        except Refusal as refusal:
            event(f"refused: {refusal.message[:60]}")
            return
        if any(isinstance(measure, Choice) for block in plan.blocks for measure in block.measures):
            return  # its ends are choices of their own
        for row in lab.run(lab.outer(plan), plan).fetchall():
            answers, ends = row[len(query.keys) :][: len(asked)], row[len(query.keys) + len(asked) :]
            assert ends == tuple(answer for answer in answers for _ in range(2)), barred.sql
            event("answered")
