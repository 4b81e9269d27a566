"""Planning over the shop of tests/shop.py, and running what was planned, exactly."""

from dataclasses import dataclass, field, replace
from decimal import Decimal

import psycopg

from rules.catalog import Catalog
from rules.noise.measures import Block, Measure
from rules.policy.model import Policy
from rules.refusal import Refusal
from rules.relation.released import Inner, Released
from rules.relation.render import qualified
from rules.rewrite.pipeline import plan
from rules.rewrite.plan import First, Plan, Request
from tests import shop
from tests.catalogs import catalog_of

Rows = list[tuple[object, ...]]


def whole(made: Plan | First) -> Plan:
    """A plan that needs no other answer first."""
    assert isinstance(made, Plan), f"to be answered first: {made.text}"
    return made


def public_values(connection: psycopg.Connection, inner: Inner) -> Released:
    """What a column of a public table has."""
    assert inner.column is not None
    column, table = inner.column.name, qualified(inner.column.table)
    rows = connection.execute(f'SELECT DISTINCT "{column}"::text FROM {table} WHERE "{column}" IS NOT NULL').fetchall()
    (kind,) = connection.execute(f'SELECT pg_typeof("{column}")::text FROM {table} LIMIT 1').fetchone() or ("text",)
    return Released(inner, ("value",), (kind,), tuple(rows))


@dataclass
class Planner:
    """A database, its catalog, and rules that a test may change."""

    dsn: str
    rules: str = shop.RULES
    catalog: Catalog = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = catalog_of(self.dsn)

    def _read(self, first: First) -> Released:
        """What PostgreSQL reads in literals, in a session with plain styles."""
        with psycopg.connect(self.dsn) as connection:
            connection.execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'")
            rows = connection.execute(f"SELECT literal, value::text FROM ({first.text}) AS r").fetchall()
        return Released(first.inner, ("literal", "value"), ("text", "text"), tuple(rows))

    @property
    def policy(self) -> Policy:
        return shop.policy(rules=self.rules)

    def plan(
        self, sql: str, *, rows_per_unit: int | None = None, groups_per_unit: int | None = None, delta: str = "1e-9"
    ) -> Plan:
        request = Request(
            text=sql,
            search_path=("pg_catalog", "public"),
            epsilon=Decimal(1),
            delta=Decimal(delta),
            rows_per_unit=rows_per_unit,
            groups_per_unit=groups_per_unit,
            now="2025-06-15 12:00:00+00:00",
        )
        return self.whole(request)

    def whole(self, request: Request) -> Plan:
        """The plan, with the values of public columns as they are."""
        made = plan(request, self.policy, self.catalog)
        if isinstance(made, First) and made.inner.column is not None:
            with psycopg.connect(self.dsn) as connection:
                listed = public_values(connection, made.inner)
            return self.whole(replace(request, released=(*request.released, listed)))
        if isinstance(made, First) and made.inner.use == "reading":
            return self.whole(replace(request, released=(*request.released, self._read(made))))
        return whole(made)

    def block(self, sql: str, *, rows_per_unit: int | None = None) -> Block:
        """The only block of a statement."""
        (block,) = self.plan(sql, rows_per_unit=rows_per_unit).blocks
        return block

    def sensitivities(self, sql: str, *, rows_per_unit: int | None = None) -> list[int]:
        measures = self.block(sql, rows_per_unit=rows_per_unit).measures
        return [measure.sensitivity for measure in measures if isinstance(measure, Measure)]

    def refusal(self, sql: str, *, delta: str = "1e-9") -> Refusal:
        """Why a statement is not answered."""
        try:
            planned = self.plan(sql, delta=delta)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"answered: {[block.sql for block in planned.blocks]}")

    def run(self, sql: str, *before: str) -> Rows:
        """The exact rows of the only block, after changes that are taken back."""
        block = self.block(sql)
        with psycopg.connect(self.dsn) as connection:
            for change in before:
                connection.execute(change)
            connection.execute("SET LOCAL search_path = ''; SET LOCAL TimeZone = 'UTC'")
            rows = connection.execute(block.sql).fetchall()
            connection.rollback()
        return rows
