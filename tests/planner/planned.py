"""Planning over the shop of tests/support/shop.py, and running what was planned, exactly."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from proxy.twin.hardening import CANON, PUBLIC_ROWS, RENAMED
from rules.bind.inner_answers import InnerAnswer
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.mechanisms.draw import in_whole
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block, Measure, PublicGroups
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.policy.model import Policy
from rules.refusal import Refusal
from rules.replay import DraftingKernel, Kernel
from rules.sql.session_settings import EmptyGroups
from tests.support import shop
from tests.support.catalogs import catalog_of

Rows = list[tuple[Any, ...]]


def whole(made: Plan | NeedsInner) -> Plan:
    """A plan that needs no other answer first."""
    assert isinstance(made, Plan), f"to be answered first: {made.text}"
    return made


def public_groups(connection: psycopg.Connection, first: NeedsInner, time_zone: str = "UTC") -> InnerAnswer:
    """What the twin would make of public tables: here it is the database itself that has their rows."""
    with connection.transaction(force_rollback=True):
        connection.execute(CANON)
        connection.execute(PUBLIC_ROWS.replace(f"{RENAMED}has_table", "has_table"))
        connection.execute("SET LOCAL search_path = public")
        connection.execute(f"SET LOCAL TimeZone = '{time_zone}'")
        found = connection.execute(f"SELECT * FROM ({first.text}) AS g LIMIT 0").description or ()
        names = [column.name for column in found]
        shown = ", ".join(f"pg_catalog.noisegate_canon(g.{name})" for name in names)
        rows = connection.execute(f"SELECT {shown} FROM ({first.text}) AS g").fetchall()
    return InnerAnswer(first.inner, tuple(names), ("text",) * len(names), tuple(rows))


@dataclass
class Planner:
    """A database, its catalog, and rules that a test may change."""

    dsn: str
    rules: str = shop.RULES
    catalog: Catalog = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = catalog_of(self.dsn)

    def _read(self, first: NeedsInner) -> InnerAnswer:
        """What PostgreSQL reads in literals, in a session with plain styles."""
        with psycopg.connect(self.dsn) as connection:
            connection.execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'")
            rows = connection.execute(f"SELECT literal, value::text FROM ({first.text}) AS r").fetchall()
        return InnerAnswer(first.inner, ("literal", "value"), ("text", "text"), tuple(rows))

    @property
    def policy(self) -> Policy:
        return shop.policy(rules=self.rules)

    def plan(
        self,
        sql: str,
        *,
        rows_per_unit: int | None = None,
        groups_per_unit: int | None = None,
        delta: str = "1e-9",
        empty_groups: EmptyGroups = "hide",
    ) -> Plan:
        request = Request(
            text=sql,
            search_path=("pg_catalog", "public"),
            epsilon=Decimal(1),
            delta=Decimal(delta),
            rows_per_unit=rows_per_unit,
            groups_per_unit=groups_per_unit,
            empty_groups=empty_groups,
            now="2025-06-15 12:00:00+00:00",
        )
        return self.whole(request)

    def whole(self, request: Request) -> Plan:
        """The plan, with the values of public columns as they are."""
        try:
            made = plan(request, self.policy, self.catalog)
        except Refusal as refusal:
            with pytest.raises(type(refusal), match=re.escape(refusal.message)):  # with all advice, in its own process
                plan(request, self.policy, self.catalog, self.drafting)
            raise
        assert made == plan(request, self.policy, self.catalog, self.drafting), "a planner's process says otherwise"
        if isinstance(made, NeedsInner) and made.inner.use in ("groups", "bounds"):
            with psycopg.connect(self.dsn) as connection:
                listed = public_groups(connection, made, request.time_zone)
            return self.whole(replace(request, released=(*request.released, listed)))
        if isinstance(made, NeedsInner) and made.inner.use == "reading":
            return self.whole(replace(request, released=(*request.released, self._read(made))))
        return whole(made)

    def block(self, sql: str, *, rows_per_unit: int | None = None) -> Block:
        """The only block of a statement."""
        (block,) = self.plan(sql, rows_per_unit=rows_per_unit).blocks
        return block

    @property
    def kernel(self) -> Kernel:
        return Kernel(Ground(self.policy, self.catalog))

    @property
    def drafting(self) -> Kernel:
        """That of a planner's process."""
        return DraftingKernel(Ground(self.policy, self.catalog))

    def sql(self, text: str, *, rows_per_unit: int | None = None) -> str:
        """The inner SQL of the only block of a statement."""
        return self.sql_of(self.block(text, rows_per_unit=rows_per_unit))

    def sql_of(self, block: Block) -> str:
        return self.kernel.bounded(block.statement).sql

    def sensitivities(self, sql: str, *, rows_per_unit: int | None = None) -> list[int]:
        """Of the numbers that are shown: the integers of the statement are `factor` times as many."""
        measures = self.block(sql, rows_per_unit=rows_per_unit).measures
        return [measure.sensitivity // measure.factor for measure in measures if isinstance(measure, Measure)]

    def refusal(self, sql: str, *, delta: str = "1e-9") -> Refusal:
        """Why a statement is not answered."""
        try:
            planned = self.plan(sql, delta=delta)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"answered: {[self.sql_of(block) for block in planned.blocks]}")

    def truth(self, sql: str) -> Rows:
        """What PostgreSQL answers, without noise."""
        with psycopg.connect(self.dsn) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.execute(sql).fetchall()

    def run(self, sql: str, *before: str) -> Rows:
        """The exact rows of the only block, after changes that are taken back."""
        return self.rows_of(self.block(sql), *before)

    def numbers(self, block: Block) -> list[int]:
        """The first exact number of each group."""
        width = len(block.keys)
        return [row[width] for row in self.rows_of(block)]

    def rows_of(self, block: Block, *before: str) -> Rows:
        with psycopg.connect(self.dsn) as connection:
            for change in before:
                connection.execute(change)
            connection.execute("SET LOCAL search_path = ''; SET LOCAL TimeZone = 'UTC'")
            rows = connection.execute(self.sql_of(block)).fetchall()
            connection.rollback()
        return shown(block, rows)


def shown(block: Block, rows: Rows) -> Rows:
    """Rows of a statement with labels for ordinals, and the numbers that its integers stand for."""
    width, group_at = block.key_cells, groups_by_cells(block)
    factors = [measure.factor for measure in block.measures if isinstance(measure, Measure)]
    return [(*(group_at(row[:width]) or ()), *map(in_whole, row[width:], factors)) for row in rows]


def groups_by_cells(block: Block) -> Callable[[Sequence[Any]], tuple[Text, ...] | None]:
    """What the key cells of a row stand for: ordinals for labels, found values for themselves."""
    match block.groups:
        case PublicGroups(rows=rows, ordinals=tuple() as ordinals):
            known = dict(zip(ordinals, rows, strict=True))
            return lambda cells: known.get(tuple(cells))
    labels = [column.labels for column in block.keys]
    return lambda cells: tuple(
        cell if listed is None else listed[cell] for listed, cell in zip(labels, cells, strict=True)
    )


def planned(planner: Planner, sql: str) -> Plan:
    """The plan, once it knows the public rows that it has asked for."""
    asked = Request(
        sql, ("pg_catalog", "public"), epsilon=Decimal(1), delta=Decimal("1e-9"), now="2025-06-15 12:00:00+00:00"
    )
    with psycopg.connect(planner.dsn) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        while isinstance(made := plan(asked, planner.policy, planner.catalog), NeedsInner):
            asked = replace(asked, released=(*asked.released, _answered(connection, made)))
    return made


def _answered(connection: psycopg.Connection, first: NeedsInner) -> InnerAnswer:
    """The rows of a query over public rows alone."""
    if first.inner.use == "groups":
        return public_groups(connection, first)
    columns = connection.execute(f"SELECT * FROM ({first.text}) AS q LIMIT 0").description or ()
    names = tuple(column.name for column in columns)
    shown = ", ".join(f'"{name}"::text' for name in names)
    rows = connection.execute(f"SELECT {shown} FROM ({first.text}) AS q").fetchall()
    return InnerAnswer(first.inner, names, tuple(column.type_display for column in columns), tuple(rows))
