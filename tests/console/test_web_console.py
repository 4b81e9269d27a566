"""The web console as a browser meets it: who gets in, what each may see, what every answer carries, what is read."""

import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPSConnection
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase, make_shop
from tests.console.web import PORT, RULES, Reply, Visitor, port_of
from tests.support.running import Noisegate, command, noisegate, start
from tests.support.shop import READER

TABLES_PAGES = ("/tables", "/tables/edit?table=orders", "/tables/history")
OPERATORS_PAGES = ("/health", "/budgets", "/statements", *TABLES_PAGES, "/try")
ANALYSTS_PAGES = ("/me", "/cookbook")
SECRET = "Kassandra Kowalski"
HIDDEN = f"SELECT count(*) FROM customers WHERE name = '{SECRET}'"


@pytest.fixture(scope="module")
def database(shop: RealDatabase) -> RealDatabase:
    return make_shop(shop.cluster, "console_shop")


@pytest.fixture(scope="module")
def running(database: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    place = tmp_path_factory.mktemp("console")
    with noisegate(place, database.reader_dsn, rules=RULES, name=database.name, arguments=PORT) as served:
        yield served


@pytest.fixture
def visitor(running: Noisegate) -> Visitor:
    return Visitor(port_of(running))


def ask(running: Noisegate, *statements: str, analyst: str = "ada") -> None:
    with psycopg.connect(running.dsn(analyst), autocommit=True) as session:
        for sql in statements:
            session.execute(sql.encode())


def refused(running: Noisegate, sql: str) -> None:
    with psycopg.connect(running.dsn(), autocommit=True) as session, pytest.raises(psycopg.Error):
        session.execute(sql.encode())


def test_without_a_login_there_is_the_login_page_alone(visitor: Visitor) -> None:
    for path in (*OPERATORS_PAGES, *ANALYSTS_PAGES, "/"):
        reply = visitor.get(path)
        assert (reply.status, reply.headers["location"]) == (303, "/login")
    assert visitor.get("/nothing").status == 404
    for path in ("/health/reload", "/budgets/grant", "/try"):
        assert visitor._ask("POST", path, "amount=5&analyst=ada").headers["location"] == "/login"


def test_without_a_lock_health_does_not_say_that_the_schema_was_locked(visitor: Visitor) -> None:
    visitor.log_in("root")

    page = visitor.get("/health").text

    assert "The schema is not locked" in page
    assert "since it was locked" not in page


def test_wrong_passwords_and_strangers_are_told_the_same(running: Noisegate) -> None:
    told = {}
    for user in ("root", "ada", "nobody"):
        reply = Visitor(port_of(running)).log_in(user, "wrong")
        assert reply.status == 403
        told[user] = reply.words.replace(user, "NAME")
    assert len({re.sub("[0-9a-f]{64}", "", text) for text in told.values()}) == 1
    assert 'Password authentication failed for user "NAME"' in told["nobody"]
    assert running.wait_for("login_refused", count=3)["user"] == "nobody"


@pytest.mark.parametrize(
    ("user", "own", "others"), [("root", OPERATORS_PAGES, ANALYSTS_PAGES), ("ada", ANALYSTS_PAGES, OPERATORS_PAGES)]
)
def test_each_role_has_its_own_pages(
    visitor: Visitor, user: str, own: tuple[str, ...], others: tuple[str, ...]
) -> None:
    assert visitor.log_in(user).headers["location"] == own[0]
    assert [visitor.get(path).status for path in own] == [200] * len(own)
    assert [visitor.get(path).status for path in others] == [404] * len(others)


def test_every_answer_has_the_headers_and_no_script_or_style_of_its_own(visitor: Visitor) -> None:
    replies = [visitor.get("/login"), visitor.get("/nothing"), visitor.get("/static/console.css")]
    visitor.log_in("root")
    replies += [visitor.get(path) for path in OPERATORS_PAGES]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"<script(?! src=\"/static/console.js\" defer>)|<style|\sstyle=|\son\w+=", reply.text)
        assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", reply.text)


def test_a_cookie_is_closed_to_scripts_and_other_sites_and_new_at_the_login(visitor: Visitor) -> None:
    first = visitor.get("/login").headers["set-cookie"]
    before = visitor.cookie
    second = visitor.log_in("root").headers["set-cookie"]
    for given, name in ((first, "__Host-noisegate-login"), (second, "__Host-noisegate")):
        assert given.startswith(f"{name}=")
        assert {"HttpOnly", "Path=/", "SameSite=strict", "Secure"} == set(given.split("; ")[1:])
    assert visitor.cookie != before
    assert Visitor(visitor.port, before).get("/health").status == 303
    number, _, signature = visitor.cookie.partition(".")
    forged = f"{number}.{signature[:-1]}{'0' if signature[-1] != '0' else '1'}"
    assert Visitor(visitor.port, forged).get("/health").status == 303


def test_a_form_without_the_token_of_its_session_does_nothing(running: Noisegate, visitor: Visitor) -> None:
    visitor.log_in("root")
    other = Visitor(visitor.port)
    other.log_in("root")
    for token in ("", "0" * 64, other.token("/health")):
        assert visitor.post("/budgets/grant", token=token, analyst="bob", amount="1").status == 403
    mine = visitor.token("/health")
    origins = [{"Origin": origin} for origin in ("https://elsewhere.example", "null", "https://[")]
    for headers in (*origins, {"Sec-Fetch-Site": "cross-site"}):
        visitor.headers = headers
        assert visitor.post("/budgets/grant", token=mine, analyst="bob", amount="1").status == 403
    visitor.headers = {}
    assert not [event for event in running.events("console") if "GRANT" in str(event["command"])]


def test_after_the_logout_the_cookie_is_worth_nothing(visitor: Visitor) -> None:
    visitor.log_in("root")
    cookie = visitor.cookie
    assert visitor.post("/logout", at="/health").headers["location"] == "/login"
    assert Visitor(visitor.port, cookie).get("/health").status == 303


def test_health_and_budgets_tell_what_is(running: Noisegate, visitor: Visitor) -> None:
    ask(running, "SELECT count(*) FROM customers")
    visitor.log_in("root")
    health = visitor.get("/health")
    assert "Clients are answered." in health.words
    assert re.search(r"connections in use 0 of 8", health.words)
    assert 'aria-current="page">Health' in health.text
    budgets = visitor.get("/budgets")
    assert re.search(r"ada 999 of ε 1000 left", budgets.words) or "of ε 1000 left" in budgets.words
    assert budgets.text.count("<svg") == 3

    granted = visitor.post("/budgets/grant", at="/budgets", analyst="bob", amount="1.5")
    assert granted.headers["location"] == "/budgets"
    after = visitor.get("/budgets").words
    assert "bob may spend ε 1.5 more in this period." in after
    assert "of ε 501.5 left" in after
    assert "GRANT EPSILON takes" in visitor.post("/budgets/grant", at="/budgets", analyst="bob", amount="-1").words
    assert (
        "all analysts together have"
        in visitor.post("/budgets/grant", at="/budgets", analyst="bob", amount="2000").words
    )


def test_requests_for_more_are_answered_on_the_page_of_budgets(running: Noisegate, visitor: Visitor) -> None:
    wanted = "SELECT noisegate.request(2.5, 'the <b>board</b>')", "SELECT noisegate.request(3, 'again')"
    ask(running, *wanted, analyst="bob")
    with psycopg.connect(running.dsn("bob"), autocommit=True) as bob:
        mine = "SELECT request, state, granted, answer FROM noisegate.requests ORDER BY request"
        ((one, *_), (other, *_)) = bob.execute(mine).fetchall()
        visitor.log_in("root")
        page = visitor.get("/budgets")
        assert "Requests for more" in page.words
        assert "bob asks for ε 2.5: the <b>board</b>" in page.words
        assert "<b>board" not in page.text

        def answer(**fields: str) -> Reply:
            return visitor.post("/budgets/answer", at="/budgets", **fields)

        assert "GRANT EPSILON takes" in answer(request=str(one), answer="grant", amount="-1").words
        assert "all analysts together have" in answer(request=str(one), answer="grant", amount="2000").words
        assert answer(request=str(one), answer="grant", amount="2", words="of course").status == 303
        assert "bob may spend ε 2 more in this period." in visitor.get("/budgets").words
        assert answer(request=str(other), answer="refuse", amount="3").status == 303
        assert "is not open: it was refused by root" in answer(request=str(other), answer="grant", amount="3").words
        for number in ("0", "x", "9" * 30):
            assert "there is no" in answer(request=number, answer="refuse").words
        assert bob.execute(mine).fetchall() == [(one, "granted", 2, "of course"), (other, "refused", None, None)]
    assert "Requests for more" not in visitor.get("/budgets").words


def test_roles_have_accounts_on_the_page_of_budgets(database: RealDatabase, tmp_path: Path) -> None:
    rules = RULES.replace("  ada:\n", "  ada:\n    role: team\n") + "roles:\n  team: {epsilon: 6, per_analyst: 2}\n"
    with noisegate(tmp_path, database.reader_dsn, rules=rules, name=database.name, arguments=PORT) as served:
        ask(served, "SELECT count(*) FROM customers")
        visitor = Visitor(port_of(served))
        visitor.log_in("root")
        words = visitor.get("/budgets").words

    assert re.search(r"role team 5 of ε 6 left", words)
    assert re.search(r"ada 1 of ε 2 left", words)
    assert re.search(r"a bet on one person's presence wins at most 88 of 100 times; a coin wins 50\.", words)


def test_statements_are_found_by_words_and_no_constant_is_shown(running: Noisegate, visitor: Visitor) -> None:
    ask(running, HIDDEN, "SELECT status, count(*) FROM orders GROUP BY status")
    refused(running, f"SELECT * FROM customers WHERE name = '{SECRET}' AND birth_date > '1977-07-07'")
    refused(running, f"SELECT email FROM customers WHERE city = '{SECRET}'")
    visitor.log_in("root")
    everything = visitor.get("/statements")
    assert "SELECT count(*) FROM customers WHERE name = ?" in everything.words
    assert "NotAllowed" in everything.words
    assert "Hint: Select an aggregate such as count(*)" in everything.words
    for path in ("/statements", "/health", "/budgets"):
        text = visitor.get(path).text
        assert not re.search(r"Kassandra|Kowalski|\b1977\b", text)  # as a word: a token may have any digits
    by_words = visitor.get("/statements?words=orders+status").words
    assert "SELECT status" in by_words
    assert "WHERE name" not in by_words.partition("Refused since")[0]
    assert "No charge is as you search it" in visitor.get("/statements?words=nonsense").words
    assert "is no date" in visitor.get("/statements?since=soon").words
    assert "No charge" in visitor.get("/statements?until=2001-01-01").words


def test_what_is_tried_is_explained_and_costs_nothing(running: Noisegate, visitor: Visitor) -> None:
    visitor.log_in("root")
    length = running.ledger_length()

    def tried(sql: str, epsilon: str = "") -> Reply:
        return visitor.post("/try", at="/try", sql=sql, analyst="bob", epsilon=epsilon)

    counted = tried("SELECT status, count(*) AS n FROM orders GROUP BY status;", "0.5")
    assert "It would be answered" in counted.words
    assert "epsilon 0.5" in counted.words
    assert "+/-" in counted.words
    assert counted.text.count("<svg") == 1
    assert "Free and exact" in tried("SELECT name FROM products").words
    rows = tried("SELECT * FROM customers")
    assert "(42501)" in rows.words
    assert "Hint: Select an aggregate" in rows.words
    assert "<mark>nowhere</mark>" in tried("SELECT nowhere FROM customers").text
    for sql in ("SELECT 1; SELECT count(*) FROM orders", "ANALYZE SELECT count(*) FROM orders", "DELETE FROM orders"):
        assert "Refused" in tried(sql).words
    assert "(22023)" in tried("SELECT 1", "much").words
    assert "above" in tried("SELECT count(*) FROM orders", "99").words or "most" in tried("SELECT 1", "99").words
    assert running.ledger_length() == length
    assert {"root"} == {str(event["operator"]) for event in running.events("console") if event["command"] == "EXPLAIN"}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DROP TABLE orders", "cannot execute DROP TABLE in a read-only session (25006)"),
        ("INSERT INTO orders VALUES (1)", "cannot execute INSERT in a read-only session (25006)"),
        ("VACUUM", "cannot execute VACUUM in a read-only session (25006)"),
        ("SET noisegate.epsilon = 0.5", "only queries can be tried here (0A000)"),
        ("EXPLAIN SELECT count(*) FROM orders", "only queries can be tried here (0A000)"),
        ("COPY (SELECT count(*) FROM orders) TO STDOUT", "only queries can be tried here (0A000)"),
        ("SELEC 1", 'syntax error at or near "SELEC" (42601)'),
    ],
)
def test_what_is_no_query_is_told_what_a_client_would_be_told(visitor: Visitor, sql: str, said: str) -> None:
    visitor.log_in("root")

    page = visitor.post("/try", at="/try", sql=sql, analyst="bob", epsilon="")

    assert said in page.words


def test_analysts_see_their_own_answers_and_nobody_elses(running: Noisegate, visitor: Visitor) -> None:
    ask(running, "SELECT country, count(*) AS people, avg(birth_date - '1900-01-01') FROM customers GROUP BY country")
    ask(running, "SELECT segment, count(*) FROM customers GROUP BY segment", analyst="bob")
    visitor.log_in("ada")
    mine = visitor.get("/me")
    assert "SELECT country, count(*) AS people" in mine.words
    assert "segment" not in mine.words
    assert re.search(r"people: within ±\S+ in 95% of draws", mine.words)
    assert re.search(r"DE: [\d,]+ ± \d", mine.words)
    assert "Yours" in mine.words


def test_every_recipe_of_the_cookbook_is_answered(running: Noisegate, visitor: Visitor) -> None:
    visitor.log_in("ada")
    for table in ("customers", "orders", "order_items", "products"):
        page = visitor.get(f"/cookbook?table={table}").text
        recipes = re.findall(r"<pre><code>(.*?);</code></pre>", page, re.DOTALL)
        assert recipes, page
        with psycopg.connect(running.dsn("bob"), autocommit=True) as session:
            session.execute("SET noisegate.epsilon = 0.1")
            for sql in recipes:
                session.execute(sql.replace("&#39;", "'").replace("&#34;", '"').replace("&gt;", ">").encode())
    assert "email" not in visitor.get("/cookbook?table=customers").words
    assert visitor.get("/cookbook?table=staff").status == 409


def test_no_page_reads_a_table_of_the_real_database(
    database: RealDatabase, running: Noisegate, visitor: Visitor
) -> None:  # fmt: skip
    """By PostgreSQL's own count of scans."""

    def scans() -> list[tuple[object, ...]]:
        """A backend tells what it has scanned when it ends, at the latest."""
        with database.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s", (READER,)
            )
            return connection.execute(
                "SELECT relname, seq_scan, idx_scan FROM pg_stat_user_tables ORDER BY relname"
            ).fetchall()

    before = scans()
    visitor.log_in("root")
    for path in OPERATORS_PAGES:
        assert visitor.get(path).status == 200
    visitor.post("/try", at="/try", sql="SELECT city, count(*) FROM customers GROUP BY city", analyst="ada", epsilon="")
    analyst = Visitor(visitor.port)
    analyst.log_in("ada")
    for path in (*ANALYSTS_PAGES, "/cookbook?table=orders", "/cookbook?table=products"):
        assert analyst.get(path).status == 200
    assert scans() == before
    ask(running, "SELECT count(*) FROM orders WHERE amount > 123")
    assert scans() != before


def test_large_and_odd_requests_are_refused(visitor: Visitor) -> None:
    visitor.log_in("root")
    token = visitor.token("/try")
    assert visitor.post("/try", token=token, sql="x" * 600_000, analyst="ada", epsilon="").status == 413
    assert visitor._ask("POST", "/try", "%ff%fe").status in (403, 413)
    assert visitor.post("/budgets/forgive", token=token, analyst="ada\0").status == 413
    assert visitor.get("/static/..%2f..%2fport.py").status == 404
    assert visitor._ask("DELETE", "/health", None).status in (404, 405)


def test_connections_that_ask_for_nothing_keep_nobody_out(visitor: Visitor) -> None:
    context = ssl._create_unverified_context()
    with ExitStack() as stack:
        for _ in range(80):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", visitor.port)))
            with suppress(OSError):
                stack.enter_context(context.wrap_socket(plain))
        assert visitor.get("/login").status == 200


def test_a_gateway_names_its_user_and_nobody_else_can(database: RealDatabase, tmp_path: Path) -> None:
    gateway = (*PORT, "--console-trusted-header", "X-User", "--console-trusted-from", "127.0.0.1")
    with noisegate(tmp_path, database.reader_dsn, rules=RULES, name=database.name, arguments=gateway) as served:
        root = Visitor(port_of(served), headers={"X-User": "root"})  # without a cookie, as after another site's link
        assert "Clients are answered." in root.get("/health").words
        assert "Log out" not in root.get("/health").words
        assert root.post("/health/refresh", at="/health").headers["location"] == "/health"
        assert "The schema and the public tables were read again." in root.get("/health").words
        assert not root.cookie
        ada = Visitor(port_of(served), headers={"X-User": "ada"})
        assert ada.get("/me").status == 200
        assert root.post("/health/refresh", token="0" * 64).status == 403
        assert _status_of_two_names(port_of(served), "root", "ada") == 303
        assert Visitor(port_of(served), headers={"X-User": "nobody"}).get("/health").headers["location"] == "/login"
        assert Visitor(port_of(served)).get("/health").headers["location"] == "/login"
    away = (*PORT, "--console-trusted-header", "X-User", "--console-trusted-from", "10.0.0.0/8")
    other = tmp_path / "other"
    other.mkdir()
    with noisegate(other, database.reader_dsn, rules=RULES, name=database.name, arguments=away) as served:
        assert Visitor(port_of(served), headers={"X-User": "root"}).get("/health").headers["location"] == "/login"


def _status_of_two_names(port: int, first: str, second: str) -> int:
    """As where a gateway adds its header to what the browser sent."""
    connection = HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())
    connection.putrequest("GET", "/health")
    for name in (first, second):
        connection.putheader("X-User", name)
    connection.endheaders()
    return connection.getresponse().status


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--console-trusted-header", "X-User"), "--console-trusted-from"),
        (("--console-trusted-from", "::1"), "needs --console-trusted-header"),
        (("--console-host", "0.0.0.0"), "browsers of other machines need TLS"),
    ],
)
def test_a_console_that_anybody_could_enter_is_not_opened(
    database: RealDatabase, rules_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    served = start(rules_path, database.reader_dsn, arguments=(*PORT, *arguments))
    assert served.process.wait(60) == 1
    served.process.wait()
    deadline = time.monotonic() + 10
    while not any(words in line for line in served.lines):
        assert time.monotonic() < deadline, served.lines
        time.sleep(0.05)


def test_it_is_off_unless_it_is_asked_for() -> None:
    shown: subprocess.CompletedProcess[str] = command("serve", "--help")
    (port,) = (line for line in shown.stdout.split("  --") if line.startswith("console-port PORT"))
    assert "(default: off)" in port
