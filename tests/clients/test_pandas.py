"""pandas: frames with the right types, chunks, parameters, and the refusals that a notebook shows."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy

from tests.clients.installed import module
from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.support import shop
from tests.support.running import Noisegate

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def pandas() -> Any:
    return module("pandas")


@pytest.fixture(scope="module", params=["psycopg", "psycopg2"])
def engine(request: pytest.FixtureRequest, proxy: Noisegate) -> Iterator[sqlalchemy.Engine]:
    encrypted = {"sslmode": "require"}
    url = sqlalchemy.URL.create(
        f"postgresql+{request.param}", "ada", shop.PASSWORDS["ada"], "127.0.0.1", proxy.port, proxy.database, encrypted
    )
    made = sqlalchemy.create_engine(url)
    yield made
    made.dispose()


def test_an_answer_is_a_frame(pandas: Any, engine: sqlalchemy.Engine, cities: dict[str | None, int]) -> None:
    frame = pandas.read_sql(CITIES, engine)
    assert list(frame.columns) == ["city", "count"]
    assert str(frame.dtypes["count"]) == "int64"
    rows = [(city if isinstance(city, str) else None, int(count)) for city, count in frame.itertuples(index=False)]
    check_cities(rows, cities)


def test_parameters_and_chunks(pandas: Any, engine: sqlalchemy.Engine) -> None:
    question = sqlalchemy.text(AMOUNTS.format(":least"))
    chunks = list(pandas.read_sql(question, engine, params={"least": 50}, chunksize=3))
    assert [len(chunk) for chunk in chunks] == [3, 1]
    check_amounts(pandas.concat(chunks).itertuples(index=False, name=None))


def test_rows_are_refused_and_the_connection_lives(pandas: Any, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(Exception, match="protected table"):
            pandas.read_sql(ROWS, connection)
        connection.rollback()
        with pytest.raises(Exception, match="protected table"):
            pandas.read_sql_table("customers", connection)
        connection.rollback()
        assert len(pandas.read_sql("SELECT * FROM products", connection)) == 30


def test_frames_cannot_be_written(pandas: Any, engine: sqlalchemy.Engine) -> None:
    with pytest.raises(Exception, match="read-only"):
        pandas.DataFrame({"one": [1]}).to_sql("new", engine)
