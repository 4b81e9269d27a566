"""One running proxy on the demo's shop for all cases."""

import re
from collections.abc import Iterator

import pytest

from proxy.demo.run import HERE, Shop, open_shop
from tests.support import shop as small_shop
from tests.support.listed_sql import all_sent_are_listed
from tests.support.running import Noisegate, noisegate


@pytest.fixture(scope="session")
def demo() -> Iterator[Shop]:
    """The real database of the demo."""
    shop = open_shop()
    with all_sent_are_listed(shop.cluster):
        yield shop
    shop.cluster.stop()


@pytest.fixture(scope="session")
def demo_rules() -> str:
    """The demo's rules with a budget for hundreds of statements, each with little noise."""
    rules = (HERE / "rules.yaml").read_text(encoding="utf-8")
    account = small_shop.RULES.partition("analysts:\n")[2].partition("  bob:")[0]
    return re.sub(r"budget:.*", "", rules, flags=re.DOTALL) + (
        "budget: {epsilon: 1000, delta: 1e-6}\n"
        "defaults: {epsilon: 8, max_epsilon: 10, delta: 1e-9}\n"
        f"analysts:\n{account}"
    )


@pytest.fixture(scope="session")
def proxy(demo: Shop, demo_rules: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    """The proxy in front of it, in a process of its own."""
    with noisegate(tmp_path_factory.mktemp("demo"), demo.dsn, rules=demo_rules) as running:
        yield running
