"""Statistics of blocks over rows picked by hand: what a careless author would get wrong shows at once."""

from collections import Counter
from fractions import Fraction

import psycopg

from rules.kernel.keys import Found, Key, Listed
from rules.kernel.relation import Relation
from rules.kernel.special.blocks import (
    BlockDistinct,
    BlockMoment,
    BlockPlace,
    BlockRows,
    BlockStatement,
    BlockValue,
    Cells,
    block_values,
)
from rules.kernel.statement import Bounded
from rules.kernel.summand import Lattice, Summand
from rules.values.expression import Apply, Column
from rules.values.types import FLOAT8, INT8, NUMERIC
from tests.kernel.facts import Data, Row, column, is_true, load, rows_of_facts

WIDEST = Summand(column("i"), Lattice(Fraction(1), -(2**60), 2**60))
SMALL = Summand(column("s"), Lattice(Fraction(1), -4, 100_000))
LISTED = Listed((column("a"),), (("1",), ("2",), ("3",)))
MEAN = BlockValue(
    (BlockMoment((SMALL,), (0,)), BlockMoment((SMALL,), (1,))),
    Apply("mean", "({1} / nullif({0}, 0))", (Column(0, NUMERIC), Column(1, NUMERIC)), NUMERIC),
    Cells(Fraction(-10), Fraction(40_000), 1001),
)
TOTAL = BlockValue((BlockMoment((WIDEST,), (1,)),), Column(0, NUMERIC), Cells(Fraction(-10), Fraction(10), 21))
FAR = BlockValue(
    (BlockRows(is_true("ok", "{0}")),),
    Apply("far", "({0} * '9.9e131069'::numeric)", (Column(0, INT8),), NUMERIC),
    Cells(Fraction(-1), Fraction(1), 5),
)
OTHERS = (
    BlockValue((BlockDistinct(column("n")),), Column(0, INT8), Cells(Fraction(0), Fraction(9), 10)),
    BlockValue((BlockMoment((SMALL, WIDEST), (1, 2)),), Column(0, NUMERIC), Cells(Fraction(0), Fraction(10**30), 4096)),
    BlockValue((BlockPlace(WIDEST, "percentile_cont", Fraction(1, 3)),), Column(0, FLOAT8), TOTAL.cells),
    BlockValue((BlockPlace(SMALL, "mode", descending=True),), Column(0, NUMERIC), MEAN.cells),
)  # fmt: skip
QUESTIONS: tuple[tuple[tuple[Key, ...], BlockValue, int, int], ...] = (
    *(((), value, blocks, 1) for value in (MEAN, TOTAL, FAR, *OTHERS) for blocks in (1, 3, 4096)),
    *(((LISTED,), value, 7, groups) for value in (MEAN, FAR) for groups in (1, 2, 5)),
    *(((Found(column("b")),), MEAN, 7, groups) for groups in (1, 2)),
)


def check_blocks(connection: psycopg.Connection, data: Data) -> None:
    """No unit moves a histogram further than is said, or more than one block of a group; sums are exact."""
    load(connection, data)
    for keys, value, blocks, groups in QUESTIONS:
        whole = _histogram(connection, _statement(rows_of_facts(), keys, value, blocks, groups))
        for unit in filter(None, data):
            left = rows_of_facts(without=unit)
            statement = _statement(left, keys, value, blocks, groups)
            _check_moved(statement, whole, _histogram(connection, statement))
    _check_exact(connection, data)


def _statement(rows: Relation, keys: tuple[Key, ...], value: BlockValue, blocks: int, groups: int) -> Bounded:
    return block_values(rows, BlockStatement(rows.script, keys, value, blocks, 11, groups))


def _histogram(connection: psycopg.Connection, statement: Bounded) -> Counter[tuple[object, ...]]:
    return Counter({row[:-1]: row[-1] for row in connection.execute(statement.sql).fetchall()})


def _check_moved(statement: Bounded, whole: Counter[tuple[object, ...]], less: Counter[tuple[object, ...]]) -> None:
    by_group = Counter[object]()
    for key in whole | less:
        by_group[key[:-1]] += abs(whole[key] - less[key])
    (measured,) = statement.measures
    assert by_group.total() <= measured.sensitivity.l1, f"{by_group} is more than {measured}"
    assert all(number <= 2 for number in by_group.values()), "a unit is in several blocks"
    squares = sum((whole[key] - less[key]) ** 2 for key in whole | less)
    assert squares <= measured.sensitivity.l2_squared, f"{squares} is more than {measured}"


def _check_exact(connection: psycopg.Connection, data: Data) -> None:
    """In any order of rows: doubles would lose what lies between two large numbers that cancel out."""
    like: Row = next(rows[0] for unit, rows in data.items() if unit is not None and rows)
    rows = [like | {"i": text} for text in (str(2**60), "1", "1", "1", "1", "1", str(-(2**60)))]
    for ordered in (rows, rows[::-1], [rows[0], rows[-1], *rows[1:-1]]):
        load(connection, {1: ordered})
        found = _histogram(connection, _statement(rows_of_facts(), (), TOTAL, 1, 1))
        assert found == {(15,): 1}, f"a sum of 5 is told as {found}"
