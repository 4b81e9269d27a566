"""Measures that are paid for once because no row is in two of them: none is, and one person moves all of them together
no further than one of them is made private for."""

from collections import defaultdict
from fractions import Fraction
from itertools import combinations

from hypothesis import event, given
from hypothesis import strategies as st

from rules.mechanisms.release_plan import Block, Measure
from rules.refusal import Refusal
from tests.properties.planning import Exact, Lab, distance, thorough
from tests.support import lab as tables
from tests.support.lab import Data

RULES = tables.rules()

VISITS = "visits AS v"
PEOPLE = "people AS p"
BOTH = "people AS p JOIN visits AS v ON v.person_id = p.id"
OUTER = "people AS p LEFT JOIN visits AS v ON v.person_id = p.id AND v.count > 0"
WHO = {VISITS: "v", PEOPLE: "p", BOTH: "pv", OUTER: "pv"}
CONDITIONS = {
    "v": (
        "v.kind = 'a'", "v.kind = 'b'", "v.kind = 'a '", "v.kind IN ('b', 'c')", "v.kind <> 'a'", "v.kind IS NULL",
        "NOT v.kind = 'a'", "v.kind > 'a'", "v.kind IS NOT NULL AND v.count > 2", "v.count < 0", "v.count >= 0",
        "v.count BETWEEN 1 AND 3", "v.count = 1.5", "v.count > 3", "v.count IN (0, NULL)", "v.count IS NULL",
        "3 < v.count", "v.cost < 1.5", "v.cost >= 1.5", "v.cost = 'NaN'", "v.cost > 50", "v.cost = 1.50", "v.big > 10",
        "v.big <= 10", "v.score < 0", "v.score >= 0", "v.score = 0", "v.rating = 1.1", "v.rating <> 1.1",
        "v.day = '2024-01-05'", "v.day < '2024-01-05'", "v.day > timestamp '2024-01-05 12:00'",
        "v.at >= '2024-02-01'", "v.at < '2024-02-01'", "v.at < '2024-02-01 00:00+03'",
        "extract(month FROM v.day) = 1", "extract(month FROM v.day) = 2", "date_trunc('month', v.at) = '2024-01-01'",
        "date_trunc('month', v.at) = '2024-02-01'", "v.count % 2 = 0", "v.count % 2 = 1", "lower(v.kind) = 'a'",
        "coalesce(v.kind, 'a') = 'b'", "v.kind = 'a' AND v.count < 2", "v.kind = 'a' OR v.count < 2",
    ),
    "p": (
        "p.vip", "NOT p.vip", "p.vip IS NULL", "p.mood = 'glad'", "p.mood = 'sad'", "p.mood IN ('calm', 'sad')",
        "p.age < 18", "p.age >= 18 AND p.age < 65", "p.age >= 65", "p.age = 18", "p.city = 'Lyon'",
        "p.city = 'Berlin'", "p.city IS NOT NULL", "p.city IS NULL", "p.note = 'a'", "p.note = 'a '",
        "p.wealth < 0", "p.wealth >= 0", "p.wealth = 0.005", "p.born < '1990-06-01'", "p.born >= '1990-06-01'",
        "p.seen < '2024-02-01'", "p.seen >= '2024-02-01'", "p.height < 1.5", "p.height > 1.5",
    ),
}  # fmt: skip
NUMBERS = {"v": ("v.count", "v.cost", "v.big", "v.score"), "p": ("p.age", "p.wealth", "p.height")}
SHAPES = (
    "count(*) FILTER (WHERE {0})", "count(CASE WHEN {0} THEN 1 END)", "sum(CASE WHEN {0} THEN 1 ELSE 0 END)",
    "sum({1}) FILTER (WHERE {0})", "sum(CASE WHEN {0} THEN {1} ELSE 0 END)", "sum(CASE WHEN {0} THEN {1} END)",
    "avg({1}) FILTER (WHERE {0})", "avg(CASE WHEN {0} THEN {1} END)", "avg(CASE WHEN {0} THEN {1} ELSE 0 END)",
    "count({1}) FILTER (WHERE {0})", "count(DISTINCT {1}) FILTER (WHERE {0})",
)  # fmt: skip
KEYS = {"v": ("v.kind", "v.day"), "p": ("p.vip", "p.mood")}


@st.composite
def pivots(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """A source, a key or none, and aggregates with conditions of their own."""
    source = draw(st.sampled_from(sorted(WHO)))
    known = [condition for table in WHO[source] for condition in CONDITIONS[table]]
    numbers = [number for table in WHO[source] for number in NUMBERS[table]]
    shape = draw(st.sampled_from(SHAPES))
    conditions = draw(st.lists(st.sampled_from(known), min_size=2, max_size=6, unique=True))
    items = []
    for condition in conditions:
        one = shape if draw(st.integers(0, 3)) else draw(st.sampled_from(SHAPES))
        items.append(one.format(condition, draw(st.sampled_from(numbers))))
    key = draw(st.sampled_from(["", *(key for table in WHO[source] for key in KEYS[table])]))
    return source, key, items


@thorough
@given(rows=tables.data(), asked=pivots(), leaver=st.sampled_from("1234"))
def test_one_person_moves_all_measures_of_a_vector_no_further_than_one(
    lab: Lab, rows: Data, asked: tuple[str, str, list[str]], leaver: str
) -> None:
    source, key, items = asked
    sql = f"SELECT {', '.join([*([key] if key else []), *items])} FROM {source}{f' GROUP BY {key}' if key else ''}"
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        try:
            (block,) = lab.plan(sql, RULES).blocks
        except Refusal as refusal:
            event(f"refused: {refusal.message[:40]}")
            return
        whole = lab.exact(block)
        with lab.connection.transaction(force_rollback=True):
            lab.script(tables.delete(leaver))
            without = lab.exact(block)
    vectors = vectors_in(block)
    event(f"vectors of {sorted(map(len, vectors))}" if vectors else "each for itself")
    for vector in vectors:
        moved = joint_distance(block, vector, whole, without)
        assert moved <= 1, f"{sql}\n{lab.sql(block.statement)}\nmeasures {vector}: {moved}"


@thorough
@given(rows=tables.data(), source=st.sampled_from(sorted(WHO)), data=st.data())
def test_no_row_meets_two_conditions_that_pay_once(lab: Lab, rows: Data, source: str, data: st.DataObject) -> None:
    known = [condition for table in WHO[source] for condition in CONDITIONS[table]]
    conditions = data.draw(st.lists(st.sampled_from(known), min_size=2, max_size=8, unique=True))
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        for one, other in combinations(conditions, 2):
            sql = f"SELECT count(*) FILTER (WHERE {one}), count(*) FILTER (WHERE {other}) FROM {source}"
            try:
                (block,) = lab.plan(sql, RULES).blocks
            except Refusal:
                continue
            if not vectors_in(block):
                continue
            event("disjoint")
            lab.script("SELECT 1")
            lab.connection.execute("SET LOCAL search_path = public")
            found = lab.connection.execute(f"SELECT count(*) FROM {source} WHERE ({one}) AND ({other})").fetchall()
            assert found == [(0,)], f"{one} and {other}"


def vectors_in(block: Block) -> list[list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for index, measure in enumerate(block.measures):
        if isinstance(measure, Measure) and measure.vector is not None:
            found[measure.vector].append(index)
    return list(found.values())


def joint_distance(block: Block, vector: list[int], one: Exact, other: Exact) -> Fraction:
    """How far two answers are apart, each measure in parts of its own sensitivity."""
    parts = [Fraction(distance(one, other, index), block.measures[index].sensitivity) for index in vector]
    return sum(parts, Fraction(0))
