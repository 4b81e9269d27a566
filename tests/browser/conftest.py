"""A proxy with something to show, and a browser that looks at its console."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.console.web import PASSWORDS, PORT, ROOT_VERIFIER, RULES, port_of
from tests.superset.browser import Browser, browser
from tests.support.running import Noisegate, noisegate

STATEMENTS = (
    "SELECT city, count(*) FROM customers GROUP BY city",
    "SELECT status, count(*), round(avg(amount), 2) AS euros FROM orders GROUP BY status",
    "SELECT count(*) FROM orders WHERE amount > 99",
)
LONG_NAME = "z_name_of_as_many_characters_as_one_may_have_in_a_rules_file"  # and no place to break it
REFUSED = "SELECT * FROM customers WHERE city = 'Berlin'"


@dataclass
class Reader:
    """Somebody with a browser."""

    window: Browser
    base: str

    def open(self, path: str) -> None:
        self.window.open(self.base + path)

    def look(self, width: int, scheme: str, height: int = 800) -> None:
        """Have a screen of this size, and these colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.window.command("Emulation.setDeviceMetricsOverride", **metrics)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.window.command("Emulation.setEmulatedMedia", features=[feature])

    def log_in(self, user: str) -> None:
        """By the keyboard alone: the name has the focus when the page is open."""
        self.window.run("return document.cookie")
        self.open("/login")
        self.window.wait_until("document.activeElement.id == 'user'", 20)
        self.window.press(*user, "\ue004", *PASSWORDS[user], "\ue007")
        self.window.wait_until("location.pathname != '/login'", 20)

    def log_out(self) -> None:
        self.window.run("document.querySelector('form.who').requestSubmit()")
        self.window.wait_until("location.pathname == '/login'", 20)

    @property
    def path(self) -> str:
        return str(self.window.run("return location.pathname"))

    @property
    def words(self) -> str:
        return str(self.window.run("return document.querySelector('main').innerText"))


@pytest.fixture(scope="session")
def running(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    place, arguments = tmp_path_factory.mktemp("console"), (*PORT, "--console-edit-rules")
    rules = RULES.replace("analysts:\n", f'analysts:\n  {LONG_NAME}: {{password: "{ROOT_VERIFIER}"}}\n')
    with noisegate(place, shop.reader_dsn, rules=rules, arguments=arguments) as served:
        with psycopg.connect(served.dsn(), autocommit=True) as session:
            for sql in STATEMENTS:
                session.execute(sql.encode())
            with pytest.raises(psycopg.Error):
                session.execute(REFUSED.encode())
        yield served


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def reader(running: Noisegate, window: Browser) -> Iterator[Reader]:
    somebody = Reader(window, f"https://localhost:{port_of(running)}")
    somebody.look(1100, "light")
    somebody.open("/login")
    window.complaints()
    yield somebody
    somebody.open("/login")
    if somebody.path != "/login":
        somebody.log_out()
