"""Rows as Parquet: what PostgreSQL writes as CSV comes back as values of the columns' types."""

import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from proxy.commands.synopsis import check_parquet, write_parquet
from proxy.load_config import ConfigurationError
from rules.catalog import Catalog, TableName
from tests.conftest import RealDatabase
from tests.support.catalogs import catalog_of

TABLE = """
CREATE TABLE parquet_types (a smallint, b integer, c bigint, d double precision, e numeric(10,2), f numeric, g boolean,
    h date, i timestamp, j timestamptz, k text, l status, m uuid, "N,"" n" varchar(5))
"""
ROWS = """
INSERT INTO parquet_types VALUES
    (1, -2, 9007199254740993, 0.1, 12345678.90, 1e-30, true, '2024-02-29', '2024-01-01 12:00:00.000001',
     '2024-01-01 12:00:00+02', 'a "quoted", line
with another', 'open', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', ''),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (0, 0, 0, 'NaN', 0, 0, false, '0001-01-01', '1970-01-01', '1970-01-01 00:00:00+00', 'NULL', 'paid', NULL, 't')
"""


def test_values_and_nulls_come_back_as_they_were(shop: RealDatabase, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with psycopg.connect(shop.dsn) as connection:
        connection.execute(TABLE)
        connection.execute(ROWS)
        connection.execute("SET TimeZone = 'UTC'")
        with connection.cursor().copy("COPY parquet_types TO STDOUT (FORMAT csv, HEADER)") as copy:
            csv = b"".join(bytes(piece) for piece in copy)
        connection.commit()
        try:
            catalog: Catalog = catalog_of(shop.dsn)
        finally:
            connection.execute("DROP TABLE parquet_types")
    table = catalog.find_table(TableName("public", "parquet_types"))
    assert table is not None

    write_parquet(tmp_path / "t.parquet", csv, table.columns)
    first, second, third = parquet.read_table(tmp_path / "t.parquet").to_pylist()

    assert list(first.values()) == [
        1, -2, 9007199254740993, 0.1, Decimal("12345678.90"), "0.000000000000000000000000000001", True,
        date(2024, 2, 29), datetime(2024, 1, 1, 12, 0, 0, 1), datetime(2024, 1, 1, 10, tzinfo=UTC),
        'a "quoted", line\nwith another', "open", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "",
    ]  # fmt: skip
    assert set(second.values()) == {None}
    assert (third["k"], third["g"], third["h"], third['N," n']) == ("NULL", False, date(1, 1, 1), "t")


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'pyarrow>=18'"):
        check_parquet()
