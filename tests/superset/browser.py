"""A real browser without a screen: Debian's Chromium, driven by the W3C WebDriver protocol (https://w3.org/TR/webdriver2)."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError

from tests.superset.api import Json, mapping, part, rows, text

START_SECONDS = 30
ANSWER_SECONDS = 120
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--window-size=1400,1000",
)  # fmt: skip


@dataclass
class Response:
    """What a server answered to a page."""

    url: str
    status: int
    body: str


@dataclass
class Browser:
    """One window."""

    session: str
    _answered: dict[str, tuple[str, int]] = field(default_factory=dict)  # url and status of each answer on its way

    def open(self, url: str) -> None:
        self._ask("POST", "url", {"url": url})

    def run(self, script: str, *arguments: object) -> object:
        """Run JavaScript in the page; what it returns."""
        return self._ask("POST", "execute/sync", {"script": script, "args": arguments})

    def wait_until(self, script: str, seconds: float = ANSWER_SECONDS) -> None:
        """Wait until an expression of the page is true."""
        deadline = time.monotonic() + seconds
        while not self.run(f"return Boolean({script})"):
            assert time.monotonic() < deadline, (
                f"not in {seconds} s: {script}\n{self.run('return document.body.innerText')}"
            )
            time.sleep(0.3)

    def resize(self, width: int, height: int) -> None:
        self._ask("POST", "window/rect", {"width": width, "height": height})

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, as a hand does: of those without a sign, their codes in WebDriver."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("POST", "actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def command(self, name: str, **parameters: object) -> Json:
        """A command of the browser's own protocol."""
        return mapping(self._ask("POST", "goog/cdp/execute", {"cmd": name, "params": parameters}))

    def complaints(self) -> list[str]:
        """What the browser has said of the pages since this was last asked: errors of scripts, what CSP refused."""
        return [text(row["message"]) for row in rows(self._ask("POST", "se/log", {"type": "browser"}))]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(text(self._ask("GET", "screenshot", None))))

    def responses(self, pattern: str) -> Iterator[Response]:
        """The answers with this in their address that have ended since this was last asked."""
        for message in self._network_log():
            parameters = part(message, "params")
            number = str(parameters.get("requestId"))
            if message["method"] == "Network.responseReceived":
                response = part(parameters, "response")
                if pattern in (url := text(response["url"])):
                    self._answered[number] = url, int(str(response["status"]))
            elif message["method"] == "Network.loadingFinished" and number in self._answered:
                asked = {"cmd": "Network.getResponseBody", "params": {"requestId": number}}
                body = mapping(self._ask("POST", "goog/cdp/execute", asked))
                yield Response(*self._answered.pop(number), text(body["body"]))

    def _network_log(self) -> Iterator[Json]:
        entries = self._ask("POST", "se/log", {"type": "performance"})
        return (part(json.loads(text(entry["message"])), "message") for entry in rows(entries))

    def _ask(self, method: str, path: str, body: Json | None) -> object:
        return _call(method, f"{self.session}/{path}", body)


@contextmanager
def browser(directory: Path) -> Iterator[Browser]:
    """A browser with a new profile, until the block is left."""
    driver, chromium = _found("chromedriver"), _found("chromium")
    port = free_port()
    log = (directory / "chromedriver.log").open("w")
    process = subprocess.Popen([driver, f"--port={port}"], stdout=log, stderr=subprocess.STDOUT)
    try:
        base = f"http://127.0.0.1:{port}"
        wait_for(f"{base}/status", START_SECONDS)
        made = mapping(_call("POST", f"{base}/session", _capabilities(chromium, directory / "profile")))
        session = f"{base}/session/{made['sessionId']}"
        try:
            yield Browser(session)
        finally:
            _call("DELETE", session, None)
    finally:
        process.terminate()
        process.wait(START_SECONDS)
        log.close()


def wait_for(url: str, seconds: float) -> None:
    """Wait until a server answers there."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=seconds).close()
        except (URLError, ConnectionError):
            assert time.monotonic() < deadline, f"nothing answers at {url}"
            time.sleep(0.3)
        else:
            return


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _found(program: str) -> str:
    found = shutil.which(program)
    assert found, f"{program} is not here: apt-get install chromium chromium-driver"
    return found


def _capabilities(binary: str, profile: Path) -> Json:
    arguments: Sequence[str] = (*QUIET, f"--user-data-dir={profile}")
    options: Mapping[str, object] = {"binary": binary, "args": arguments}
    logging = {"performance": "ALL", "browser": "ALL"}
    asked = {"goog:chromeOptions": options, "goog:loggingPrefs": logging, "acceptInsecureCerts": True}
    return {"capabilities": {"alwaysMatch": asked}}


def _call(method: str, url: str, body: Json | None) -> object:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
        return mapping(json.load(answer))["value"]
