"""Somebody at the web console without a browser: cookies, forms and their tokens."""

import re
import ssl
from dataclasses import dataclass, field
from html import unescape
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlencode

from tests.support import shop as shop_data
from tests.support.running import Noisegate

ROOT_VERIFIER = "SCRAM-SHA-256$4096:bm9pc2VnYXRlLXNhbHQtMQ==$\
Fx0st/XWuNDfeIQDWXDi1oBnoCVqttNumXyclzzuFCo=:yn7C40SXBTx0F1cq5nA+hSJiJWhbk0thlHnYhZfdRhE="
RULES = f'{shop_data.RULES.rstrip()}\noperators: {{root: {{password: "{ROOT_VERIFIER}"}}}}\n'
PASSWORDS = {**shop_data.PASSWORDS, "root": shop_data.PASSWORDS["ada"]}
PORT = ("--console-port", "0")


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def words(self) -> str:
        """What is to be read."""
        return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", self.text)))


@dataclass
class Visitor:
    """One browser's worth of state."""

    port: int
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    has_tls: bool = True
    address: str = "127.0.0.1"

    def get(self, path: str) -> Reply:
        return self._ask("GET", path, None)

    def post(self, path: str, *, token: str | None = None, at: str = "/", **fields: str) -> Reply:
        """Send a form, with the token of the page `at` unless another is given."""
        known = self.token(at) if token is None else token
        return self._ask("POST", path, urlencode({"token": known, **fields}))

    def token(self, path: str) -> str:
        found = re.search(r'name="token" value="([^"]+)"', self.get(path).text)
        assert found, path
        return found[1]

    def log_in(self, user: str, password: str | None = None) -> Reply:
        given = PASSWORDS[user] if password is None else password
        return self.post("/login", at="/login", user=user, password=given)

    def _ask(self, method: str, path: str, body: str | None) -> Reply:
        context = ssl._create_unverified_context()
        connection = (
            HTTPSConnection("127.0.0.1", self.port, timeout=60, source_address=(self.address, 0), context=context)
            if self.has_tls
            else HTTPConnection("127.0.0.1", self.port, timeout=60)
        )
        headers = {"Cookie": self.cookie, "Content-Type": "application/x-www-form-urlencoded", **self.headers}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        if given := answer.getheader("set-cookie"):
            self.cookie = given.partition(";")[0]
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)


def port_of(running: Noisegate) -> int:
    return int(str(running.wait_for("console_port")["port"]))
