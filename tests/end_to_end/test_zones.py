"""A proxy with another table of a time zone than the real database has."""

from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support.running import command, noisegate

DAYS = "SELECT date_trunc('day', ordered_at) AS day, count(*) FROM orders WHERE ordered_at >= '2024-03-01' AND "
DAYS += "ordered_at < '2024-03-05' GROUP BY 1"


@pytest.fixture
def other_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What we start has the clocks of Tokyo in Berlin."""
    place = tmp_path / "zones" / "Europe"
    place.mkdir(parents=True)
    (place / "Berlin").write_bytes((files("tzdata.zoneinfo.Asia") / "Tokyo").read_bytes())
    monkeypatch.setenv("PYTHONTZPATH", str(tmp_path / "zones"))


def test_days_by_a_clock_that_differs_are_refused_and_cost_nothing(
    shop: RealDatabase, other_tables: None, tmp_path: Path
) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running, psycopg.connect(running.dsn(), autocommit=True) as session:
        session.execute("SET TimeZone = 'Europe/Berlin'")
        before = running.ledger_length()
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="different rules for the time zone") as refused:
            session.execute(DAYS)
        assert "SET TimeZone" in str(refused.value.diag.message_hint)
        assert running.ledger_length() == before
        assert session.execute("SELECT count(*) FROM orders").fetchone() is not None
        session.execute("SET TimeZone = 'America/New_York'; SET noisegate.empty_groups = show")
        days = {day.day for day, _ in session.execute(DAYS) if day is not None}
        assert days == {1, 2, 3, 4}
        checked = command("check", str(running.rules), database=shop.reader_dsn)

    assert checked.returncode == 0
    for said in (checked.stdout, "\n".join(running.lines)):
        assert "different rules for time zones" in said
        assert "Europe/Berlin" in said
