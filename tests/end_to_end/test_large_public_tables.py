"""A public table with more rows than the twin may hold is told to be one, and can be opened by a setting."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.clients.questions import RULES
from tests.conftest import RealDatabase
from tests.support.running import Noisegate, noisegate


@pytest.fixture(scope="module")
def strict(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    """A proxy whose twin holds 29 rows of a table: products has 30."""
    arguments = ("--max-public-rows", "29")
    with noisegate(tmp_path_factory.mktemp("strict"), shop.reader_dsn, rules=RULES, arguments=arguments) as running:
        yield running


def test_the_start_and_the_refusal_name_the_table_and_the_setting(strict: Noisegate) -> None:
    told = 'public table "products" cannot be queried: it has more than 29 rows'
    assert any(
        "products cannot be queried: it has more than 29 rows (--max-public-rows)" in line for line in strict.lines
    )
    with psycopg.connect(strict.dsn(), autocommit=True) as session:
        for sql in ("SELECT count(*) FROM products", "TABLE products", "SELECT 1 WHERE EXISTS (SELECT FROM products)"):
            with pytest.raises(psycopg.Error, match=told) as refusal:
                session.execute(sql)
            assert refusal.value.sqlstate == "42501"
            assert "Joins of protected tables with it are answered" in str(refusal.value)


def test_joins_with_it_are_answered(strict: Noisegate) -> None:
    with psycopg.connect(strict.dsn(), autocommit=True) as session:
        sql = "SELECT count(*) FROM order_items JOIN products ON products.id = product_id WHERE category = 'book'"
        (row,) = session.execute(sql)
        assert row[0] > 0


def test_as_many_rows_as_the_setting_says_are_held(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as session:
        assert session.execute("SELECT count(*) FROM products").fetchone() == (30,)
