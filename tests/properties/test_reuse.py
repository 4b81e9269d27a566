"""Equal keys of reuse mean equal numbers: whatever is asked in another way, and is not the same, has another key."""

import re
from collections.abc import Iterator, Sequence
from random import Random

from hypothesis import event, given
from hypothesis import strategies as st

from rules.mechanisms.release_plan import Block, Choice, PublicGroups
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.properties import wide_rows as wide
from tests.properties.planning import Exact, Lab, thorough
from tests.properties.wide_sources import statements
from tests.support import lab as tables
from tests.support.lab import Data
from tests.support.strategies import Query, queries

# What is written otherwise: by one of these a statement becomes another, or the same in other words.
_CHANGES = (
    (r"LEFT JOIN", "JOIN"), (r" JOIN ", " LEFT JOIN "), (r" AND ", " OR "), (r" OR ", " AND "), (r"<>", "="),
    (r" = ", " <> "), (r" < ", " <= "), (r" >= ", " > "), (r" NOT IN ", " IN "), (r" IN ", " NOT IN "),
    (r"IS NOT NULL", "IS NULL"), (r"NOT EXISTS", "EXISTS"), (r"EXISTS", "NOT EXISTS"), (r"\b1\b", "2"), (r"\b0\b", "1"),
    (r"\b2\b", "2.0"), (r"'a'", "'b'"), (r"\bmax\(", "min("), (r"\bsum\(", "avg("), (r"count\(DISTINCT ", "count("),
    (r"UNION ALL", "UNION ALL SELECT * FROM (SELECT 1) AS z UNION ALL"), (r" DESC", ""), (r"coalesce\(", "nullif("),
    (r"ORDER BY", "ORDER BY 1,"), (r"PRECEDING AND CURRENT ROW", "PRECEDING AND 1 FOLLOWING"), (r"NULLS FIRST", ""),
    (r"\.n\b", ".grade"), (r"\.count\b", ".big"), (r"\.cost\b", ".score"), (r"\.kind\b", ".cc"), (r"\.flag\b", ".vip"),
    (r"places", "(SELECT * FROM places WHERE size > 0)"), (r"row_number\(\)", "rank()"), (r"least\(", "greatest("),
    (r"percentile_disc\(0.5\)", "percentile_disc(0.25)"), (r"bool_or", "bool_and"), (r"::text", "::varchar(1)"),
    (r"month", "week"), (r"timestamptz", "timestamp"), (r"BETWEEN SYMMETRIC", "BETWEEN"), (r"IS UNKNOWN", "IS TRUE"),
    (r"FILTER \(WHERE ", "FILTER (WHERE NOT "), (r"var_pop", "var_samp"), (r"::numeric\b", "::float8"),
)  # fmt: skip


def changed(sql: str, seed: int) -> list[str]:
    """The statement as it is, and twice with a word or two of it exchanged."""
    random = Random(seed)
    return [sql, *(_changed(sql, random) for _ in range(2))]


def _changed(sql: str, random: Random) -> str:
    for _ in range(random.randint(1, 2)):
        fitting = [change for change in _CHANGES if re.search(change[0], sql)]
        if fitting:
            pattern, other = random.choice(fitting)
            place = random.choice(list(re.finditer(pattern, sql)))
            sql = sql[: place.start()] + other + sql[place.end() :]
    return sql


seeds = st.integers(0, 2**48)


@thorough
@given(
    unit=st.sampled_from(sorted(wide.UNITS)),
    limits=wide.limits(),
    seed=st.integers(0, 2**20),
    asked=statements(most=1),
    changes=seeds,
)
def test_equal_keys_of_reuse_mean_equal_numbers(
    worlds: dict[str, Lab], unit: str, limits: wide.Limits, seed: int, asked: tuple[str, ...], changes: int
) -> None:
    world, texts = worlds[unit], changed(asked[0], changes)
    with world.connection.transaction(force_rollback=True):
        lab = Lab(world.connection, limits.apply(world.connection, world.catalog))
        lab.script(wide.rows(unit, seed, limits))
        check_all(lab, texts, wide.rules(3, 4))


@thorough
@given(rows=tables.data(), asked=queries(), changes=seeds)
def test_equal_keys_of_usual_questions_mean_equal_numbers(lab: Lab, rows: Data, asked: Query, changes: int) -> None:
    texts = changed(asked.sql, changes)
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows))
        check_all(lab, texts, tables.rules())


def check_all(lab: Lab, texts: Sequence[str], rules: Policy) -> None:
    """The statements, and the first one in another zone: what has the key of something before has its numbers."""
    known: dict[tuple[object, ...], tuple[str, object]] = {}
    for sql, zone in dict.fromkeys([(texts[0], "America/New_York"), *((text, "Europe/Berlin") for text in texts)]):
        for key, numbers in _numbers(lab, sql, rules, zone):
            before = known.setdefault(key, (f"{sql} in {zone}", numbers))
            event("an equal key" if before[0] != f"{sql} in {zone}" else "a key")
            assert before[1] == numbers, f"{before[0]}\n{sql} in {zone}\n{key}"


def _numbers(lab: Lab, sql: str, rules: Policy, zone: str) -> Iterator[tuple[tuple[object, ...], object]]:
    """What the ledger would keep of a statement: by key the exact numbers, and the groups where they are public."""
    if not lab.is_read(sql):
        return
    try:
        plan = lab.plan(sql, rules, time_zone=zone)
    except Refusal:
        return
    with lab.connection.transaction(force_rollback=True):
        lab.connection.execute(f"SET LOCAL TimeZone = '{zone}'")
        for block in plan.blocks:
            yield from _of_block(lab, block)


def _of_block(lab: Lab, block: Block) -> Iterator[tuple[tuple[object, ...], object]]:
    exact, groups = lab.exact(block), block.groups.rows if isinstance(block.groups, PublicGroups) else None
    place = 0
    for measure in block.measures:
        key = (block.canonical, measure.name, measure.sensitivity, groups)
        if isinstance(measure, Choice):
            yield (
                key,
                (measure.candidates, sorted(map(str, lab.connection.execute(lab.sql(measure.statement)).fetchall()))),
            )
        else:
            yield key, _nonzero(exact, place)
            place += 1


def _nonzero(exact: Exact, place: int) -> object:
    return {group: numbers[place] for group, numbers in exact.items() if numbers[place]}
