"""Roles of the twin: who may log in, and do what there: nothing that could answer from its empty tables.

Analysts hold REFERENCES on every table, so that it is listed, parsed and described, but SELECT only on public tables
that are filled: PostgreSQL checks that when execution starts, by whatever route. Rights are PUBLIC's: there are no
roles in the cluster but the owner and the analysts.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from proxy.twin.embedded import OWNER
from proxy.twin.sql_text import Step, literal, qualified, quoted
from rules.catalog import TableName
from rules.policy.model import Policy

RESERVED = ("public", "none", OWNER)


def misnamed(policy: Policy) -> list[str]:
    """Analysts whose names cannot be roles."""
    return [name for name in policy.analysts if name.startswith("pg_") or name in RESERVED]


def change_roles(old: Collection[str], new: Collection[str], connections: int) -> Iterator[Step]:
    """Log-in roles for analysts; the sessions of those who are gone end."""
    for name in sorted(set(old) - set(new)):
        yield Step(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = {literal(name)}")
        yield Step(f"DROP OWNED BY {quoted(name)}")  # views of a session and default privileges would keep the role
        yield Step(f"DROP ROLE {quoted(name)}")
    for name in sorted(set(new) - set(old)):
        yield Step(f"CREATE ROLE {quoted(name)} LOGIN NOINHERIT CONNECTION LIMIT {connections}")


def default_settings(policy: Policy, database: str) -> Mapping[str, Step]:
    """Defaults for every session, so that SHOW and RESET know our settings before they were ever set."""
    values = {
        "epsilon": str(policy.defaults.epsilon),
        "rows_per_unit": "",
        "sum_per_unit": "",
        "groups_per_unit": "",
        "cut": "off",
        "other": "off",
        "reuse": "on",
        "notices": "on",
        "progress": "on",
        "confidence": "0.95",
        "previews": "",
        "delta": "",
        "within": "",
        "mark": "off",
    }
    return {
        name: Step(f"ALTER DATABASE {quoted(database)} SET noisegate.{name} = {literal(value)}")
        for name, value in values.items()
    }


def close_tables(tables: Iterable[TableName]) -> Iterator[Step]:
    """Yield what every table starts with, and goes back to: seen, and not readable."""
    for name in sorted(tables):
        yield Step(f"REVOKE ALL ON {qualified(name)} FROM PUBLIC")
        yield Step(f"GRANT REFERENCES ON {qualified(name)} TO PUBLIC")


def open_table(name: TableName) -> Step:
    """For a public table whose rows are in the twin."""
    return Step(f"GRANT SELECT ON {qualified(name)} TO PUBLIC")
