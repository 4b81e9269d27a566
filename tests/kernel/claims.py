"""What bounded statements claim, held against rows: integers of an independent sum, and how far one unit moves them."""

from collections import Counter, defaultdict
from fractions import Fraction
from math import prod

import psycopg

from rules.kernel.bounded import PARTS, Ladder
from rules.kernel.forms import Form
from rules.kernel.measures import Distinct, DistinctSum
from rules.kernel.relation import Relation
from rules.kernel.statement import Bounded, Ordinals
from rules.values.expression import TRUE, Expression
from tests.kernel.facts import Data, rows_of_facts, tally
from tests.kernel.oracle import Group, Limits, Triple, contribution, group_of, values_of
from tests.kernel.statements import FORMS, PIVOTS, Answer, Question, answer, difference, of_measure


def check_integers(
    connection: psycopg.Connection,
    data: Data,
    question: Question,
    *,
    single: bool = False,
    condition: Expression = TRUE,
) -> Counter[str]:
    """All forms give the same integers, and those of a sum in Python; counts the measures of which it knows them."""
    rows = rows_of_facts(proved_one=single, condition=condition)  # whose candidates are all rows
    forms = FORMS if not single else (*FORMS, None)
    first, *others = [answer(connection, question.statement(rows, form)) for form in forms]
    assert all(other == first for other in others), "the forms differ"
    decided = Counter[str]()
    for number, measure in enumerate(question.measures):
        expected = _expected(data, question, number, single=single)
        decided["by hash" if expected is None else "by sum"] += 1
        if expected is not None:
            groups = [*expected, *first] if not question.is_found else list(first)
            wrong = difference(of_measure(first, number), expected, groups)
            assert not any(wrong), f"{measure} is wrong by {wrong}"
    return decided


def check_moves(
    connection: psycopg.Connection, data: Data, question: Question, form: Form | None
) -> list[tuple[str, bool]]:
    """No unit moves a measure further than is said; returns the kinds of measures, and whether one moved so far."""
    statement = question.statement(rows_of_facts(), form)
    whole = answer(connection, statement)
    _check_groups(statement, whole)
    farthest = [0 for _ in statement.measures]
    for unit in filter(None, data):
        less = answer(connection, question.statement(_without(unit), form))
        _check_candidates(statement, whole, less)
        moved = [moved_by(statement, whole, less, number) for number in range(len(farthest))]
        for by, measured in zip(moved, statement.measures, strict=True):
            assert sum(map(abs, by)) <= measured.sensitivity.l1, f"{by} is more than {measured}"
            assert sum(number**2 for number in by) <= measured.sensitivity.l2_squared, f"{by} is more than {measured}"
            assert max(map(abs, by), default=0) <= measured.sensitivity.largest, f"{by} is more than {measured}"
        _check_vectors(statement, moved)
        farthest = [max(far, sum(map(abs, by))) for far, by in zip(farthest, moved, strict=True)]
    return [
        (type(measure).__name__, far == measured.sensitivity.l1)
        for measure, measured, far in zip(question.measures, statement.measures, farthest, strict=False)
    ]


def check_tally(connection: psycopg.Connection, data: Data, question: Question, ladders: tuple[Ladder, ...]) -> None:
    """A unit is in one rung of each ladder at most, with no more than a whole step, and in no other's way."""
    whole, *less = [
        {(ladder, rung): (units, parts) for ladder, rung, units, parts in connection.execute(sql)}
        for sql in (
            tally(rows, question.keys, ladders, rows_per_unit=question.rows_per_unit, pivots=PIVOTS).sql
            for rows in (rows_of_facts(), *map(_without, filter(None, data)))
        )
    ]
    for each in less:
        assert each.keys() <= whole.keys(), "a unit moves another one to another rung"
        moved = {
            key: (units - each.get(key, (0, 0))[0], parts - each.get(key, (0, 0))[1])
            for key, (units, parts) in whole.items()
        }
        left = {key: found for key, found in moved.items() if found != (0, 0)}
        assert all(units == 1 and 0 <= parts <= PARTS for units, parts in left.values()), "a unit counts more than once"
        assert len({ladder for ladder, _ in left}) == len(left), "a unit is in several rungs"


def _without(unit: int) -> Relation:
    return rows_of_facts(without=unit)


def moved_by(statement: Bounded, whole: Answer, less: Answer, number: int) -> list[int]:
    """How far a measure is moved: over all groups if they are listed, or else over those that both sides may show."""
    threshold = statement.threshold
    in_all = threshold is None or number == threshold.measure
    return difference(of_measure(whole, number), of_measure(less, number), list({**whole, **less} if in_all else less))


def _check_candidates(statement: Bounded, whole: Answer, less: Answer) -> None:
    """Of found groups at most K' are there because of one unit, which alone is counted in them."""
    if statement.threshold is not None:
        new = [group for group in whole if group not in less]
        assert set(less) <= set(whole)
        assert len(new) <= statement.threshold.groups
        assert all(whole[group][statement.threshold.measure] == 1 for group in new)


def _check_vectors(statement: Bounded, moved: list[list[int]]) -> None:
    """Σ|x_i|/Δ_i ≤ 1 over the measures of one vector."""
    spent: dict[int, Fraction] = defaultdict(Fraction)
    for by, measured in zip(moved, statement.measures, strict=True):
        if measured.vector is not None:
            spent[measured.vector] += Fraction(sum(map(abs, by)), measured.sensitivity.l1)
    assert all(fraction <= 1 for fraction in spent.values())


def _check_groups(statement: Bounded, found: Answer) -> None:
    for group in found:
        for cell, column in zip(group, statement.keys, strict=True):
            if isinstance(column, Ordinals):
                assert isinstance(cell, int)
                assert 0 <= cell < column.count
            else:
                assert cell is None or (isinstance(cell, str) and len(cell.encode()) <= 8192)


def _expected(data: Data, question: Question, number: int, *, single: bool) -> Counter[Group] | None:
    """The sum over units of what each adds; None where a hash decides what is kept of some unit."""
    statement = question.statement(rows_of_facts(proved_one=single))
    measure, factor = question.measures[number], statement.measures[number].sensitivity.factor
    m = 1 if single else question.rows_per_unit
    cells = [max(key.count, 1) if isinstance(key, Ordinals) else 10**6 for key in statement.keys]
    k = min(m, question.groups_per_unit or m, prod(cells))
    total: Counter[Group] = Counter()
    different: set[Triple] = set()
    for unit, rows in data.items():
        grouped = [(group, row) for row in rows if (group := group_of(question.keys, row)) is not None]
        if unit is None:
            continue
        if isinstance(measure, Distinct | DistinctSum):
            triples = values_of(grouped, measure, PIVOTS)
            if len(triples) > m:
                return None
            different |= triples
        else:
            added = contribution(grouped, measure, PIVOTS, Limits(m, k, factor, question.is_found))
            if added is None:
                return None
            total.update(added)
    for group, value in different:
        total[group] += int(value) if isinstance(measure, DistinctSum) else 1
    return total
