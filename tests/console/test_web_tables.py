"""Tables in the web console: a change is checked, shown, saved, in force, and taken back."""

import re
from collections.abc import Iterator
from html import unescape

import psycopg
import pytest

from tests.conftest import RealDatabase, make_shop
from tests.console.web import PORT, RULES, Visitor, port_of
from tests.support.running import Noisegate, noisegate

COMMENTED = RULES.replace("amount: {lower: 0, upper: 500}", "amount: {lower: 0, upper: 500}   # in euros")


@pytest.fixture(scope="module")
def database(shop: RealDatabase) -> RealDatabase:
    return make_shop(shop.cluster, "tables_shop")


@pytest.fixture(scope="module")
def served(database: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    arguments = (*PORT, "--console-edit-rules")
    place = tmp_path_factory.mktemp("tables")
    with noisegate(place, database.reader_dsn, rules=COMMENTED, name=database.name, arguments=arguments) as served:
        yield served


@pytest.fixture
def running(served: Noisegate) -> Iterator[Noisegate]:
    """With the rules that it began with."""
    yield served
    if served.rules.read_text() != COMMENTED:
        served.rules.write_text(COMMENTED)
        operator = Visitor(port_of(served))
        operator.log_in("root")
        assert operator.post("/health/reload", at="/health").status == 303


@pytest.fixture
def visitor(running: Noisegate) -> Visitor:
    found = Visitor(port_of(running))
    found.log_in("root")
    return found


def fields_of(text: str) -> dict[str, str]:
    """The form of a table as a browser would send it."""
    form = text[text.index('action="/tables/') :]
    found = {}
    for name, rest in re.findall(r'<input name="([^"]+)"([^>]*)>', form):
        value = re.search(r'value="([^"]*)"', rest)
        found[name] = unescape(value[1]) if value else ""
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form):
        found[name] = unescape(value)
    for name in re.findall(r'<input type="checkbox" name="([^"]+)"[^>]*\schecked', form):
        found[name] = "on"
    for name, value in re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>(.*?)</textarea>', form, re.DOTALL):
        found[name] = unescape(value)
    return found


def send(visitor: Visitor, path: str, fields: dict[str, str], **changes: str) -> tuple[int, str, str]:
    given = {name: value for name, value in (fields | changes).items() if name != "token"}
    reply = visitor.post(path, token=fields["token"], **given)
    return reply.status, reply.text, reply.words


def form(visitor: Visitor, table: str) -> dict[str, str]:
    return fields_of(visitor.get(f"/tables/edit?table={table}").text)


def test_the_tables_are_listed_with_what_they_are(visitor: Visitor) -> None:
    words = visitor.get("/tables").words
    assert re.search(r"orders protected customer_id 40 6 0", words)
    assert re.search(r"products public", words)
    assert "Not in the rules" in words
    assert "staff" in words
    page = visitor.get("/tables/edit?table=orders")
    assert "A sum of amount: ±" in page.words
    assert "A count of rows: ±120 in 95% of answers at ε 1. The budget buys 1,000 such answers in all." in page.words
    assert page.text.count("<svg") == 2
    assert visitor.get("/tables/edit?table=staff").status == 409


def test_a_change_is_checked_shown_saved_in_force_and_put_back(running: Noisegate, visitor: Visitor) -> None:
    before = running.rules.read_text()
    changes = {"upper:amount": "800", "hidden:note": "on"}
    status, reviewed, words = send(visitor, "/tables/review", form(visitor, "orders"), **changes)
    assert status == 200
    assert "+ amount: {lower: 0, upper: 800} # in euros" in words
    assert "+ note: hidden" in words
    assert running.rules.read_text() == before

    assert send(visitor, "/tables/save", fields_of(reviewed))[0] == 303
    assert "Saved, and in force." in visitor.get("/tables/edit?table=orders").words
    after = running.rules.read_text()
    assert "      amount: {lower: 0, upper: 800}   # in euros\n" in after
    assert running.wait_for("rules_loaded")
    with psycopg.connect(running.dsn(), autocommit=True) as session, pytest.raises(psycopg.Error, match="note"):
        session.execute("SELECT count(note) FROM orders")

    listed = visitor.get("/tables/history")
    newest = re.search(r"(\d+) [-\d]+ [:\d]+ root table orders the file as it is", listed.words)
    assert newest
    first = str(int(newest[1]) - 1)
    assert re.search(rf"{first} [-\d]+ [:\d]+ \S", listed.words)
    assert "- amount: {lower: 0, upper: 800}" in visitor.get(f"/tables/history?version={first}").words
    base = re.search(r'name="base" value="(\w+)"', listed.text)
    assert base
    restored = visitor.post("/tables/restore", at="/tables/history", version=first, base=base[1])
    assert restored.status == 303
    assert running.rules.read_text() == before
    with psycopg.connect(running.dsn(), autocommit=True) as session:
        session.execute("SELECT count(note) FROM orders")


@pytest.mark.parametrize(
    ("changes", "words", "wrong"),
    [
        ({"lower:amount": "900"}, "is above upper", "lower:amount"),
        ({"upper:amount": ""}, "must be given together", "upper:amount"),
        ({"unit": "nobody"}, 'no column "nobody"', "unit"),
        ({"rows_per_unit": "many"}, "must be a whole number", "rows_per_unit"),
        ({"upper:amount": "${NOISEGATE_DATABASE}"}, "by hand only", ""),
        ({"public": "on", "because": ""}, "", ""),
    ],
)
def test_mistakes_are_told_while_they_are_typed_and_never_saved(
    running: Noisegate, visitor: Visitor, changes: dict[str, str], words: str, wrong: str
) -> None:
    before = running.rules.read_text()
    status, text, told = send(visitor, "/tables/check", form(visitor, "orders"), **changes)
    assert status == 200
    assert words in told
    assert "error" in told
    assert not wrong or f'data-wrong="{wrong}"' in text
    assert send(visitor, "/tables/review", form(visitor, "orders"), **changes)[0] == 422
    base = {"base": "0" * 64}
    assert send(visitor, "/tables/save", {**form(visitor, "orders"), **base}, **changes)[0] == 422
    assert running.rules.read_text() == before


def test_two_operators_do_not_undo_each_other(running: Noisegate, visitor: Visitor) -> None:
    reviewed = send(visitor, "/tables/review", form(visitor, "orders"), **{"upper:amount": "700"})[1]
    by_hand = running.rules.read_text().replace("upper: 500", "upper: 600")
    running.rules.write_text(by_hand)
    status, _, words = send(visitor, "/tables/save", fields_of(reviewed))
    assert (status, "has changed the rules file" in words) == (409, True)
    assert running.rules.read_text() == by_hand


def test_two_forms_of_one_table_do_not_undo_each_other(running: Noisegate, visitor: Visitor) -> None:
    """A form sends all rules of its table: an older one would show again what somebody has hidden meanwhile."""
    first, second, other = form(visitor, "orders"), form(visitor, "orders"), form(visitor, "order_items")
    hidden = send(visitor, "/tables/review", first, **{"hidden:note": "on"})[1]
    assert send(visitor, "/tables/save", fields_of(hidden))[0] == 303
    for path in ("/tables/check", "/tables/review", "/tables/save"):
        status, _, words = send(visitor, path, second, **{"upper:amount": "700"})
        assert (status, "has changed the rules file" in words) == (409, True)
    assert send(visitor, "/tables/review", other, **{"upper:unit_price": "70"})[0] == 200
    assert "note: hidden" in running.rules.read_text()


def test_a_column_that_the_form_did_not_show_keeps_its_rules(running: Noisegate, visitor: Visitor) -> None:
    fields = {name: text for name, text in form(visitor, "customers").items() if not name.endswith(":email")}
    status, _, words = send(visitor, "/tables/review", fields, **{"hidden:name": "on"})
    assert (status, "+ name: hidden" in words, "- email: hidden" in words) == (200, True, False)


def test_rules_that_the_proxy_does_not_take_are_taken_back(
    database: RealDatabase, running: Noisegate, visitor: Visitor
) -> None:  # fmt: skip
    """A right that is gone shows at the reload."""
    before, versions = running.rules.read_text(), visitor.get("/tables/history").words.count("table orders")
    reviewed = send(visitor, "/tables/review", form(visitor, "orders"), **{"upper:amount": "700"})[1]
    with database.connect() as connection:
        connection.execute("REVOKE SELECT ON orders FROM noisegate_reader")
        try:
            status, _, words = send(visitor, "/tables/save", fields_of(reviewed))
        finally:
            connection.execute("GRANT SELECT ON orders TO noisegate_reader")
    assert (status, "the rules were not taken" in words) == (409, True)
    assert running.rules.read_text() == before
    assert visitor.get("/tables/history").words.count("table orders") == versions


def test_without_the_option_tables_are_shown_and_nothing_is_changed(
    database: RealDatabase, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("shown")
    with noisegate(place, database.reader_dsn, rules=COMMENTED, name=database.name, arguments=PORT) as served:
        visitor = Visitor(port_of(served))
        visitor.log_in("root")
        page = visitor.get("/tables/edit?table=orders")
        assert "--console-edit-rules" in page.words
        fields = fields_of(page.text)
        for path in ("/tables/check", "/tables/review", "/tables/save"):
            status, _, words = send(visitor, path, fields, **{"upper:amount": "1"})
            assert (status, "cannot be edited here" in words) == (409, True)
        refused = visitor.post("/tables/restore", at="/tables/history", version="1", base="0")
        assert refused.status == 409
        assert served.rules.read_text() == COMMENTED
