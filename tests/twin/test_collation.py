"""The twin sorts and folds texts as the real database does, where its server can."""

from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.embedded import Cluster
from proxy.twin.server_programs import collation_notes, create_options, sorted_as_twin
from proxy.twin.twin import Twin, TwinLimits
from rules.catalog import Catalog, DatabaseLocale
from tests.conftest import RealDatabase
from tests.support import shop as shop_data

OF_SYSTEM = "ENCODING UTF8 LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'"
FOLDED = "SELECT lower('ÀÉ') || upper('ß'), 'a' < 'É', datcollate FROM pg_database WHERE datname = current_database()"


@pytest.fixture
async def sorted_twin(real_cluster: Cluster) -> AsyncIterator[Twin]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE sorted TEMPLATE template0 {OF_SYSTEM}")
    real = RealDatabase(real_cluster, "sorted")
    with real.connect() as connection:
        connection.execute(shop_data.SCHEMA + shop_data.GRANTS)
    engine = PostgresEngine(real.reader_dsn)
    twin = await Twin.open(await engine.catalog(), shop_data.policy(real.reader_dsn), engine, TwinLimits())
    yield twin
    await twin.close()
    await engine.close()


async def test_a_locale_of_the_machine_is_the_twins_too(sorted_twin: Twin, real_cluster: Cluster) -> None:
    with psycopg.connect(sorted_twin.dsn("ada")) as ada, psycopg.connect(real_cluster.dsn("sorted")) as real:
        assert ada.execute(FOLDED).fetchone() == real.execute(FOLDED).fetchone()
    assert list(collation_notes(sorted_twin.shown, sorted_twin.version)) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (DatabaseLocale("c", "xx_XX.UTF-8", "xx_XX.UTF-8"), "xx_XX.UTF-8"),
        (DatabaseLocale("i", "C", "C", "de-DE"), "without ICU"),
        (DatabaseLocale("c", "C", "C"), ""),
        (DatabaseLocale("b", "C", "C", "C.UTF-8"), ""),
    ],
)
def test_what_the_twin_cannot_have_is_said(given: DatabaseLocale, words: str) -> None:
    catalog = replace(Catalog("shop", 180000, "", "UTF8", ()), locale=given)
    notes = list(collation_notes(catalog, 18))
    assert [words in note for note in notes] == [True] * bool(words)
    assert bool(create_options(given, 18)) is not bool(words)
    assert sorted_as_twin(catalog, None).locale.is_twins is not bool(words)


def test_a_database_that_the_twins_server_has_from_the_start_sorts_by_code_point() -> None:
    builtin, of_system = DatabaseLocale("b", "C", "C", "C.UTF-8"), DatabaseLocale("c", "C.UTF-8", "C.UTF-8")
    for given in (builtin, of_system, DatabaseLocale()):
        catalog = replace(Catalog("postgres", 180000, "", "UTF8", ()), locale=given)
        assert sorted_as_twin(catalog, None).locale.is_twins is (given == DatabaseLocale())


def test_the_twins_server_makes_what_it_is_told_to() -> None:
    cluster = Cluster.start(version=18)
    try:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            options = create_options(DatabaseLocale("b", "C", "C", "C.UTF-8"), 18)
            connection.execute(f"CREATE DATABASE folded TEMPLATE template0{options}")
        with psycopg.connect(cluster.dsn("folded")) as connection:
            assert connection.execute("SELECT lower('ÀÉ')").fetchone() == ("àé",)
    finally:
        cluster.stop()
