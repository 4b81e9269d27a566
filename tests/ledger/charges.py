"""Charges for tests of the ledger's homes."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import psycopg

from proxy.twin.embedded import Cluster
from rules.accounting.accountant import Limit
from rules.accounting.budgets import Budgets
from rules.accounting.store import Charge, Release
from rules.mechanisms.cost import Mechanism

IDENTITY = "7300000000000000000/shop"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
BUDGETS = Budgets(Limit(Decimal(2)), {"ada": Limit(Decimal(1)), "bob": Limit(Decimal(2))}, "month")
MAKERS = replace(BUDGETS, analysts={**BUDGETS.analysts, "synopsis daily": Limit(Decimal(2)), "eve": Limit(Decimal(1))})


def create_database(cluster: Cluster) -> str:
    """A new database for a ledger."""
    name = f"ledger_{uuid4().hex}"
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return cluster.dsn(name)


def charge_of(
    analyst: str = "ada", *epsilons: str, delta: str = "0", sights: tuple[int, ...] = (), time: datetime = NOON
) -> Charge:
    """A charge of draws with these epsilons, the first with this delta."""
    mechanisms = [Mechanism.pure(Decimal(epsilon)) for epsilon in epsilons]
    if mechanisms:
        mechanisms[0] = Mechanism.pure(Decimal(epsilons[0]), Decimal(delta))
    return Charge(time, analyst, "session", "print", "customers.id", ("orders",), tuple(mechanisms), sights)


def release_of(epsilon: str, block: str = "block", measure: str = "count") -> Release:
    """Two groups, one of them NULL."""
    return Release(block, measure, Mechanism.pure(Decimal(epsilon)), (("Berlin",), (None,)), (2**61, -7))
