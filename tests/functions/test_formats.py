"""What is read by a format is what PostgreSQL reads, or it is refused."""

from datetime import datetime

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.functions.datetime.to_char import moment_by_format, to_date
from rules.functions.function import EvalContext
from rules.refusal import NotSupported
from rules.values.expression import Constant, Literal
from tests.conftest import RealDatabase

FORMATS = {
    "YYYY-MM-DD HH24:MI:SS.US": "%Y-%m-%d %H:%M:%S.%f",
    "yyyy-MM-dd HH24:mi:ss": "%Y-%m-%d %H:%M:%S",
    'YYYY-MM-DD"T"HH24:MI:SS': "%Y-%m-%dT%H:%M:%S",
    "YYYYMMDD": "%Y%m%d",
    "DD.MM.YYYY": "%d.%m.%Y",
    "YYYY": "%Y",
}
ZONE = "Europe/Berlin"


@pytest.fixture(scope="module")
def connection(shop: RealDatabase) -> psycopg.Connection:
    connected = shop.connect()
    connected.execute(f"SET TimeZone TO '{ZONE}'")
    return connected


@given(moment=st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), form=st.sampled_from(sorted(FORMATS)))
def test_a_text_that_its_format_describes_is_read_as_postgresql_reads_it(
    connection: psycopg.Connection, moment: datetime, form: str
) -> None:
    text = moment.strftime(FORMATS[form])
    operands = Literal(text), Literal(form)

    found = moment_by_format(operands, EvalContext(ZONE)), to_date(operands, EvalContext(ZONE))

    assert isinstance(found[0], Constant) and isinstance(found[1], Constant)
    sql = "SELECT to_timestamp(%s, %s) = %s::timestamptz, to_date(%s, %s) = %s::date"
    assert connection.execute(sql, [text, form, found[0].text, text, form, found[1].text]).fetchone() == (True, True)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2025-1-31", "YYYY-MM-DD"),
        ("2025-01-31 and more", "YYYY-MM-DD"),
        ("2025-13-01", "YYYY-MM-DD"),
        ("31 Jan 2025", "DD Mon YYYY"),
        ("2025-01-31 11 PM", "YYYY-MM-DD HH AM"),
        ("2025 2024", "YYYY YYYY"),
        ("01-31", "MM-DD"),
        ("5", "YYYY"),
    ],
)
def test_what_postgresql_would_have_to_guess_is_refused(text: str, form: str) -> None:
    with pytest.raises(NotSupported):
        moment_by_format((Literal(text), Literal(form)), EvalContext())
