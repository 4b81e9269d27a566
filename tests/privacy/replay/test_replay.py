"""Hold the noise, replay the neighbour: whatever differs between two neighbouring worlds is a leak.

Both worlds release the same numbers. All else that a proxy says, charges, logs or asks must follow from these, the
statements and the rules, so it must be the same byte for byte. (The idea of Re:cord-play, PETS 2026.)
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.privacy.replay.faults import FAULTS
from tests.privacy.replay.statements import (
    ASKED_UNDER_SETTINGS,
    CONVERSATIONS,
    FOUND_GROUPS,
    KNOWN_GROUPS,
    OWN_RELATIONS,
    REFUSED,
    REMOVAL,
    ROWS,
    RULES,
    SETTINGS,
    SHAPES,
)
from tests.privacy.replay.worlds import Neighbours, Worlds, open_neighbours, open_worlds

FEW = (
    *KNOWN_GROUPS[1:3],
    *FOUND_GROUPS[:3],
    *SHAPES[:2],
    *REFUSED[:3],
    "TABLE noisegate.budget",
    "TABLE noisegate.last",
)


@pytest.fixture(scope="module")
def neighbours() -> Iterator[Neighbours]:
    with open_neighbours(ROWS, REMOVAL) as found:
        yield found


@pytest.fixture(scope="module")
def opened(neighbours: Neighbours, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with open_worlds(tmp_path_factory.mktemp("worlds"), neighbours, RULES) as worlds:
        yield worlds


@pytest.fixture
def worlds(opened: Worlds) -> Iterator[Worlds]:
    """Both, by the usual rules; what no client sees is compared at the end of each test."""
    yield opened
    opened.check()
    opened.reload(RULES)


@pytest.mark.extended
def test_what_no_client_may_know_of_a_unit_shows_nowhere(worlds: Worlds) -> None:
    with worlds.session() as session:
        for sql in FEW:
            session.ask(sql, f"EXPLAIN {sql}")


@pytest.mark.extended
def test_answers_explanations_and_refusals_are_the_same(worlds: Worlds) -> None:
    with worlds.session() as session:
        for sql in (*KNOWN_GROUPS, *FOUND_GROUPS, *SHAPES, *REFUSED):
            for explain in ("", "(FORMAT JSON) "):
                session.simple(f"EXPLAIN {explain}{sql}")
            session.ask(sql)
            session.extended(sql, binary=True)
            session.ask(f"EXPLAIN {sql}", *OWN_RELATIONS)


@pytest.mark.extended
def test_what_a_hostile_reader_asked_is_answered_alike(worlds: Worlds) -> None:
    """A string a line: shapes, errors and settings that were tried to tell the worlds apart, and did not."""
    with worlds.session() as session:
        session.simple(*(Path(__file__).parent / "hostile.sql").read_text(encoding="utf-8").splitlines())


@pytest.mark.extended
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_same_under_a_setting(worlds: Worlds, setting: str) -> None:
    with worlds.session() as session:
        session.simple(f"SET noisegate.{setting}")
        for sql in ASKED_UNDER_SETTINGS:
            session.ask(f"EXPLAIN {sql}", sql, "TABLE noisegate.last")


@pytest.mark.extended
@pytest.mark.parametrize("strings", CONVERSATIONS, ids=lambda strings: strings[0][:30])
def test_conversations_are_the_same(worlds: Worlds, strings: tuple[str, ...]) -> None:
    with worlds.session() as session:
        session.simple(*strings)


@pytest.mark.extended
@pytest.mark.parametrize(
    "more",
    [
        "noise: gaussian\n",
        "min_units: 60\n",
        "group_size: 3\n",
        "fresh_for: 0\n",
        "previews: synthetic\n",
        "groups_limit: 3\n",
    ],
)
def test_the_same_under_other_rules(worlds: Worlds, more: str) -> None:
    worlds.reload(RULES + more)
    with worlds.session() as session:
        session.ask(*KNOWN_GROUPS, *FOUND_GROUPS, *OWN_RELATIONS)


@pytest.mark.extended
def test_a_spent_budget_is_spent_in_both_and_new_periods_begin_alike(worlds: Worlds) -> None:
    worlds.reload(
        RULES.replace("budget: {epsilon: 1000, delta: 1e-6}", "budget: {epsilon: 12, delta: 1e-6, per: month}")
    )
    for _ in range(3):
        worlds.advance(timedelta(days=31))
        for analyst in ("ada", "bob"):
            with worlds.session(analyst) as session:
                session.ask(*ASKED_UNDER_SETTINGS, *FOUND_GROUPS, *OWN_RELATIONS)


CUBES = """\
synopses:
  daily: {epsilon: 20, cube: [ordered_at by month, status], measures: [count, "sum(amount)"], table: orders}
  explore:
    epsilon: 20
    tables:
      customers: [city, segment, is_vip, tier, height by 10, count(orders) by 8]
      orders: [customers.city, status, channel, ordered_at by quarter, amount by 10]
"""


@pytest.mark.extended
def test_cubes_and_synopses_are_made_and_read_alike(worlds: Worlds) -> None:
    worlds.reload(RULES + CUBES, "synopsis_shown", 2)
    with worlds.session() as session:
        session.ask(
            "SELECT date_trunc('month', ordered_at), status, count(*), sum(amount) FROM orders GROUP BY 1, 2",
            "SELECT status, avg(amount) FROM orders GROUP BY status",
            "SELECT to_jsonb(c) FROM explore.customers AS c ORDER BY id",  # numbers of tables are those of a twin
            "SELECT to_jsonb(o) FROM explore.orders AS o ORDER BY id",
            "SELECT upper(channel), upper(tier), count(*) FROM explore.orders JOIN explore.customers c"
            " ON c.id = customer_id GROUP BY 1, 2",
            "SELECT count(*) FROM orders WHERE status = 'paid' AND ordered_at >= '2024-03-01'"
            " AND ordered_at < '2025-01-01'",
            *OWN_RELATIONS,
        )


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
def test_a_replay_finds_a_fault(neighbours: Neighbours, tmp_path: Path, fault: str) -> None:
    program = ("tests.privacy.replay.faults", fault)
    with (
        open_worlds(tmp_path, neighbours, RULES, program=program) as worlds,
        pytest.raises(AssertionError, match="differ"),
    ):
        with worlds.session() as session:
            session.ask(
                "SELECT channel, count(*) FROM orders GROUP BY channel",
                "SELECT tier, count(*) FROM customers GROUP BY tier",
                "SELECT sum(quantity) FROM order_items",
            )
        worlds.check()


@pytest.mark.extended
def test_a_world_with_the_unit_may_lead(neighbours: Neighbours, tmp_path: Path) -> None:
    with open_worlds(tmp_path, neighbours, RULES, leads_without=False) as worlds:
        with worlds.session() as session:
            session.ask(*KNOWN_GROUPS, *FOUND_GROUPS, *SHAPES, *OWN_RELATIONS)
        worlds.check()
