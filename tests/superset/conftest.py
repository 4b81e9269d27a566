"""One Superset with the demo's shop behind a proxy, all charts on dashboards, and somebody who looks at them."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from proxy.demo.run import ANALYST, HERE, open_shop
from proxy.wire.scram import Verifier
from tests.superset.api import Api, Json
from tests.superset.charts import DASHBOARDS, DATASETS, Chart
from tests.superset.dashboard import Drawn, Reader, reader
from tests.superset.filters import of_range, of_time, of_values
from tests.superset.server import BUILD, superset
from tests.support import shop as shop_data
from tests.support.running import Noisegate, command, noisegate

FILTERED = "With filters"
SYNOPSIS = """
synopses:
  explore:
    epsilon: 8
    tables:
      customers: [city, segment, newsletter, joined_on by year]
      orders: [customers.city, customers.segment, ordered_at by month, channel, amount by 20]
"""
PICTURES = BUILD / "superset-pictures"


@dataclass(frozen=True)
class Proxy:
    """A running proxy, and how its DBA sees what is spent."""

    running: Noisegate
    database_dsn: str

    @property
    def uri(self) -> str:
        """As Superset's form wants it."""
        login = f"{ANALYST}:{shop_data.PASSWORDS[ANALYST]}"
        return f"postgresql+psycopg2://{login}@127.0.0.1:{self.running.port}/shop?sslmode=require"

    def spent(self) -> str:
        """What the ledger says of the analyst."""
        shown = command("ledger", "show", str(self.running.rules), database=self.database_dsn)
        assert shown.returncode == 0, shown.stderr
        (line,) = (line for line in shown.stdout.splitlines() if line.startswith(ANALYST))
        return line


@dataclass(frozen=True)
class Shown:
    """A dashboard that has been opened and then refreshed, twice.

    When it is first opened a chart may buy more of what another one has bought a moment before. From then on both show
    what these tell together.
    """

    drawn: dict[str, Drawn]
    faults: list[str]  # what is shown in place of charts
    again: tuple[dict[str, Drawn], dict[str, Drawn]]
    spent: tuple[str, str]  # before and after it was refreshed


@pytest.fixture(scope="session")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The demo, with a budget for more charts than a reader looks at."""
    shop = open_shop()
    verifier = str(Verifier.of_password(shop_data.PASSWORDS[ANALYST], bytes(16)))
    rules = (HERE / "rules.yaml").read_text().replace("${ADA_VERIFIER}", f'"{verifier}"')
    rules = rules.replace("epsilon: 60", "epsilon: 1000").replace("epsilon: 30", "epsilon: 1000")
    try:
        # Charts by second or by hour over these rows show noise alone, which is what is drawn and asked for again here.
        rules += f"\npreviews: empty\nempty_groups: show\n{SYNOPSIS}"
        with noisegate(tmp_path_factory.mktemp("proxy"), shop.dsn, rules=rules) as running:
            running.wait_for("synopsis_shown")
            yield Proxy(running, shop.dsn)
    finally:
        shop.cluster.stop()


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Superset's address."""
    with superset(tmp_path_factory.mktemp("superset")) as address:
        yield address


@pytest.fixture(scope="session")
def api(url: str) -> Api:
    return Api.login(url)


@pytest.fixture(scope="session")
def database(api: Api, proxy: Proxy) -> int:
    """The proxy, connected."""
    return api.add_database(proxy.uri)


@pytest.fixture(scope="session")
def datasets(api: Api, database: int) -> dict[str, int]:
    """The shop's tables, and a query over two of them."""
    return {
        name: api.add_query(database, name, sql) if sql else api.add_table(database, name)
        for name, sql in DATASETS.items()
    }


@pytest.fixture(scope="session")
def window(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with reader(url, tmp_path_factory.mktemp("browser")) as somebody:
        yield somebody


@pytest.fixture(scope="session")
def dashboards(api: Api, datasets: dict[str, int], window: Reader, proxy: Proxy) -> dict[str, Shown]:
    """All dashboards, opened and refreshed, with a picture and the SQL of each kept in files."""
    PICTURES.mkdir(parents=True, exist_ok=True)

    def show(title: str, charts: tuple[Chart, ...]) -> Shown:
        names = {
            api.add_chart(chart.name, datasets[chart.dataset], chart.kind, chart.form): chart.name for chart in charts
        }
        beside = _filters(datasets["orders with city"]) if title == FILTERED else ()
        drawn = window.open(api.add_dashboard(title, list(names), beside), names)
        faults = window.faults()
        picture = PICTURES / f"{title.lower().replace(' ', '-')}.png"
        window.browser.screenshot(picture)
        picture.with_suffix(".sql").write_text("\n\n".join(query for each in drawn.values() for query in each.queries))
        spent = proxy.spent()
        again = window.refresh(names), window.refresh(names)
        return Shown(drawn, faults, again, (spent, proxy.spent()))

    return {title: show(title, charts) for title, charts in DASHBOARDS.items()}


def _filters(dataset: int) -> tuple[Json, ...]:
    chosen = of_values(dataset, "city", ["Berlin", "Lyon"])
    return chosen, of_range(dataset, "amount", 10, 300), of_time("2025-01-01 : 2026-01-01")
