"""Settings of ours are refused when they are SET, by whatever way: a statement never meets one that cannot be."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.running import Noisegate

Session = psycopg.Connection

VALUES = ["0", "-1", "'NaN'", "'Infinity'", "1e-320", "1e308", "abc", "'1,5'", "10.5", "'0x1'"]
WAYS = [
    "SET noisegate.epsilon = {}",
    "SET SESSION noisegate.epsilon TO {}",
    "BEGIN; SET LOCAL noisegate.epsilon = {}",
    'SET "NoiseGate.Epsilon" = {}',
]


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


def epsilon(session: Session) -> object:
    (row,) = session.execute("SHOW noisegate.epsilon").fetchall()
    return row[0]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_cannot_be_is_refused_when_it_is_set(session: Session, way: str, value: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"noisegate\.epsilon must be a number"):
        session.execute(way.format(value))

    session.execute("ROLLBACK")
    assert epsilon(session) == "10"


def test_the_types_of_parameters_are_found_under_every_search_path(session: Session) -> None:
    session.execute("PREPARE by_status (status) AS SELECT count(*) FROM public.orders WHERE status = $1")
    (first,) = session.execute("EXECUTE by_status('open')").fetchall()
    session.execute("SET search_path = ''")

    assert session.execute("EXECUTE by_status('open')").fetchall() == [first]


@pytest.mark.parametrize("value", ["0", "0.0099", "nan", "11"])
def test_set_config_refuses_it_too(session: Session, value: str) -> None:
    for extended in (None, True):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            session.execute(f"SELECT set_config('noisegate.epsilon', '{value}', false)", prepare=extended)

    assert epsilon(session) == "10"


@pytest.mark.parametrize(
    "sql",
    ["SET noisegate.epsilno = 1", "SELECT set_config('noisegate.epsilno', '1', false)", "RESET noisegate.epsilno"],
)
def test_a_setting_that_there_is_not_is_refused(session: Session, sql: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject) as refusal:
        session.execute(sql)

    assert refusal.value.diag.message_hint == 'Did you mean "noisegate.epsilon"?'


@pytest.mark.parametrize("options", ["-c noisegate.epsilon=0", "-cnoisegate.epsilon=nan", "--noisegate.reuse=maybe"])
def test_no_session_begins_with_a_value_that_cannot_be(proxy: Noisegate, options: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=r"FATAL:  noisegate\.(epsilon|reuse) must be"):
        psycopg.connect(proxy.dsn(), options=options)


def test_a_session_begins_with_what_its_options_ask_for(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn(), options="-c noisegate.epsilon=0.5", autocommit=True) as session:
        told: list[str] = []
        session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        session.execute("SELECT count(*) FROM customers WHERE city = 'Lyon' AND NOT is_vip")

        assert epsilon(session) == "0.5"
        assert told[0].startswith("ε 0.5 spent")


@pytest.mark.parametrize(
    "back", ["RESET noisegate.epsilon", "RESET ALL", "DISCARD ALL", "SET noisegate.epsilon TO DEFAULT"]
)
def test_what_was_set_goes_back_to_the_rules(session: Session, back: str) -> None:
    session.execute("SET noisegate.epsilon = 0.5")
    assert epsilon(session) == "0.5"

    session.execute(back)

    assert epsilon(session) == "10"


def test_set_local_and_savepoints_end_with_their_transaction(session: Session) -> None:
    session.execute("BEGIN; SET LOCAL noisegate.epsilon = 0.5; SAVEPOINT s; SET noisegate.epsilon = 2")
    assert epsilon(session) == "2"

    session.execute("ROLLBACK TO s")
    assert epsilon(session) == "0.5"

    session.execute("COMMIT")
    assert epsilon(session) == "10"


@pytest.mark.parametrize(
    "name", ["epsilon", "within", "mark", "cut", "other", "confidence", "reuse", "notices", "progress"]
)
def test_show_says_the_default_of_a_setting_that_was_never_set(session: Session, name: str) -> None:
    shown = session.execute(f"SHOW noisegate.{name}").fetchone()
    listed = session.execute("SELECT default_value FROM noisegate.settings WHERE name = %s", [f"noisegate.{name}"])

    assert shown == listed.fetchone()
