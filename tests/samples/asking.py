"""Asking a sample as an analyst would, without noise."""

from collections.abc import Mapping
from dataclasses import dataclass

import psycopg

from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block, Measure, PublicGroups
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.properties.planning import PINNED, Lab
from tests.samples import Sample
from tests.support.catalogs import catalog_of

Groups = tuple[tuple[Text, ...], ...]


@dataclass(frozen=True)
class Analyst:
    """Plans statements over a sample, and runs them exactly."""

    sample: Sample
    lab: Lab

    @classmethod
    def of(cls, sample: Sample, connection: psycopg.Connection, dsn: str) -> "Analyst":
        connection.execute(PINNED)
        connection.execute("SET TimeZone = 'UTC'")
        return cls(sample, Lab(connection, catalog_of(dsn)))

    def blocks(self, sql: str, policy: Policy | None = None) -> tuple[Block, ...]:
        return self.lab.plan(sql, policy or self.sample.policy(), time_zone="UTC").blocks

    def block(self, sql: str, policy: Policy | None = None) -> Block:
        (block,) = self.blocks(sql, policy)
        return block

    def groups(self, sql: str, policy: Policy | None = None) -> Groups | None:
        """The groups that are answered; None where they are found in the data."""
        groups = self.block(sql, policy).groups
        return groups.rows if isinstance(groups, PublicGroups) else None

    def sensitivities(self, sql: str, policy: Policy | None = None) -> list[int]:
        """Of the numbers that are shown."""
        measures = self.block(sql, policy).measures
        return [measure.sensitivity // measure.factor for measure in measures if isinstance(measure, Measure)]

    def exact(self, sql: str, policy: Policy | None = None) -> Mapping[tuple[Text, ...], tuple[int, ...]]:
        """The first number of each group, as it is shown."""
        block = self.block(sql, policy)
        factors = [measure.factor for measure in block.measures]
        exact = self.lab.exact(block)
        return {group: tuple(n // f for n, f in zip(row, factors, strict=True)) for group, row in exact.items()}

    def refusal(self, sql: str, policy: Policy | None = None) -> Refusal:
        try:
            self.blocks(sql, policy)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"answered: {sql}")

    def rows(self, sql: str, policy: Policy | None = None) -> list[tuple[object, ...]]:
        """What the answer is without noise."""
        made = self.lab.plan(sql, policy or self.sample.policy(), time_zone="UTC")
        return self.lab.run(self.lab.outer(made), made).fetchall()

    def truth(self, sql: str) -> list[tuple[object, ...]]:
        with self.lab.connection.transaction(force_rollback=True):
            self.lab.connection.execute("SET LOCAL search_path = public")
            return self.lab.connection.execute(sql).fetchall()
