"""The web console in a real browser: by the keyboard, on a phone, in dark and light, and as screen readers have it."""

import json

import pytest

from tests.browser.accessible import faults_of, walk_by_tab
from tests.browser.conftest import Reader
from tests.support.running import Noisegate

OPERATORS_PAGES = (
    "/health",
    "/budgets",
    "/statements",
    "/tables",
    "/tables/edit?table=orders",
    "/tables/history",
    "/try",
)
ANALYSTS_PAGES = ("/me", "/cookbook?table=orders")
PAGES = [*(("root", path) for path in OPERATORS_PAGES), *(("ada", path) for path in ANALYSTS_PAGES)]


def test_an_operator_logs_in_by_the_keyboard_and_sees_how_things_are(reader: Reader) -> None:
    reader.log_in("root")
    assert reader.path == "/health"
    assert "Clients are answered." in reader.words
    reader.open("/budgets")
    assert "of ε 1000 left" in reader.words
    assert reader.window.run("return document.querySelectorAll('svg polyline.line').length") == 4
    assert reader.window.complaints() == []


def test_a_wrong_password_is_told(reader: Reader) -> None:
    reader.open("/login")
    reader.window.wait_until("document.activeElement.id == 'user'", 20)
    reader.window.press(*"root", "\ue004", *"guess", "\ue007")
    reader.window.wait_until("document.querySelector('.error')", 20)
    assert 'Password authentication failed for user "root"' in reader.words


@pytest.mark.parametrize(("user", "path"), PAGES)
def test_a_page_can_be_read_by_everybody(reader: Reader, user: str, path: str) -> None:
    reader.log_in(user)
    for width in (1100, 360):
        for scheme in ("light", "dark"):
            reader.look(width, scheme)
            reader.open(path)
            assert faults_of(reader.window) == [], (width, scheme)
            assert reader.window.run("return document.documentElement.scrollWidth <= innerWidth"), (width, scheme)
    assert reader.window.complaints() == []


@pytest.mark.parametrize(("user", "path"), PAGES)
def test_tab_reaches_everything_and_shows_where_it_is(reader: Reader, user: str, path: str) -> None:
    reader.log_in(user)
    reader.open(path)
    places = walk_by_tab(reader.window)
    assert "Skip to the content" in places[0][0]
    assert all(name for name, _, _ in places), places
    assert [place for place in places if place[1] == "none" or place[2] < 1] == []


def test_a_statement_is_tried_and_nothing_is_spent(reader: Reader, running: Noisegate) -> None:
    length = running.ledger_length()
    reader.log_in("root")
    reader.look(360, "dark")
    for sql, words in (
        ("SELECT status, count(*), avg(amount) FROM orders GROUP BY status", "It would be answered"),
        ("SELECT email FROM customers", "Refused"),
    ):
        reader.open("/try")
        reader.window.run("document.querySelector('#sql').focus()")
        reader.window.press(*sql)
        reader.window.run("document.querySelector('form.stack').requestSubmit()")
        reader.window.wait_until("document.querySelector('#result')", 30)
        assert words in reader.words
        assert faults_of(reader.window) == []
    assert running.ledger_length() == length
    assert reader.window.complaints() == []


def test_a_page_of_another_site_can_do_nothing(reader: Reader, running: Noisegate) -> None:
    """A form that is posted from elsewhere comes without the cookie, and so without a session."""
    reader.log_in("root")
    port = reader.base.rpartition(":")[2]
    page = f"<form method=post action='https://localhost:{port}/budgets/grant'><input name=analyst value=bob></form>"
    reader.window.open(f"data:text/html,{page}")
    reader.window.run("document.forms[0].submit()")
    reader.window.wait_until("location.protocol == 'https:'", 20)
    assert not [event for event in running.events("console") if "GRANT" in str(event["command"])]


def test_a_bound_is_checked_and_its_noise_drawn_while_it_is_typed(reader: Reader, running: Noisegate) -> None:
    before = running.rules.read_text()
    reader.log_in("root")
    reader.open("/tables/edit?table=orders")
    drawn = reader.window.run("return document.getElementById('noise:amount').innerText")
    reader.window.run("const field = document.getElementsByName('upper:amount')[0]; field.focus(); field.select()")
    reader.window.press(*"2000")
    reader.window.wait_until(f"document.getElementById('noise:amount').innerText != {json.dumps(drawn)}", 30)
    assert "±" in str(reader.window.run("return document.getElementById('noise:amount').innerText"))
    reader.window.run("const field = document.getElementsByName('lower:amount')[0]; field.focus(); field.select()")
    reader.window.press(*"3000")
    reader.window.wait_until("document.querySelector('.error-line')", 30)
    assert "is above upper" in reader.words
    assert reader.window.run("return document.getElementsByName('lower:amount')[0].ariaInvalid") == "true"
    assert faults_of(reader.window) == []
    reader.window.press("\ue003")  # the last digit goes: 300
    reader.window.wait_until("!document.querySelector('.error-line')", 30)
    reader.window.press("\ue007")
    reader.window.wait_until("document.querySelector('pre.diff')", 30)
    assert "amount: {lower: 300, upper: 2000}" in reader.words
    for width, scheme in ((1100, "light"), (360, "dark")):
        reader.look(width, scheme)
        assert faults_of(reader.window) == []
    assert running.rules.read_text() == before
    reader.window.run("document.querySelector('main button.main').click()")
    reader.window.wait_until("document.querySelector('.note')", 30)
    reader.open("/tables/history")
    assert faults_of(reader.window) == []
    reader.window.run("document.querySelector('main form button').click()")
    reader.window.wait_until("document.querySelector('.note')", 30)
    assert running.rules.read_text() == before
    assert reader.window.complaints() == []
