"""Make the pictures of docs/console.md: the demo's shop, asked by an analyst, in the console of a running proxy.

Run by `python -m tests.browser`; look at what it writes.
"""

import tempfile
from pathlib import Path

import psycopg

from proxy.demo.run import HERE, open_shop
from tests.browser.conftest import Reader
from tests.console.web import PORT, ROOT_VERIFIER, port_of
from tests.superset.browser import browser
from tests.support.markdown import ROOT
from tests.support.running import noisegate

PICTURES = ROOT / "docs" / "images"
STATEMENTS = (
    "SELECT city, count(*) FROM customers GROUP BY city",
    "SELECT channel, count(*) AS orders, avg(amount) AS euros FROM orders GROUP BY channel",
    "SELECT date_trunc('month', ordered_at), sum(amount) FROM orders WHERE ordered_at >= '2025-07-01' GROUP BY 1",
)
REFUSED = ("SELECT * FROM customers WHERE city = 'Berlin'", "SELECT status, email FROM customers, orders")
TRIED = "SELECT channel, avg(amount) FROM orders\nWHERE status = 'returned' GROUP BY channel"
DESK, PHONE = (1000, 760), (360, 740)


def main() -> None:
    """All pictures, over the old ones."""
    PICTURES.mkdir(exist_ok=True)
    shop = open_shop()
    verifiers = f'operators: {{root: {{password: "{ROOT_VERIFIER}"}}}}\n'
    rules = (HERE / "rules.yaml").read_text().replace("${ADA_VERIFIER}", f'"{ROOT_VERIFIER}"') + verifiers
    try:
        with tempfile.TemporaryDirectory() as place:
            arguments = (*PORT, "--console-edit-rules")
            with noisegate(Path(place), shop.dsn, rules=rules, arguments=arguments) as running:
                with psycopg.connect(running.dsn(), autocommit=True) as session:
                    for sql in (*STATEMENTS, *REFUSED):
                        _ask(session, sql)
                with browser(Path(place)) as window:
                    _draw(Reader(window, f"https://localhost:{port_of(running)}"))
    finally:
        shop.cluster.stop()


def _ask(session: psycopg.Connection, sql: str) -> None:
    try:
        session.execute(sql.encode())
    except psycopg.Error as error:
        assert error.sqlstate in ("42501", "42703"), error


def _draw(reader: Reader) -> None:
    reader.log_in("root")
    _take(reader, "/health", "health", DESK, "light")
    _take(reader, "/budgets", "budgets", DESK, "dark")
    _take(reader, "/statements", "statements", DESK, "light")
    _take(reader, "/tables/edit?table=orders", "tables", DESK, "light", scroll_to="noise:amount")
    _take(reader, "/budgets", "phone", PHONE, "dark")
    reader.open("/try")
    reader.window.run("document.querySelector('#sql').value = arguments[0]", TRIED)
    reader.window.run("document.querySelector('form.stack').requestSubmit()")
    reader.window.wait_until("document.querySelector('#result')", 30)
    _take(reader, "", "try-it", (1000, 900), "light")
    reader.log_out()
    reader.log_in("ada")
    _take(reader, "/me", "analyst", (1000, 900), "light")
    _take(reader, "/cookbook?table=orders", "cookbook", DESK, "dark")
    reader.log_out()


def _take(
    reader: Reader, path: str, name: str, size: tuple[int, int], scheme: str, *, scroll_to: str = ""
) -> None:  # fmt: skip
    reader.look(size[0], scheme, size[1])
    if path:
        reader.open(path)
    if scroll_to:
        reader.window.run("document.getElementById(arguments[0]).closest('section').scrollIntoView()", scroll_to)
    reader.window.screenshot(PICTURES / f"console-{name}.png")


if __name__ == "__main__":
    main()
