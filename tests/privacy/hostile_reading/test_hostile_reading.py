"""What a hostile reader tried: no unit moves a number further than is claimed, or makes a statement fail on a row.

A statement that is refused claims nothing. How many are answered is counted, so that no schema is refused as a whole.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.privacy.hostile_reading.schemas import REPLAYED, ROW_PARTS, ROWS_AS_UNITS, SCHEMAS, Schema
from tests.privacy.replay.worlds import open_neighbours, open_worlds
from tests.properties.moved import broken_choices, broken_claims, told_by_place
from tests.properties.planning import PINNED, Lab
from tests.support import lab as tables
from tests.support import shop
from tests.support.catalogs import catalog_of

pytestmark = [pytest.mark.extended, pytest.mark.database]


@contextmanager
def opened(cluster: Cluster, schema: Schema) -> Iterator[tuple[Lab, Policy]]:
    """A database of the schema's own, and its rules."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE hostile")
        try:
            with psycopg.connect(cluster.dsn("hostile"), autocommit=True) as connection:
                try:
                    connection.execute(_known_to(connection, schema.tables).encode())
                except psycopg.errors.FeatureNotSupported:
                    if not schema.needs_icu:
                        raise
                    pytest.skip("this server has no ICU")
                connection.execute(PINNED)
                head, tail = tables.RULES[: tables.RULES.index("unit:")], tables.RULES[tables.RULES.index("budget:") :]
                policy = load_policy(f"{head}{schema.rules}{tail}", "rules.yaml", {"DATABASE": "hostile"})
                yield Lab(connection, catalog_of(cluster.dsn("hostile"))), policy
        finally:
            owner.execute("DROP DATABASE hostile WITH (FORCE)")


def _known_to(connection: psycopg.Connection, script: str) -> str:
    if connection.info.server_version < 140000:  # whose numeric has no infinities
        script = script.replace("'NaN', 'Infinity', '-Infinity', '1e131071'", "'NaN', 'NaN', 'NaN', '1e131071'")
    return script


def check(lab: Lab, policy: Policy, sql: str, leaves: tuple[str, ...], *, is_auto: bool | None = None) -> bool:
    """One statement with each unit and without; whether it is answered."""
    if not lab.is_read(sql):
        return False
    try:
        blocks = lab.plan(sql, policy, is_auto=is_auto).blocks
    except Refusal:
        return False
    for block in blocks:
        for leave in leaves:
            if block.ladders:
                assert not (broken := broken_choices(lab, block, leave)), f"{sql}: {broken}"
            rungs = [ladder.rungs[min(1, len(ladder.rungs) - 1)] for ladder in block.ladders]
            settled = lab.settled(block, rungs) if block.ladders else block
            assert not (broken := broken_claims(lab, settled, leave)), f"{sql}: {broken}"
        assert not told_by_place(lab, block, ["t"] if " t " in sql else []), f"{sql}: told by place"
    return True


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_no_unit_moves_a_number_further_than_is_claimed(real_cluster: Cluster, schema: Schema) -> None:
    with opened(real_cluster, schema) as (lab, policy):
        answered = sum(check(lab, policy, sql, schema.leaves) for sql in schema.statements)

        assert answered >= len(schema.statements) * schema.answered / 100


def test_no_row_that_is_a_unit_by_a_key_of_any_type_moves_a_number_further(real_cluster: Cluster) -> None:
    with opened(real_cluster, ROWS_AS_UNITS) as (lab, policy):
        for part in ROW_PARTS:
            answered = sum(check(lab, policy, sql, part.leaves) for sql in part.statements)

            assert answered >= len(part.statements) / 4, part.name


@pytest.mark.parametrize("schema", REPLAYED, ids=lambda schema: schema.name)
def test_two_proxies_of_which_one_has_the_unit_say_the_same(schema: Schema, tmp_path: Path) -> None:
    grants = f"""CREATE ROLE {shop.READER} LOGIN; GRANT USAGE ON SCHEMA public TO {shop.READER};
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO {shop.READER}"""
    rules = shop.RULES[: shop.RULES.index("unit:")] + schema.rules + shop.RULES[shop.RULES.index("budget:") :]
    asked = schema.statements[:: max(1, len(schema.statements) // 12)]
    with (
        open_neighbours([schema.tables, grants], schema.leaves[0]) as neighbours,
        open_worlds(tmp_path, neighbours, rules) as worlds,
    ):
        with worlds.session() as session:
            for sql in asked:
                session.simple(sql, f"EXPLAIN {sql}")
            session.simple("TABLE noisegate.ledger", "TABLE noisegate.columns")
        worlds.check()
