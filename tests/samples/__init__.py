"""Three small databases of the kinds that exercises are written for; their own SQL makes the same rows every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from proxy.twin.embedded import Cluster
from rules.policy.load import load_policy
from rules.policy.model import Policy
from tests.samples import music, rental, trading


@dataclass(frozen=True)
class Sample:
    """A database of one kind: its tables, its rows and the rules over them."""

    name: str
    schema: str
    data: str
    rules: str

    def policy(self, changes: tuple[tuple[str, str], ...] = ()) -> Policy:
        """The rules, some lines of which may be replaced."""
        text = self.text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return load_policy(text, "rules.yaml", {"NOISEGATE_DATABASE": self.name})

    def text(self) -> str:
        """The rules file, with an account for ada."""
        return self.rules + _ACCOUNTS


_ACCOUNTS = """
budget: {epsilon: 1000, delta: 1e-6}
defaults: {epsilon: 1, max_epsilon: 10, delta: 1e-9}
analysts: {ada: {password: "SCRAM-SHA-256$4096:bm9pc2VnYXRlLXNhbHQtMQ==$\\
Fx0st/XWuNDfeIQDWXDi1oBnoCVqttNumXyclzzuFCo=:yn7C40SXBTx0F1cq5nA+hSJiJWhbk0thlHnYhZfdRhE="}}
"""

RENTAL = Sample("rental", rental.SCHEMA, rental.DATA, rental.RULES)
MUSIC = Sample("music", music.SCHEMA, music.DATA, music.RULES)
TRADING = Sample("trading", trading.SCHEMA, trading.DATA, trading.RULES)
SAMPLES = (RENTAL, MUSIC, TRADING)


@contextmanager
def database(cluster: Cluster, sample: Sample) -> Iterator[psycopg.Connection]:
    """The sample as a database of its own."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE sample_{sample.name}")
    with psycopg.connect(cluster.dsn(f"sample_{sample.name}"), autocommit=True) as connection:
        connection.execute(sample.schema)
        connection.execute(sample.data)
        yield connection
