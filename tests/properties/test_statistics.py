"""Moments and choices: bounded like any measure, and without noise what PostgreSQL says."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rules.mechanisms.draw import in_whole
from rules.mechanisms.exponential_choice import score_candidates
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block, Choice, Measure
from rules.refusal import Refusal, TooComplex
from rules.release.outputs import show
from tests.properties.planning import Lab, thorough
from tests.support import lab as tables
from tests.support.lab import Data

FEW, MANY = tables.rules(), tables.rules(visits=1000, items=1000)

COLUMNS = st.sampled_from(("cost", "score", "rating", "count", "big", "cost + count", "abs(score)", "cost * 2"))
KEYS = st.sampled_from(("", "kind", "day"))
FILTERS = st.sampled_from(("", " FILTER (WHERE count > 0)", " FILTER (WHERE kind = 'a')"))
OF_ONE = st.sampled_from(("variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop"))
OF_TWO = st.sampled_from(
    (
        *("covar_pop", "covar_samp", "corr", "regr_count", "regr_slope", "regr_intercept", "regr_r2"),
        *("regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy"),
    )
)
CHOSEN = st.sampled_from(
    (
        *("percentile_cont(0.5) WITHIN GROUP (ORDER BY {0})", "percentile_disc(0.9) WITHIN GROUP (ORDER BY {0} DESC)"),
        *("min({0})", "max({0})", "min(at)", "max(day)", "mode() WITHIN GROUP (ORDER BY kind)"),
    )
)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A statistic or two over visits, in all or by group."""
    x, y, key = draw(COLUMNS), draw(COLUMNS), draw(KEYS)
    items = [
        f"{draw(OF_ONE)}({x}){draw(FILTERS)}",
        f"{draw(OF_TWO)}({y}, {x}){draw(FILTERS)}",
        draw(CHOSEN).format(x) + draw(FILTERS),
    ]
    chosen = draw(st.lists(st.sampled_from(items), min_size=1, max_size=3, unique=True))
    return f"SELECT {', '.join([key, *chosen] if key else chosen)} FROM visits" + (f" GROUP BY {key}" if key else "")


@thorough
@given(rows=tables.data(), asked=st.lists(statements(), min_size=1, max_size=3), leaver=st.sampled_from("1234"))
def test_one_person_moves_moments_and_histograms_by_at_most_their_sensitivity(
    lab: Lab, rows: Data, asked: list[str], leaver: str
) -> None:
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        for sql in asked:
            try:
                plan = lab.plan(sql, FEW)
            except Refusal as refusal:
                event(f"refused: {refusal.message[:50]}")
                continue
            for block in plan.blocks:
                _check_moved(lab, block, leaver, sql)


def _check_moved(lab: Lab, block: Block, leaver: str, sql: str) -> None:
    whole = [_vector(lab, block, place) for place in range(len(block.measures))]
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.delete(leaver))
        without = [_vector(lab, block, place) for place in range(len(block.measures))]
    for measure, one, other in zip(block.measures, whole, without, strict=True):
        moved = sum(abs(one.get(cell, 0) - other.get(cell, 0)) for cell in one.keys() | other.keys())
        assert moved <= measure.sensitivity, f"{sql}\n{lab.sql(block.statement)}\n{measure.name}"


def _vector(lab: Lab, block: Block, place: int) -> dict[tuple[Text, ...], int]:
    """All numbers of a measure, or all cells of a choice's histogram."""
    width, measure = len(block.keys), block.measures[place]
    if isinstance(measure, Choice):
        return {tuple(row[:-1]): int(row[-1]) for row in lab.connection.execute(lab.sql(measure.statement)).fetchall()}
    column = width + [measure for measure in block.measures if isinstance(measure, Measure)].index(measure)
    return {tuple(row[:width]): int(row[column]) for row in lab.connection.execute(lab.sql(block.statement)).fetchall()}


ALL_ROWS = """
SELECT var_samp(cost), var_pop(count), stddev(score), stddev_pop(cost), corr(cost, count), covar_pop(cost, count),
       covar_samp(score, count), regr_slope(cost, count), regr_intercept(cost, count), regr_r2(cost, count),
       regr_avgx(cost, count), regr_avgy(cost, count), regr_sxx(cost, count), regr_syy(cost, count),
       regr_sxy(cost, count), regr_count(cost, count)
FROM visits
"""


@thorough
@given(rows=tables.data(tame=True, most_visits=12))
def test_without_noise_statistics_are_postgresqls_own(lab: Lab, rows: Data) -> None:
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        (block,) = lab.plan(ALL_ROWS, MANY).blocks
        integers = next(iter(lab.exact(block).values()))
        numbers = tuple(
            in_whole(integer, measure.factor) for integer, measure in zip(integers, block.measures, strict=True)
        )
        given_texts = [show(output, tuple(map(int, numbers))) for output in block.outputs]
        expected = _truth(lab, ALL_ROWS)
    for text, truth in zip(given_texts, expected, strict=True):
        if truth is None:
            assert text is None
        else:
            assert text is not None
            assert abs(Decimal(text) - truth) <= abs(truth) * Decimal("1e-4") + Decimal("1e-4")


def _truth(lab: Lab, sql: str) -> Sequence[Decimal | None]:
    with lab.connection.transaction(force_rollback=True):
        lab.connection.execute("SET LOCAL search_path = public")
        row = lab.connection.execute(sql).fetchone()
    assert row is not None
    return [None if cell is None else Decimal(str(cell)) for cell in row]


@thorough
@given(rows=tables.data(tame=True, most_visits=12), fraction=st.sampled_from(("0", "0.25", "0.5", "0.9", "1")))
def test_the_best_candidate_is_postgresqls_own_quantile(lab: Lab, rows: Data, fraction: str) -> None:
    """Where every value has a candidate of its own, percentile_disc is among those with the best score."""
    sql = f"SELECT percentile_disc({fraction}) WITHIN GROUP (ORDER BY count) FROM visits"
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        (block,) = lab.plan(sql, MANY).blocks
        (choice,) = block.measures
        assert isinstance(choice, Choice)
        histogram = [0] * choice.candidates
        for candidate, count in lab.connection.execute(lab.sql(choice.statement)).fetchall():
            histogram[int(candidate)] += int(count)
        (truth,) = _truth(lab, sql)
    if truth is not None:
        scores = score_candidates(choice.target, histogram)
        texts = [show(block.outputs[0], (place,)) for place in range(choice.candidates)]
        best = [Fraction(text or 0) for text, score in zip(texts, scores, strict=True) if score == max(scores)]
        assert Fraction(truth) in best


def test_an_array_of_fractions_is_one_choice_each(lab: Lab) -> None:
    (block,) = lab.plan(
        "SELECT percentile_disc(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY count) FROM visits", FEW
    ).blocks

    assert [measure.sensitivity // measure.factor for measure in block.measures] == [3, 3, 3]
    assert block.output_types == ("integer[]",)
    assert show(block.outputs[0], (0, 3, 10)) == '{"-3","0","7"}'


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT max(note) FROM people", "would reveal the value of a single row"),
        ("SELECT min(mood) FROM people", "would reveal the value of a single row"),
        ("SELECT max(id) FROM visits", "has no bounds"),
        ("SELECT mode() WITHIN GROUP (ORDER BY note) FROM people", "values are listed"),
        ("SELECT percentile_cont(age) WITHIN GROUP (ORDER BY age) FROM people GROUP BY age", "between 0 and 1"),
        ("SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY age) FROM people", "between 0 and 1"),
        ("SELECT percentile_cont(ARRAY[0.5, 2]) WITHIN GROUP (ORDER BY age) FROM people", "between 0 and 1"),
        ("SELECT variance(DISTINCT age) FROM people", "is not supported"),
        ("SELECT sum(age::float8 * 1e120) FROM people", "beyond ±1e120 is not supported"),
        ("SELECT max(age::numeric * 1e120) FROM people", "beyond ±1e120 is not supported"),
    ],
)
def test_what_would_give_out_a_value_is_refused(lab: Lab, sql: str, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        lab.plan(sql, FEW)


def test_histograms_of_too_many_groups_are_refused_before_anything_is_asked(lab: Lab) -> None:
    sql = "SELECT day, at::date, percentile_cont(0.5) WITHIN GROUP (ORDER BY cost) FROM visits GROUP BY 1, 2"
    with pytest.raises(TooComplex, match="groups exceed the limit"):
        lab.plan(sql, FEW)
