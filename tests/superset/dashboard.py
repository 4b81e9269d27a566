"""Dashboards as a reader meets them: opened, looked at and refreshed in a browser."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.superset.api import PASSWORD, USER, Json, mapping, number, rows, texts
from tests.superset.browser import Browser, Response, browser

LOGIN = """
const enter = (name, value) => {
    const field = document.querySelector(`input[name=${name}], #${name}`);
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, value);
    field.dispatchEvent(new Event('input', {bubbles: true}));
};
enter('username', arguments[0]);
enter('password', arguments[1]);
document.querySelector('button[type=submit], input[type=submit]').click();
"""
ASKED = "form_data=%7B%22slice_id%22"  # in the address of every request for the data of a chart
LOADED = "!document.querySelector('.loading, [data-test=loading-indicator]')"
ANSWER_SECONDS = 60
ROW_HEIGHT, HEAD_HEIGHT = 352, 290  # pixels of a row of charts, and of what stands above them, the window's own too


@dataclass(frozen=True)
class Drawn:
    """What a chart got for each of its queries, or why it got nothing."""

    name: str
    results: Sequence[Json] = ()
    message: str = ""

    @property
    def counts(self) -> list[int]:
        """The rows of each query."""
        return [number(result["rowcount"]) for result in self.results]

    @property
    def data(self) -> list[object]:
        return [result["data"] for result in self.results]

    @property
    def queries(self) -> list[str]:
        return [str(result["query"]) for result in self.results]


@dataclass(frozen=True)
class Reader:
    """Somebody who is logged in and looks at dashboards."""

    url: str
    browser: Browser

    def open(self, dashboard: int, charts: Mapping[int, str]) -> dict[str, Drawn]:
        """Open a dashboard, and wait until every chart of it has its answer and is drawn."""
        self.browser.resize(1400, HEAD_HEIGHT + ROW_HEIGHT * -(-len(charts) // 3))
        self.browser.open(f"{self.url}/superset/dashboard/{dashboard}/?standalone=0")
        return self._drawn(charts)

    def refresh(self, charts: Mapping[int, str]) -> dict[str, Drawn]:
        """Ask for all of it again, past Superset's own caches."""
        self.browser.run("document.querySelector('[data-test=refresh-dashboard], [aria-label=sync]').click()")
        return self._drawn(charts)

    def faults(self) -> list[str]:
        """What stands in place of charts that cannot be drawn."""
        shown = "[...document.querySelectorAll('[role=alert], .missing-chart-body')].map(each => each.innerText)"
        return list(texts(self.browser.run(f"return {shown}")))

    def _drawn(self, charts: Mapping[int, str]) -> dict[str, Drawn]:
        found = {name: Drawn(name, message="no answer") for name in charts.values()}
        waits_for = set(charts)
        deadline = time.monotonic() + ANSWER_SECONDS
        while waits_for and time.monotonic() < deadline:
            for response in self.browser.responses(ASKED):
                waits_for.discard(chart := _chart_of(response))
                found[charts[chart]] = _drawn(charts[chart], response)
            time.sleep(0.3)
        self.browser.wait_until(LOADED)
        time.sleep(2)  # charts move into their places
        return found


@contextmanager
def reader(url: str, directory: Path) -> Iterator[Reader]:
    """Log in with a browser."""
    with browser(directory) as window:
        window.open(f"{url}/login/")
        window.wait_until("document.querySelector('input[name=username], #username')")
        window.run(LOGIN, USER, PASSWORD)
        window.wait_until("!location.pathname.startsWith('/login')")
        yield Reader(url, window)


def _chart_of(response: Response) -> int:
    form = json.loads(parse_qs(urlsplit(response.url).query)["form_data"][0])
    return number(mapping(form)["slice_id"])


def _drawn(name: str, response: Response) -> Drawn:
    body = mapping(json.loads(response.body))
    if response.status != 200:
        return Drawn(name, message=str(body))
    return Drawn(name, rows(body.get("result", [body])))
