"""A connection string finds its engine by its scheme; one without is libpq's. Failures of any have the same words."""

import pytest

from proxy.causes import Cause
from proxy.engines.engine import EngineError, refusal_before_charge
from proxy.engines.engines import real_database
from rules.refusal import Interrupted


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://noisegate@db:5433/shop",
        "postgres://noisegate@db/shop?sslmode=require",
        "host=db dbname=shop user=noisegate",
        "host=db dbname=shop user=noisegate password=a://b",
    ],
)
def test_every_spelling_of_libpq_names_database_and_role(dsn: str) -> None:
    database = real_database(dsn)

    assert (database.name, database.user) == ("shop", "noisegate")


def test_without_a_name_the_database_is_that_of_the_environment_then_of_the_role(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PGDATABASE", raising=False)
    assert real_database("").name == "postgres"
    assert real_database("user=ada").name == "ada"
    monkeypatch.setenv("PGDATABASE", "shop")
    assert real_database("user=ada").name == "shop"


@pytest.mark.parametrize("text", ["mysql://db/shop", "shop", "host=db port"])
def test_what_no_engine_reads_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="this is not a connection string, as "):
        real_database(text)


@pytest.mark.parametrize(
    "text",
    [
        "postgres//ada:s3cret@db/shop",
        "postgresql://ada:s3cret%zz@db/shop",
        "postgresql://ada:s3cret%00@db/shop",
        "postgresql://ada:s3cret@[db/shop",
        "postgresql://ada:s3@cret@db/shop",
        "host=db password=very s3cret",
    ],
)
def test_a_password_in_what_no_engine_reads_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"connection string|write %40") as refusal:
        real_database(text)
    assert "cret" not in str(refusal.value)


def test_another_role_keeps_the_rest_of_the_connection_string() -> None:
    reader = real_database(real_database("host=db dbname=shop user=owner").as_role("noisegate_reader", "s p'ace"))

    assert (reader.name, reader.user) == ("shop", "noisegate_reader")


@pytest.mark.parametrize(
    "error", [TimeoutError(), EngineError(cause=Cause("time_out_or_cancelled", "57014"))], ids=repr
)
def test_a_statement_that_waits_too_long_is_told_so_by_either_clock(error: EngineError | TimeoutError) -> None:
    """Ours and the server's end at the same moment."""
    refusal = refusal_before_charge(error)

    assert isinstance(refusal, Interrupted)
    assert "statement_timeout" in refusal.hint and "--answer-timeout" in refusal.hint
